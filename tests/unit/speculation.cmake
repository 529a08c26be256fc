whit_test(speculation ${CMAKE_CURRENT_LIST_DIR}/speculation.c)
