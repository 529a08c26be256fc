whit_test(profile ${CMAKE_CURRENT_LIST_DIR}/profile.c ${PROJECT_SOURCE_DIR}/src/cli/profile.c)
