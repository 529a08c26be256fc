whit_script(cli_arrays ${CMAKE_CURRENT_LIST_DIR}/arrays.sh)
whit_script(cli_lang ${CMAKE_CURRENT_LIST_DIR}/lang.sh)
