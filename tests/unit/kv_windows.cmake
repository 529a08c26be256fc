whit_test(kv_windows ${CMAKE_CURRENT_LIST_DIR}/kv_windows.c ${CMAKE_CURRENT_LIST_DIR}/../random_model.c)
whit_test(kv_marks ${CMAKE_CURRENT_LIST_DIR}/kv_marks.c)
whit_test(endless ${CMAKE_CURRENT_LIST_DIR}/endless.c ${CMAKE_CURRENT_LIST_DIR}/../random_model.c)
