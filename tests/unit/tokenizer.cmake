whit_test(tokenizer ${CMAKE_CURRENT_LIST_DIR}/tokenizer.c)
whit_test(tokenizer_scan ${CMAKE_CURRENT_LIST_DIR}/tokenizer_scan.c)
whit_test(tokenizer_hostile ${CMAKE_CURRENT_LIST_DIR}/tokenizer_hostile.c)
whit_test(tokenizer_learn ${CMAKE_CURRENT_LIST_DIR}/learn.c)
