whit_test(question ${CMAKE_CURRENT_LIST_DIR}/question.c ${PROJECT_SOURCE_DIR}/src/cli/task.c)
