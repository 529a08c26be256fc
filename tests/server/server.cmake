# The server, driven by a script as clients would.
if(NOT CMAKE_CROSSCOMPILING)
  whit_script(server_serve ${CMAKE_CURRENT_LIST_DIR}/serve.sh)
  whit_script(server_page ${CMAKE_CURRENT_LIST_DIR}/page.sh)
endif()
