whit_fuzz(task)
target_sources(fuzz_task PRIVATE ${CMAKE_SOURCE_DIR}/src/cli/task.c)
