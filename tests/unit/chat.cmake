whit_test(answer ${CMAKE_CURRENT_LIST_DIR}/answer.c)
whit_test(chat_template ${CMAKE_CURRENT_LIST_DIR}/chat_template.c)
whit_test(embeddings ${CMAKE_CURRENT_LIST_DIR}/embeddings.c)
whit_test(calls ${CMAKE_CURRENT_LIST_DIR}/calls.c)
