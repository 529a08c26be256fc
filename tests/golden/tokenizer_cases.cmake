whit_test(tokenizer_cases ${CMAKE_CURRENT_LIST_DIR}/tokenizer_cases.c)
