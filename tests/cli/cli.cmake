# The command line program, as a user or a script meets it.
set(cli ${CMAKE_CURRENT_LIST_DIR})
whit_script(cli_usage ${cli}/usage.sh)
whit_script(cli_bench ${cli}/bench.sh)
whit_script(cli_model ${cli}/model.sh)
whit_script(cli_lines ${cli}/lines.sh)
whit_script(cli_golden ${cli}/golden.sh)
whit_script(cli_examples ${cli}/examples.sh)
whit_script(cli_chat ${cli}/chat.sh)
whit_script(cli_signals ${cli}/signals.sh)
if(NOT WHIT_SANITIZE_ADDRESS AND NOT WHIT_SANITIZE_THREAD)
  # Sanitizers need more address space than the limit that this test sets.
  whit_script(cli_hostile ${cli}/hostile.sh)
endif()
