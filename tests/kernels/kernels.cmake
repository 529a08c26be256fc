whit_test(codec ${CMAKE_CURRENT_LIST_DIR}/codec.c)
whit_test(kernels_reference ${CMAKE_CURRENT_LIST_DIR}/reference.c)
whit_test(kernels_packed ${CMAKE_CURRENT_LIST_DIR}/packed.c)
whit_test(kernels_equal_vectors ${CMAKE_CURRENT_LIST_DIR}/equal_vectors.c)
whit_test(kernels_equal_matmul ${CMAKE_CURRENT_LIST_DIR}/equal_matmul.c)

whit_brief(kernels_equal_matmul WHIT_TEST_BRIEF=1)
whit_brief(kernels_equal_vectors WHIT_TEST_BRIEF=1)
# Once more as older processors run them (qemu emulates none with AVX-512); sanitizers do not run there.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT WHIT_SANITIZE_ADDRESS AND NOT WHIT_SANITIZE_THREAD AND NOT WHIT_FUZZ)
  foreach(test codec kernels_reference kernels_equal_vectors reproducible session_fuzz)
    whit_script(nehalem_${test} ${CMAKE_CURRENT_LIST_DIR}/older_cpus.sh Nehalem generic $<TARGET_FILE:test_${test}>)
  endforeach()
  foreach(test kernels_equal_matmul kernels_equal_vectors reproducible session_fuzz)
    whit_script(haswell_${test} ${CMAKE_CURRENT_LIST_DIR}/older_cpus.sh Haswell avx2 $<TARGET_FILE:test_${test}>)
  endforeach()
  # Whole sessions, of the kernels that the others compare one by one.
  whit_rest(nehalem_reproducible nehalem_session_fuzz haswell_reproducible haswell_session_fuzz)
endif()
