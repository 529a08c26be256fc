whit_test(generation ${CMAKE_CURRENT_LIST_DIR}/generation.c)
whit_test(generation_neighbours ${CMAKE_CURRENT_LIST_DIR}/generation_neighbours.c)
whit_test(interface ${CMAKE_CURRENT_LIST_DIR}/interface.c)
whit_test(no_memory ${CMAKE_CURRENT_LIST_DIR}/no_memory.c)
