# Projects of strangers, drawn by a seed, in which all commands are played.
if(NOT CMAKE_CROSSCOMPILING)
  whit_script(foreign_projects ${CMAKE_CURRENT_LIST_DIR}/foreign.sh 2)
  whit_script(foreign_checks_fail ${CMAKE_CURRENT_LIST_DIR}/checks_fail.sh)
  whit_script_long(foreign_projects_long 3600 ${CMAKE_CURRENT_LIST_DIR}/foreign.sh ENVIRONMENT FOREIGN_SECONDS=600 WHIT_SEED=1000)
endif()
