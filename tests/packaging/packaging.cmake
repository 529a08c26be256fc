# Packages, made of the program that is built already. Sanitizers change nothing here.
if(NOT WHIT_SANITIZE_ADDRESS AND NOT WHIT_SANITIZE_THREAD AND NOT WHIT_FUZZ AND NOT CMAKE_CROSSCOMPILING)
  whit_script(packaging_deb ${CMAKE_CURRENT_LIST_DIR}/deb.sh)
  whit_script(packaging_install ${CMAKE_CURRENT_LIST_DIR}/install.sh)
  whit_script(packaging_formats ${CMAKE_CURRENT_LIST_DIR}/formats.sh)
  # Both install, and the build keeps one list of what was installed last.
  set_property(TEST packaging_deb house_install APPEND PROPERTY RESOURCE_LOCK install_manifest)
endif()
