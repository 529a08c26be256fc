whit_test(codec ${CMAKE_CURRENT_LIST_DIR}/codec.c)
