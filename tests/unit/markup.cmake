whit_test(markup ${CMAKE_CURRENT_LIST_DIR}/markup.c ${PROJECT_SOURCE_DIR}/src/cli/markup.c)
