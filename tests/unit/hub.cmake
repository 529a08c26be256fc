whit_test(hub ${CMAKE_CURRENT_LIST_DIR}/hub.c)
target_link_libraries(test_hub PRIVATE whit_hub)
whit_test(hub_pull ${CMAKE_CURRENT_LIST_DIR}/hub_pull.c ${CMAKE_CURRENT_LIST_DIR}/../hub_server.c)
target_link_libraries(test_hub_pull PRIVATE whit_hub)
