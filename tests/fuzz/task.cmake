whit_fuzz(task)
target_sources(fuzz_task PRIVATE ${PROJECT_SOURCE_DIR}/src/cli/task.c)
