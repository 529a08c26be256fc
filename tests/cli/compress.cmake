whit_script(cli_compress ${CMAKE_CURRENT_LIST_DIR}/compress.sh)
# Twenty kills: ctest -C Long, make test-long.
if(NOT CMAKE_CROSSCOMPILING)
  set(scratch ${CMAKE_CURRENT_BINARY_DIR}/scratch/cli_compress_long)
  file(MAKE_DIRECTORY ${scratch})
  add_test(NAME cli_compress_long COMMAND bash ${CMAKE_CURRENT_LIST_DIR}/compress.sh WORKING_DIRECTORY ${scratch}
           CONFIGURATIONS Long)
  set_tests_properties(cli_compress_long PROPERTIES TIMEOUT 3600 ENVIRONMENT
    "WHIT=${PROJECT_BINARY_DIR}/whit;TINY=$<TARGET_FILE:tiny_model>;SOURCE=${PROJECT_SOURCE_DIR};BUILD=${PROJECT_BINARY_DIR};SHARED=${WHIT_SHARED_DIR};WHIT_TEST_KILLS=20")
endif()
