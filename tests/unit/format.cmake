whit_test(ggml_types ${CMAKE_CURRENT_LIST_DIR}/ggml_types.c)
whit_test(gguf ${CMAKE_CURRENT_LIST_DIR}/gguf.c)
