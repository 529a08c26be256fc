whit_test(families ${CMAKE_CURRENT_LIST_DIR}/families.c)
whit_test(config_layers ${CMAKE_CURRENT_LIST_DIR}/config_layers.c)
whit_test(rope_scaling ${CMAKE_CURRENT_LIST_DIR}/rope_scaling.c)
target_link_libraries(test_rope_scaling PRIVATE PkgConfig::JANSSON)
