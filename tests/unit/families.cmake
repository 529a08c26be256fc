whit_test(families ${CMAKE_CURRENT_LIST_DIR}/families.c)
whit_test(config_layers ${CMAKE_CURRENT_LIST_DIR}/config_layers.c)
