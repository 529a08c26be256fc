whit_test(sampler_chain ${CMAKE_CURRENT_LIST_DIR}/sampler_chain.c)
