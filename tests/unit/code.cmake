whit_test(code_graph ${CMAKE_CURRENT_LIST_DIR}/code_graph.c)
target_link_libraries(test_code_graph PRIVATE whit_code)
