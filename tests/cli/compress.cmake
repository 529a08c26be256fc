whit_script(cli_compress ${CMAKE_CURRENT_LIST_DIR}/compress.sh)
# Twenty kills: ctest -C Long, make test-long.
if(NOT CMAKE_CROSSCOMPILING)
  whit_script_long(cli_compress_long 3600 ${CMAKE_CURRENT_LIST_DIR}/compress.sh ENVIRONMENT WHIT_TEST_KILLS=20)
endif()
