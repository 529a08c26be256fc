whit_test(agent_patch ${CMAKE_CURRENT_LIST_DIR}/agent_patch.c)
target_link_libraries(test_agent_patch PRIVATE whit_agent)
whit_test(agent_turns ${CMAKE_CURRENT_LIST_DIR}/agent_turns.c)
target_link_libraries(test_agent_turns PRIVATE whit_agent)
