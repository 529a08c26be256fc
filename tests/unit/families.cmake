whit_test(families ${CMAKE_CURRENT_LIST_DIR}/families.c)
