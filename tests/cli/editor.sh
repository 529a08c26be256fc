# SPDX-License-Identifier: MIT
# What whit edit says without a terminal; the rows of keys in its page are the program's.
. "$SOURCE/tests/cli/lib.sh"
expect 0 whit edit --list-keys
grep -E '^\| (Command|`)' "$SOURCE/docs/use/editor.md" >table
grep -E '^\| (Command|`)' out >keys
[ "$(wc -l <table)" -gt 20 ] || complain "docs/use/editor.md lists $(wc -l <table) keys"
! grep -vxFf keys table >wrong || complain "keys in docs/use/editor.md are not those of the program: $(head -4 wrong)"
# Settings that were asked for must be there; the editor does not begin without them.
expect 5 whit edit --config nope.conf some.txt
one_line "whit edit: nope.conf: cannot open"
expect 2 whit edit +3 -
one_line "+3: only a file"
command -v setsid >/dev/null || finish
setsid "$WHIT" edit --no-journal some.txt >out 2>err </dev/null
[ $? != 0 ] || complain "no terminal should be an error"
one_line "whit edit"
[ ! -e some.txt ] || complain "a file was made"
finish
