whit_test(threads ${CMAKE_CURRENT_LIST_DIR}/threads.c)
whit_few(threads)
whit_test(topology ${CMAKE_CURRENT_LIST_DIR}/topology.c)
whit_script(cores ${CMAKE_CURRENT_LIST_DIR}/cores.sh $<TARGET_FILE:cores>)
# Rests of workers, by the clock.
add_test(NAME threads_long COMMAND test_threads CONFIGURATIONS Long)
set_tests_properties(threads_long PROPERTIES TIMEOUT 600 ENVIRONMENT WHIT_TEST_TIMED=1)
