whit_test(conversation ${CMAKE_CURRENT_LIST_DIR}/conversation.c)
