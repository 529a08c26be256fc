whit_test(codec ${CMAKE_CURRENT_LIST_DIR}/codec.c)
whit_test(kernels_reference ${CMAKE_CURRENT_LIST_DIR}/reference.c)
whit_test(kernels_equal_vectors ${CMAKE_CURRENT_LIST_DIR}/equal_vectors.c)
whit_test(kernels_equal_matmul ${CMAKE_CURRENT_LIST_DIR}/equal_matmul.c)
