whit_test(adapter ${CMAKE_CURRENT_LIST_DIR}/adapter.c)
