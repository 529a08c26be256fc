whit_test(memory ${CMAKE_CURRENT_LIST_DIR}/memory.c)
