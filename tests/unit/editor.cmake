whit_test(editor_text ${CMAKE_CURRENT_LIST_DIR}/editor_text.c)
target_link_libraries(test_editor_text PRIVATE whit_editor)
whit_test(editor_files ${CMAKE_CURRENT_LIST_DIR}/editor_files.c)
target_link_libraries(test_editor_files PRIVATE whit_editor)
# 500 kills.
add_test(NAME editor_files_long COMMAND test_editor_files CONFIGURATIONS Long)
set_tests_properties(editor_files_long PROPERTIES TIMEOUT 7200 ENVIRONMENT "WHIT_KILLS=500")
whit_test(editor_config ${CMAKE_CURRENT_LIST_DIR}/editor_config.c)
target_link_libraries(test_editor_config PRIVATE whit_editor)
