whit_test(tokenizer_regex ${CMAKE_CURRENT_LIST_DIR}/tokenizer_regex.c)
target_link_options(test_tokenizer_regex PRIVATE -Wl,--wrap=pcre2_jit_compile_8)
add_test(NAME tokenizer_regex_long COMMAND test_tokenizer_regex 10000 CONFIGURATIONS Long)
set_tests_properties(tokenizer_regex_long PROPERTIES TIMEOUT 3600)
