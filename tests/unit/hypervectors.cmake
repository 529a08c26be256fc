whit_test(hypervectors ${CMAKE_CURRENT_LIST_DIR}/hypervectors.c)
target_link_libraries(test_hypervectors PRIVATE whit_memory)
