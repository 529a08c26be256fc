whit_script(agent_loop ${CMAKE_CURRENT_LIST_DIR}/loop.sh)
