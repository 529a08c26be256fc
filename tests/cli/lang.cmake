whit_script(cli_arrays ${CMAKE_CURRENT_LIST_DIR}/arrays.sh)
