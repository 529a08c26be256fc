whit_test(template ${CMAKE_CURRENT_LIST_DIR}/template.c)
whit_test(template_limits ${CMAKE_CURRENT_LIST_DIR}/template_limits.c)
