whit_script(agent_loop ${CMAKE_CURRENT_LIST_DIR}/loop.sh)
whit_script(agent_gate ${CMAKE_CURRENT_LIST_DIR}/gate.sh)
whit_script(agent_talk ${CMAKE_CURRENT_LIST_DIR}/talk.sh)
