whit_test(kv_windows ${CMAKE_CURRENT_LIST_DIR}/kv_windows.c ${CMAKE_CURRENT_LIST_DIR}/../random_model.c)
