whit_test(editor_text ${CMAKE_CURRENT_LIST_DIR}/editor_text.c)
target_link_libraries(test_editor_text PRIVATE whit_editor)
whit_test(editor_files ${CMAKE_CURRENT_LIST_DIR}/editor_files.c)
target_link_libraries(test_editor_files PRIVATE whit_editor)
