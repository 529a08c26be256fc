# WebAssembly by emscripten, whose C library has most of POSIX.
target_sources(whit_objects PRIVATE wasm/system_wasm.c metadata.c)
target_compile_options(whit_options INTERFACE -msimd128 -include ${CMAKE_CURRENT_LIST_DIR}/posix.h)
