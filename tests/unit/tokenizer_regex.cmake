whit_test(tokenizer_regex ${CMAKE_CURRENT_LIST_DIR}/tokenizer_regex.c)
target_link_libraries(test_tokenizer_regex PRIVATE ${CMAKE_DL_LIBS})
add_test(NAME tokenizer_regex_long COMMAND test_tokenizer_regex 10000 CONFIGURATIONS Long)
set_tests_properties(tokenizer_regex_long PROPERTIES TIMEOUT 3600)
