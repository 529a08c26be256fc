whit_script(cli_graph ${CMAKE_CURRENT_LIST_DIR}/graph.sh)
