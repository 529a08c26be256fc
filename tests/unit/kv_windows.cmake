whit_test(kv_windows ${CMAKE_CURRENT_LIST_DIR}/kv_windows.c ${CMAKE_CURRENT_LIST_DIR}/../random_model.c)
whit_test(kv_marks ${CMAKE_CURRENT_LIST_DIR}/kv_marks.c)
whit_test(endless ${CMAKE_CURRENT_LIST_DIR}/endless.c ${CMAKE_CURRENT_LIST_DIR}/../random_model.c)
whit_few(endless kv_marks)
# 200,000 tokens take a minute: ctest -C Long, make test-long.
add_test(NAME endless_long COMMAND test_endless CONFIGURATIONS Long)
set_tests_properties(endless_long PROPERTIES ENVIRONMENT WHIT_TOKENS=200000 TIMEOUT 3600)
whit_test(kv_bytes ${CMAKE_CURRENT_LIST_DIR}/kv_bytes.c)
whit_test(session_replay ${CMAKE_CURRENT_LIST_DIR}/session_replay.c ${CMAKE_CURRENT_LIST_DIR}/../random_model.c)
whit_test(checkpoints ${CMAKE_CURRENT_LIST_DIR}/checkpoints.c ${CMAKE_CURRENT_LIST_DIR}/../random_model.c)
# Twenty turns of four clients after a prefix of 20,000 tokens: ctest -C Long, make test-long.
add_test(NAME checkpoints_long COMMAND test_checkpoints CONFIGURATIONS Long)
set_tests_properties(checkpoints_long PROPERTIES ENVIRONMENT WHIT_PREFIX=20000 TIMEOUT 3600)
