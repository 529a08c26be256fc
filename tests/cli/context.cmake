# Session files: the short form with every suite, 200 kills with make test-long.
set(cli ${CMAKE_CURRENT_LIST_DIR})
whit_script(cli_session ${cli}/session.sh 20)
whit_script(cli_kv ${cli}/kv.sh)
whit_script(cli_endless ${cli}/endless.sh)
whit_script(cli_draft ${cli}/draft.sh)
whit_script_long(cli_session_long 1200 ${cli}/session.sh 200)
