whit_test(threads ${CMAKE_CURRENT_LIST_DIR}/threads.c)
