whit_test(writer ${CMAKE_CURRENT_LIST_DIR}/writer.c)
target_link_libraries(test_writer PRIVATE ${CMAKE_DL_LIBS})
