# SPDX-License-Identifier: MIT
# What whit edit says without a terminal; the table of keys in its page is the program's.
. "$SOURCE/tests/cli/lib.sh"
expect 0 whit edit --list-keys
grep -E '^\| (Command|`)' "$SOURCE/docs/editor.md" >table
grep -E '^\| (Command|`)' out >keys
cmp -s keys table || complain "the keys in docs/editor.md are not those of the program: $(diff keys table | head -4)"
command -v setsid >/dev/null || finish
setsid "$WHIT" edit --no-journal some.txt >out 2>err </dev/null
[ $? != 0 ] || complain "no terminal should be an error"
one_line "whit edit"
[ ! -e some.txt ] || complain "a file was made"
finish
