whit_test(account ${CMAKE_CURRENT_LIST_DIR}/account.c ${PROJECT_SOURCE_DIR}/src/cli/interval.c)
