whit_script(cli_editor ${CMAKE_CURRENT_LIST_DIR}/editor.sh)
