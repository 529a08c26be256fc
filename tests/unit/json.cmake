whit_test(json ${CMAKE_CURRENT_LIST_DIR}/json.c)
