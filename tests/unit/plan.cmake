whit_test(plan ${CMAKE_CURRENT_LIST_DIR}/plan.c)
