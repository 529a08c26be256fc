# Session files: the short form with every suite, 200 kills with make test-long.
set(cli ${CMAKE_CURRENT_LIST_DIR})
whit_script(cli_session ${cli}/session.sh 20)
whit_script(cli_kv ${cli}/kv.sh)
set(scratch ${CMAKE_CURRENT_BINARY_DIR}/scratch/cli_session_long)
file(MAKE_DIRECTORY ${scratch})
add_test(NAME cli_session_long COMMAND bash ${cli}/session.sh 200 CONFIGURATIONS Long WORKING_DIRECTORY ${scratch})
get_test_property(cli_session ENVIRONMENT environment)
set_tests_properties(cli_session_long PROPERTIES TIMEOUT 1200 ENVIRONMENT "${environment}")
