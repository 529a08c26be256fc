set(session_play ${CMAKE_CURRENT_LIST_DIR}/../session_play.c ${CMAKE_CURRENT_LIST_DIR}/../random_model.c)
whit_test(session_fuzz ${CMAKE_CURRENT_LIST_DIR}/session_fuzz.c ${session_play})
whit_brief(session_fuzz WHIT_SEQUENCES=100)
# A hundred thousand of them: ctest -C Long, make test-long.
add_test(NAME session_fuzz_long COMMAND test_session_fuzz CONFIGURATIONS Long)
set_tests_properties(session_fuzz_long PROPERTIES ENVIRONMENT "WHIT_SEQUENCES=100000;WHIT_SEED=1000000" TIMEOUT 7200)
whit_test(table_memory ${CMAKE_CURRENT_LIST_DIR}/table_memory.c ${CMAKE_CURRENT_LIST_DIR}/../model_folder.c)
whit_test(delta_columns ${CMAKE_CURRENT_LIST_DIR}/delta_columns.c ${CMAKE_CURRENT_LIST_DIR}/../random_model.c)
