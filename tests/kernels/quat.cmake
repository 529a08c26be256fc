whit_test(kernels_quat ${CMAKE_CURRENT_LIST_DIR}/quat.c)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT WHIT_SANITIZE_ADDRESS AND NOT WHIT_SANITIZE_THREAD AND NOT WHIT_FUZZ)
  whit_script(haswell_quat ${CMAKE_CURRENT_LIST_DIR}/older_cpus.sh Haswell avx2 $<TARGET_FILE:test_kernels_quat>)
endif()
