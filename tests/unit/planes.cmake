whit_test(planes ${CMAKE_CURRENT_LIST_DIR}/planes.c ${CMAKE_CURRENT_LIST_DIR}/../random_model.c)
