whit_test(train_gradients ${CMAKE_CURRENT_LIST_DIR}/train_gradients.c)
whit_test(train_models ${CMAKE_CURRENT_LIST_DIR}/train_models.c)
