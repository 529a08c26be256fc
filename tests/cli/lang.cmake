whit_script(cli_arrays ${CMAKE_CURRENT_LIST_DIR}/arrays.sh)
whit_script(cli_lang_binary ${CMAKE_CURRENT_LIST_DIR}/lang_binary.sh)
whit_script(cli_lang ${CMAKE_CURRENT_LIST_DIR}/lang.sh)
whit_script(cli_memory ${CMAKE_CURRENT_LIST_DIR}/memory.sh)
whit_script(cli_program ${CMAKE_CURRENT_LIST_DIR}/program.sh)
whit_script(cli_family ${CMAKE_CURRENT_LIST_DIR}/family.sh)
whit_script(cli_memory_kills ${CMAKE_CURRENT_LIST_DIR}/memory_kills.sh)
# A hundred kills.
get_test_property(cli_memory_kills ENVIRONMENT environment)
set(scratch ${CMAKE_CURRENT_BINARY_DIR}/scratch/cli_memory_kills_long)
file(MAKE_DIRECTORY ${scratch})
add_test(NAME cli_memory_kills_long COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/memory_kills.sh 100 CONFIGURATIONS Long
         WORKING_DIRECTORY ${scratch})
set_tests_properties(cli_memory_kills_long PROPERTIES TIMEOUT 1200 ENVIRONMENT "${environment}")
