whit_script(cli_arrays ${CMAKE_CURRENT_LIST_DIR}/arrays.sh)
whit_script(cli_lang_binary ${CMAKE_CURRENT_LIST_DIR}/lang_binary.sh)
whit_script(cli_lang ${CMAKE_CURRENT_LIST_DIR}/lang.sh)
whit_script(cli_memory ${CMAKE_CURRENT_LIST_DIR}/memory.sh)
whit_script(cli_program ${CMAKE_CURRENT_LIST_DIR}/program.sh)
whit_script(cli_family ${CMAKE_CURRENT_LIST_DIR}/family.sh)
whit_script(cli_memory_kills ${CMAKE_CURRENT_LIST_DIR}/memory_kills.sh)
# A hundred kills.
whit_script_long(cli_memory_kills_long 1200 ${CMAKE_CURRENT_LIST_DIR}/memory_kills.sh 100)
