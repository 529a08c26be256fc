whit_script(cli_arrays ${CMAKE_CURRENT_LIST_DIR}/arrays.sh)
whit_script(cli_lang ${CMAKE_CURRENT_LIST_DIR}/lang.sh)
whit_script(cli_memory ${CMAKE_CURRENT_LIST_DIR}/memory.sh)
whit_script(cli_program ${CMAKE_CURRENT_LIST_DIR}/program.sh)
