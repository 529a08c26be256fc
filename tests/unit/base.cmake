whit_test(base ${CMAKE_CURRENT_LIST_DIR}/base.c)
