# What users type first, and what they bring along from other programs.
set(cli ${CMAKE_CURRENT_LIST_DIR})
whit_script(cli_contact ${cli}/contact.sh)
whit_script(cli_habits ${cli}/habits.sh)
whit_script(cli_terminal ${cli}/terminal.sh)
whit_script(cli_context ${cli}/context.sh)
whit_script(cli_talk ${cli}/talk.sh)
whit_script(cli_long_work ${cli}/long_work.sh)
whit_script(cli_copies ${cli}/copies.sh)
whit_script(cli_words ${cli}/words.sh)
whit_script(cli_json ${cli}/json.sh)
whit_script(cli_killed ${cli}/killed.sh)
# Fifty kills of each writer: ctest -C Long, make test-long.
whit_script_long(cli_killed_long 3600 ${cli}/killed.sh 50)
