whit_test(quat_file ${CMAKE_CURRENT_LIST_DIR}/quat_file.c)
