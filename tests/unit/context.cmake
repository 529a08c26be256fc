# What a running model keeps: session files, signatures, the cache of keys and values.
whit_test(session_file ${CMAKE_CURRENT_LIST_DIR}/session_file.c)
whit_test(reuse ${CMAKE_CURRENT_LIST_DIR}/reuse.c)
# Several ranks, as threads.
whit_test(split ${CMAKE_CURRENT_LIST_DIR}/split.c)
