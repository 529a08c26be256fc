whit_test(ggml_types ${CMAKE_CURRENT_LIST_DIR}/ggml_types.c)
whit_test(gguf ${CMAKE_CURRENT_LIST_DIR}/gguf.c)
whit_test(safetensors ${CMAKE_CURRENT_LIST_DIR}/safetensors.c)
whit_test(hf ${CMAKE_CURRENT_LIST_DIR}/hf.c)
