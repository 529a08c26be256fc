whit_test(writer ${CMAKE_CURRENT_LIST_DIR}/writer.c)
target_link_options(test_writer PRIVATE -Wl,--wrap=access)
