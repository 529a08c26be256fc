whit_test(agent_patch ${CMAKE_CURRENT_LIST_DIR}/agent_patch.c)
target_link_libraries(test_agent_patch PRIVATE whit_agent)
whit_test(agent_turns ${CMAKE_CURRENT_LIST_DIR}/agent_turns.c)
target_link_libraries(test_agent_turns PRIVATE whit_agent)
whit_test(agent_local ${CMAKE_CURRENT_LIST_DIR}/agent_local.c)
target_link_libraries(test_agent_local PRIVATE whit_agent)
# The same patches by patch and git apply, in a table.
add_test(NAME agent_patch_table_long COMMAND test_agent_patch CONFIGURATIONS Long)
set_tests_properties(agent_patch_table_long PROPERTIES TIMEOUT 7200 ENVIRONMENT "WHIT_PATCH_TABLE=1")
# 1,000 contended edits.
add_test(NAME agent_turns_long COMMAND test_agent_turns CONFIGURATIONS Long)
set_tests_properties(agent_turns_long PROPERTIES TIMEOUT 7200 ENVIRONMENT "WHIT_CONTENDED_EDITS=1000")
whit_test(agent_rpc ${CMAKE_CURRENT_LIST_DIR}/agent_rpc.c)
target_link_libraries(test_agent_rpc PRIVATE whit_agent)
