set(ndf_sample ${CMAKE_CURRENT_LIST_DIR}/ndf_sample.c)
whit_test(ndf ${CMAKE_CURRENT_LIST_DIR}/ndf.c ${ndf_sample})
whit_test(ndf_damage ${CMAKE_CURRENT_LIST_DIR}/ndf_damage.c ${ndf_sample})
whit_test(ndf_append ${CMAKE_CURRENT_LIST_DIR}/ndf_append.c ${ndf_sample})
whit_test(ndf_hostile ${CMAKE_CURRENT_LIST_DIR}/ndf_hostile.c ${ndf_sample})

# The library against the independent reader of tools/.
add_executable(ndf_dump ${CMAKE_CURRENT_LIST_DIR}/ndf_dump.c ${ndf_sample})
target_link_libraries(ndf_dump PRIVATE whit_static whit_options whit_dependencies)
target_include_directories(ndf_dump PRIVATE ${WHIT_ROOTS} ${PROJECT_SOURCE_DIR}/tests)
whit_script(ndf_reader ${CMAKE_CURRENT_LIST_DIR}/ndf_reader.sh $<TARGET_FILE:ndf_dump> $<TARGET_FILE:ndf-read>)
