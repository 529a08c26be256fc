# ThreadSanitizer maps more addresses than the limits of a run allow.
if(WHIT_SANITIZE_THREAD)
  return()
endif()

add_executable(sandbox_escape ${CMAKE_CURRENT_LIST_DIR}/escape.c)
whit_test(sandbox ${CMAKE_CURRENT_LIST_DIR}/sandbox.c)
target_link_libraries(test_sandbox PRIVATE whit_sandbox)
target_compile_definitions(test_sandbox PRIVATE ESCAPE="$<TARGET_FILE:sandbox_escape>")
add_dependencies(test_sandbox sandbox_escape)
# Sanitizers want more addresses than a command gets.
target_compile_options(sandbox_escape PRIVATE -fno-sanitize=all)
target_link_options(sandbox_escape PRIVATE -fno-sanitize=all)
