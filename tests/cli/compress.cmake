whit_script(cli_compress ${CMAKE_CURRENT_LIST_DIR}/compress.sh)
