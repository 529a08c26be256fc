# What a build for Windows has beside the others: versions that Windows shows, and the exports of whit.dll.

# whit_windows_version(TARGET FILE KIND [MANIFEST]): KIND is 1 of a program, 2 of a library (FILETYPE).
function(whit_windows_version target whit_file whit_file_type)
  string(REPLACE "." "," whit_numbers ${PROJECT_VERSION},0)
  set(whit_manifest "")
  if(ARGN)
    set(whit_manifest "1 24 \"${ARGN}\"\n")
  endif()
  set(output ${PROJECT_BINARY_DIR}/generated/${whit_file}.rc)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/windows.rc.in ${output} @ONLY)
  target_sources(${target} PRIVATE ${output})
  set_source_files_properties(${output} PROPERTIES OBJECT_DEPENDS "${ARGN}")
endfunction()

# whit_windows_library(TARGET): whit.dll, with the import library libwhit.dll.a. It exports exactly the functions that
# the public headers declare, by a module definition file, of which other compilers can make their import libraries.
function(whit_windows_library target)
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/*.h ${PROJECT_SOURCE_DIR}/include/whit/*.h)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers})
  set(names "")
  foreach(header IN LISTS headers)
    file(READ ${header} text)
    string(REGEX MATCHALL "WHIT_API[^(;]*[ *]whit_[a-z0-9_]+\\(" declarations "${text}")
    list(TRANSFORM declarations REPLACE ".*[ *](whit_[a-z0-9_]+)\\($" "    \\1\n")
    list(APPEND names ${declarations})
  endforeach()
  list(SORT names)
  string(JOIN "" names ${names})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/whit.def CONTENT "LIBRARY whit.dll\nEXPORTS\n${names}" @ONLY)
  target_sources(${target} PRIVATE ${PROJECT_BINARY_DIR}/whit.def)
  set_target_properties(${target} PROPERTIES PREFIX "")
  whit_windows_version(${target} whit.dll 2)
endfunction()
