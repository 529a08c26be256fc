# What code inside a server reaches.
whit_test(server_inside ${CMAKE_CURRENT_LIST_DIR}/inside.c)
target_link_libraries(test_server_inside PRIVATE whit_server)
# The server, driven by a script as clients would.
if(NOT CMAKE_CROSSCOMPILING)
  whit_script(server_serve ${CMAKE_CURRENT_LIST_DIR}/serve.sh)
  whit_script(server_models ${CMAKE_CURRENT_LIST_DIR}/models.sh)
  whit_script(server_keep ${CMAKE_CURRENT_LIST_DIR}/keep.sh)
  whit_script(server_soak ${CMAKE_CURRENT_LIST_DIR}/soak.sh)
  whit_script(server_page ${CMAKE_CURRENT_LIST_DIR}/page.sh)
  whit_script(server_balance ${CMAKE_CURRENT_LIST_DIR}/balance.sh)
  whit_script_long(server_balance_long 1200 ${CMAKE_CURRENT_LIST_DIR}/balance.sh ENVIRONMENT LONG=1)
  whit_script_long(server_soak_long 1200 ${CMAKE_CURRENT_LIST_DIR}/soak.sh ENVIRONMENT SOAK_SECONDS=600)
endif()
