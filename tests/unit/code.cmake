whit_test(code_graph ${CMAKE_CURRENT_LIST_DIR}/code_graph.c)
target_link_libraries(test_code_graph PRIVATE whit_code)
whit_test(code_diff ${CMAKE_CURRENT_LIST_DIR}/code_diff.c)
target_link_libraries(test_code_diff PRIVATE whit_code)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux") # where a process may be given the children of its children
  whit_test(code_git ${CMAKE_CURRENT_LIST_DIR}/code_git.c)
  target_link_libraries(test_code_git PRIVATE whit_code)
endif()
