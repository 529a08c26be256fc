whit_test(linalg_cholesky ${CMAKE_CURRENT_LIST_DIR}/linalg_cholesky.c)
