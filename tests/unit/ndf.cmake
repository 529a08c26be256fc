whit_test(ndf ${CMAKE_CURRENT_LIST_DIR}/ndf.c ${CMAKE_CURRENT_LIST_DIR}/ndf_sample.c)
