whit_script(cli_compress ${CMAKE_CURRENT_LIST_DIR}/compress.sh)
whit_script(cli_recorded ${CMAKE_CURRENT_LIST_DIR}/recorded.sh)
whit_script(cli_compare ${CMAKE_CURRENT_LIST_DIR}/compare.sh)
whit_script(cli_refine ${CMAKE_CURRENT_LIST_DIR}/refine.sh)
whit_script(cli_compress_bits ${CMAKE_CURRENT_LIST_DIR}/compress_bits.sh)
whit_script(cli_compress_family ${CMAKE_CURRENT_LIST_DIR}/compress_family.sh)
# Twenty kills: ctest -C Long, make test-long.
if(NOT CMAKE_CROSSCOMPILING)
  whit_script_long(cli_compress_long 3600 ${CMAKE_CURRENT_LIST_DIR}/compress.sh ENVIRONMENT WHIT_TEST_KILLS=20)
endif()
# Two layers of TinyLlama's shape: a quarter as wide, and in `make test-long` as they are, in 1,400 MB.
whit_script(cli_compress_shape ${CMAKE_CURRENT_LIST_DIR}/compress_shape.sh 4 130)
if(NOT CMAKE_CROSSCOMPILING)
  whit_script_long(cli_compress_shape_long 3600 ${CMAKE_CURRENT_LIST_DIR}/compress_shape.sh 1 1400)
endif()
# A budget of bits on prose-6M: how near the files are.
if(NOT CMAKE_CROSSCOMPILING)
  whit_script_long(cli_compress_bars_long 3600 ${CMAKE_CURRENT_LIST_DIR}/compress_bars.sh)
endif()
