whit_test(experts ${CMAKE_CURRENT_LIST_DIR}/experts.c)
whit_test(import_gguf ${CMAKE_CURRENT_LIST_DIR}/import_gguf.c)
whit_test(import_hf ${CMAKE_CURRENT_LIST_DIR}/import_hf.c ${CMAKE_CURRENT_LIST_DIR}/../model_folder.c)
whit_test(hf_packed ${CMAKE_CURRENT_LIST_DIR}/hf_packed.c ${CMAKE_CURRENT_LIST_DIR}/../model_folder.c)
