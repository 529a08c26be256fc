# The command line program, as a user or a script meets it.
set(cli ${CMAKE_CURRENT_LIST_DIR})
whit_script(cli_usage ${cli}/usage.sh)
whit_script(cli_model ${cli}/model.sh)
whit_script(cli_golden ${cli}/golden.sh)
whit_script(cli_examples ${cli}/examples.sh)
