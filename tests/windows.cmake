# Suites that `make test-windows` runs under wine. Others need aligned_alloc (which mingw-w64 lacks, since its free takes
# no such memory), fork, setrlimit or a shell.
whit_test(windows_posix unit/windows_posix.c)
target_link_libraries(test_windows_posix PRIVATE whit_sandbox)
whit_test(threads unit/threads.c)
whit_test(json unit/json.c)
whit_test(safetensors unit/safetensors.c)
whit_test(hf unit/hf.c)
whit_test(tokenizer_scan unit/tokenizer_scan.c)
whit_test(tokenizer_cases golden/tokenizer_cases.c)
whit_test(template unit/template.c)
whit_test(template_cases golden/template_cases.c)
whit_test(codec kernels/codec.c)
whit_test(kernels_reference kernels/reference.c)
whit_test(kernels_equal_vectors kernels/equal_vectors.c)
whit_test(golden_logits golden/logits.c)
whit_test(golden_families golden/families.c)
whit_test(reproducible golden/reproducible.c)
whit_test(generation unit/generation.c)
add_test(NAME windows_serve COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/packaging/foreign.py ${CMAKE_CROSSCOMPILING_EMULATOR}
         $<TARGET_FILE:whit> ${PROJECT_SOURCE_DIR}/build/whit ${PROJECT_SOURCE_DIR}/build/tests/hub_serve
         ${PROJECT_SOURCE_DIR}/build/tests/tiny_model)
add_test(NAME windows_library COMMAND ${CMAKE_CURRENT_LIST_DIR}/packaging/windows_library.sh ${PROJECT_SOURCE_DIR}
         ${PROJECT_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR}/scratch/library)
add_test(NAME windows_installer COMMAND ${CMAKE_CURRENT_LIST_DIR}/packaging/windows_installer.py
         ${CMAKE_CROSSCOMPILING_EMULATOR}
         ${PROJECT_BINARY_DIR}/../packages/whit-${PROJECT_VERSION}-windows-x64-setup.exe ${PROJECT_VERSION}
         ${CMAKE_CURRENT_BINARY_DIR}/scratch/installer)
add_test(NAME windows_agent COMMAND ${CMAKE_CURRENT_LIST_DIR}/agent/windows.py ${CMAKE_CROSSCOMPILING_EMULATOR}
         $<TARGET_FILE:whit> ${CMAKE_CURRENT_BINARY_DIR}/scratch/agent)
add_test(NAME windows_bench COMMAND ${CMAKE_CURRENT_LIST_DIR}/cli/windows_bench.py ${CMAKE_CROSSCOMPILING_EMULATOR}
         $<TARGET_FILE:whit> ${PROJECT_SOURCE_DIR}/tools/tales/tales.ndf)
add_test(NAME windows_verbs COMMAND ${CMAKE_CURRENT_LIST_DIR}/cli/windows_verbs.py ${CMAKE_CROSSCOMPILING_EMULATOR}
         $<TARGET_FILE:whit> ${PROJECT_SOURCE_DIR}/build/whit ${PROJECT_SOURCE_DIR}/tools/tales/tales.ndf
         ${PROJECT_SOURCE_DIR}/build/tests/tiny_model ${CMAKE_CURRENT_BINARY_DIR}/scratch/verbs)
add_test(NAME windows_edit COMMAND ${CMAKE_CURRENT_LIST_DIR}/editor/console.sh ${CMAKE_CROSSCOMPILING_EMULATOR}
         $<TARGET_FILE:whit> ${PROJECT_SOURCE_DIR}/build/tests/editor_scenes)
set_tests_properties(windows_edit windows_serve windows_library windows_installer windows_agent windows_bench windows_verbs PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
