# What of the package for JavaScript needs no WebAssembly; the rest takes a build by emscripten.
if(NOT WHIT_SANITIZE_ADDRESS AND NOT WHIT_SANITIZE_THREAD AND NOT WHIT_FUZZ AND NOT CMAKE_CROSSCOMPILING)
  whit_script(js_package ${CMAKE_CURRENT_LIST_DIR}/package.sh)
  whit_script_long(js_wasm_long 3600 ${CMAKE_CURRENT_LIST_DIR}/wasm.sh)
endif()
