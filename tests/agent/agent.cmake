whit_script(agent_loop ${CMAKE_CURRENT_LIST_DIR}/loop.sh)
whit_script(agent_gate ${CMAKE_CURRENT_LIST_DIR}/gate.sh)
whit_script(agent_talk ${CMAKE_CURRENT_LIST_DIR}/talk.sh)
whit_script(agent_git ${CMAKE_CURRENT_LIST_DIR}/git.sh 100)
set(scratch ${CMAKE_CURRENT_BINARY_DIR}/scratch/agent_git_long)
file(MAKE_DIRECTORY ${scratch})
add_test(NAME agent_git_long COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/git.sh 1000 CONFIGURATIONS Long WORKING_DIRECTORY ${scratch})
set_tests_properties(agent_git_long PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 3600 ENVIRONMENT
  "WHIT=${PROJECT_BINARY_DIR}/whit;SOURCE=${PROJECT_SOURCE_DIR};BUILD=${PROJECT_BINARY_DIR}")
