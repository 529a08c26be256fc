whit_test(bindings ${CMAKE_CURRENT_LIST_DIR}/bindings.c)
