# Grammars: answers at random over many schemas, looked at by an independent validator.
add_executable(grammar_sample ${CMAKE_CURRENT_LIST_DIR}/sample.c)
target_link_libraries(grammar_sample PRIVATE whit_static whit_options whit_dependencies)
target_include_directories(grammar_sample PRIVATE ${WHIT_ROOTS} ${PROJECT_BINARY_DIR}/generated)
whit_script(grammar_schemas ${CMAKE_CURRENT_LIST_DIR}/schemas.sh $<TARGET_FILE:grammar_sample>)
whit_script(grammar_cli ${CMAKE_CURRENT_LIST_DIR}/cli.sh)
whit_test(grammar ${CMAKE_CURRENT_LIST_DIR}/grammar.c)
