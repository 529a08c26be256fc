# The package for Python loads the shared library as users get it; sanitizers want to be loaded before the interpreter.
if(NOT WHIT_SANITIZE_ADDRESS AND NOT WHIT_SANITIZE_THREAD AND NOT WHIT_FUZZ AND NOT CMAKE_CROSSCOMPILING)
  whit_script(python_bindings ${CMAKE_CURRENT_LIST_DIR}/bindings.sh $<TARGET_FILE:whit_shared>)
endif()
