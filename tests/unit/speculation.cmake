whit_test(draft_choice ${CMAKE_CURRENT_LIST_DIR}/draft_choice.c)
whit_test(speculation ${CMAKE_CURRENT_LIST_DIR}/speculation.c ${CMAKE_CURRENT_LIST_DIR}/../random_model.c)
whit_few(speculation)
whit_test(drafter ${CMAKE_CURRENT_LIST_DIR}/drafter.c ${CMAKE_CURRENT_LIST_DIR}/../random_model.c)
whit_test(draft_import ${CMAKE_CURRENT_LIST_DIR}/draft_import.c)
# All prompts and sizes of batches take minutes: ctest -C Long, make test-long.
add_test(NAME speculation_long COMMAND test_speculation CONFIGURATIONS Long)
set_tests_properties(speculation_long PROPERTIES ENVIRONMENT WHIT_PROMPTS=200 TIMEOUT 3600)
