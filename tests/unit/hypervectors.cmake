whit_test(hypervectors ${CMAKE_CURRENT_LIST_DIR}/hypervectors.c)
target_link_libraries(test_hypervectors PRIVATE whit_memory)
whit_test(memory_speed ${CMAKE_CURRENT_LIST_DIR}/memory_speed.c)
target_link_libraries(test_memory_speed PRIVATE whit_memory)
# A million vectors: a gigabyte, and a bound on the rate.
add_test(NAME memory_speed_long COMMAND test_memory_speed 1000000 0.85 CONFIGURATIONS Long)
set_tests_properties(memory_speed_long PROPERTIES TIMEOUT 1200)
