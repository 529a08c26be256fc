# SPDX-License-Identifier: MIT
# The habits of other programs' users (habits.txt): each gets the right thing, or one line that helps.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
tiny model.gguf
tiny chat.gguf 1 chat
mkdir -p folder
: >folder/a.safetensors
printf 'the land and the ocean and then an inn on the land. %.0s' 1 2 3 >words
n=0
while IFS= read -r row; do
    case $row in '#'* | '') continue ;; esac
    command=${row%% | *}
    rest=${row#* | }
    wanted=${rest%% | *}
    pattern=${rest#* | }
    command=${command//%C/chat.gguf}
    command=${command//%D/folder}
    eval "set -- ${command//%M/model.gguf}"
    input=words
    case $command in run*) input=/dev/null ;; esac # its text would be a part of the prompt
    whit "$@" >out 2>err <$input
    status=$?
    [ "$status" = "$wanted" ] || complain "whit $command: ended with $status, not $wanted: $(head -c 300 err)"
    cat out err | grep -q -- "$pattern" || complain "whit $command: lacks '$pattern': $(cat err)"
    [ "$wanted" = 0 ] || [ "$(wc -l <err)" = 1 ] || complain "whit $command: more than a line: $(cat err)"
    n=$((n + 1))
done <"$SOURCE/tests/cli/habits.txt"
[ "$n" -ge 60 ] || complain "only $n habits"

# No row stands for a command that is there by now.
whit help --list >verbs
sed -n 's/^    {"\([a-z][^"]*\)".*/\1/p' "$SOURCE/src/cli/habits.c" | tr -d ' ' | tr ',' '\n' >words
grep -Fxf verbs words && complain "these commands are there"

# Pages that messages name exist.
for page in $(grep -rhoE 'docs/[a-z/-]+\.md' "$SOURCE/src" | sort -u); do
    [ -s "$SOURCE/$page" ] || complain "a message or comment names $page, which is absent"
done
finish
