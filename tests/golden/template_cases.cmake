whit_test(template_cases ${CMAKE_CURRENT_LIST_DIR}/template_cases.c)
