whit_test(infill ${CMAKE_CURRENT_LIST_DIR}/infill.c ${CMAKE_CURRENT_LIST_DIR}/../model_folder.c)
