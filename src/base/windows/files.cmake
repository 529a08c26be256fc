# POSIX for Windows: every file of the build sees posix.h first.
target_sources(whit_objects PRIVATE windows/system_windows.c windows/metadata_windows.c windows/wide.c windows/files.c
               windows/names.c windows/maps.c windows/text.c windows/console.c windows/process.c windows/fma.c windows/sockets_windows.c
               windows/run_line.c windows/job.c windows/keys.c windows/paint.c)
target_compile_options(whit_options INTERFACE -include ${CMAKE_CURRENT_SOURCE_DIR}/windows/posix.h)
target_include_directories(whit_options BEFORE INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/windows/include)
target_link_libraries(whit_dependencies INTERFACE synchronization bcrypt psapi ws2_32)
