# Fuzz targets: tests/fuzz/NAME.c has LLVMFuzzerTestOneInput, tests/fuzz/corpus/NAME its seeds.
# With WHIT_FUZZ (make fuzz) they are libFuzzer programs; in every other build a small main replays
# the seeds and fixed mutations of them as a test.
set(fuzz ${CMAKE_CURRENT_LIST_DIR})
function(whit_fuzz name)
  add_executable(fuzz_${name} ${fuzz}/${name}.c)
  target_link_libraries(fuzz_${name} PRIVATE whit_static whit_options whit_dependencies)
  target_include_directories(fuzz_${name} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests
                                                  ${CMAKE_BINARY_DIR}/generated)
  # The entry point has no header; libFuzzer declares it for itself.
  set_source_files_properties(${fuzz}/${name}.c PROPERTIES COMPILE_OPTIONS -Wno-missing-prototypes)
  if(WHIT_FUZZ)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  else()
    target_sources(fuzz_${name} PRIVATE ${fuzz}/replay.c)
    add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${fuzz}/corpus/${name})
    set_tests_properties(fuzz_${name} PROPERTIES TIMEOUT 300)
  endif()
endfunction()
whit_fuzz(gguf)
whit_fuzz(safetensors)
whit_fuzz(ndf)
whit_fuzz(template)
whit_fuzz(model)
whit_fuzz(json)
whit_fuzz(tokenizer_image)
whit_fuzz(tokenizer_json)
whit_fuzz(tokenizer_model)
