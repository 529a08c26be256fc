whit_fuzz(code)
target_link_libraries(fuzz_code PRIVATE whit_code)
