whit_test(planes ${CMAKE_CURRENT_LIST_DIR}/planes.c ${CMAKE_CURRENT_LIST_DIR}/../random_model.c)
whit_test(export ${CMAKE_CURRENT_LIST_DIR}/export.c ${CMAKE_CURRENT_LIST_DIR}/../random_model.c)
whit_few(export)
whit_test(export_families ${CMAKE_CURRENT_LIST_DIR}/export_families.c)
