# macOS on Apple silicon: the libraries alone, compiled on no such machine yet (docs/dev/porting.md).
target_sources(whit_objects PRIVATE path.c system_posix.c macos/posix.c macos/system_macos.c macos/metadata_macos.c)
target_compile_options(whit_options INTERFACE -include ${CMAKE_CURRENT_LIST_DIR}/posix.h)
