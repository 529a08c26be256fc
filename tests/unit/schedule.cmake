whit_test(schedule ${CMAKE_CURRENT_LIST_DIR}/schedule.c ${CMAKE_CURRENT_LIST_DIR}/../random_model.c)
whit_few(schedule)
