whit_test(codec ${CMAKE_CURRENT_LIST_DIR}/codec.c)
whit_test(kernels_reference ${CMAKE_CURRENT_LIST_DIR}/reference.c)
