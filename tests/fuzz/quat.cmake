whit_fuzz(quat_file)
whit_fuzz(lang)
target_link_libraries(fuzz_lang PRIVATE whit_lang)
