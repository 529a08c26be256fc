whit_test(train_gradients ${CMAKE_CURRENT_LIST_DIR}/train_gradients.c)
whit_test(train_models ${CMAKE_CURRENT_LIST_DIR}/train_models.c)
whit_test(train_products ${CMAKE_CURRENT_LIST_DIR}/train_products.c)
whit_test(train_memory ${CMAKE_CURRENT_LIST_DIR}/train_memory.c)
