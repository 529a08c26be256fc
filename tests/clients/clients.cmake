# Requests of people's clients, replayed by a script. `make test-clients` runs the clients themselves.
if(NOT CMAKE_CROSSCOMPILING)
  whit_script(clients_replay ${CMAKE_CURRENT_LIST_DIR}/replay.sh)
endif()
