whit_test(adapter ${CMAKE_CURRENT_LIST_DIR}/adapter.c)
whit_test(lora ${CMAKE_CURRENT_LIST_DIR}/lora.c)
whit_test(merge ${CMAKE_CURRENT_LIST_DIR}/merge.c)
whit_test(tuning ${CMAKE_CURRENT_LIST_DIR}/tuning.c)
