# What `make install` puts in place: the program, both libraries, the headers, package files for
# pkg-config and CMake, man pages and completion scripts (made by the program from its tables).
include(CMakePackageConfigHelpers)

set(manuals ${PROJECT_BINARY_DIR}/manuals)
add_custom_command(OUTPUT ${manuals}/man1/whit.1
  COMMAND ${PROJECT_SOURCE_DIR}/tools/manuals ${manuals} ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:whit>
  DEPENDS whit ${PROJECT_SOURCE_DIR}/tools/manuals VERBATIM)
add_custom_target(whit_manuals ALL DEPENDS ${manuals}/man1/whit.1)

install(TARGETS whit)
install(TARGETS whit_static whit_shared EXPORT whit_targets)
install(FILES ${PROJECT_SOURCE_DIR}/include/whit.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/whit DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
install(DIRECTORY ${manuals}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN *.md PATTERN *.svg PATTERN *.png PATTERN *.tsv)
# The documents link to these.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples ${PROJECT_SOURCE_DIR}/deploy DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${manuals}/bash/whit DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${manuals}/zsh/_whit DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${manuals}/fish/whit.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# What a program that links the static library must link too.
set(WHIT_PRIVATE_MODULES "jansson libpcre2-8 libutf8proc libsodium")
# Named as libraries, and not as modules: pkg-config would give every program the modules' flags for compiling.
find_package(PkgConfig REQUIRED)
set(WHIT_PRIVATE_LIBRARIES "")
separate_arguments(private_modules UNIX_COMMAND "${WHIT_PRIVATE_MODULES}")
foreach(module IN LISTS private_modules)
  execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --static --libs ${module} OUTPUT_VARIABLE flags
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  string(APPEND WHIT_PRIVATE_LIBRARIES " ${flags}")
endforeach()
string(STRIP "${WHIT_PRIVATE_LIBRARIES}" WHIT_PRIVATE_LIBRARIES)
file(RELATIVE_PATH WHIT_PREFIX_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/whit.pc.in ${PROJECT_BINARY_DIR}/whit.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/whit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/whit)
set_target_properties(whit_shared PROPERTIES EXPORT_NAME whit)
set_target_properties(whit_static PROPERTIES EXPORT_NAME static)
install(EXPORT whit_targets NAMESPACE whit:: FILE whit-targets.cmake DESTINATION ${package})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/whit-config.cmake.in
                              ${PROJECT_BINARY_DIR}/whit-config.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/whit-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/whit-config.cmake ${PROJECT_BINARY_DIR}/whit-config-version.cmake
        DESTINATION ${package})
