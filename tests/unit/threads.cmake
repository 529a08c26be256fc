whit_test(threads ${CMAKE_CURRENT_LIST_DIR}/threads.c)
# Rests of workers, by the clock.
add_test(NAME threads_long COMMAND test_threads CONFIGURATIONS Long)
set_tests_properties(threads_long PROPERTIES TIMEOUT 600 ENVIRONMENT WHIT_TEST_TIMED=1)
