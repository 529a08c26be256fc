# SPDX-License-Identifier: MIT
# whit graph as a user asks it.
. "$SOURCE/tests/cli/lib.sh"
rm -rf project cache latin accents odd
mkdir -p project/inc
printf '#include "inc/a.h"\nint main(void) { return helper(1); }\n' >project/main.c
printf 'int helper(int n);\n#define LIMIT 3\n' >project/inc/a.h
printf '#include "a.h"\nint helper(int n)\n{\n    return n + LIMIT;\n}\n' >project/inc/a.c
graph() { whit graph project --cache cache "$@"; }
expect 0 graph
grep -q '3 files, 9 lines' out || complain "counts: $(cat out)"
grep -q 'built' out || complain "not built: $(cat out)"
expect 0 graph
grep -q 'unchanged' out || complain "built twice"
expect 0 graph def helper
[ "$(cat out)" = "inc/a.c:2: function helper" ] || complain "def: $(cat out)"
expect 0 graph callers helper
[ "$(cat out)" = "main.c:2: in main" ] || complain "callers: $(cat out)"
expect 0 graph refs LIMIT
[ "$(cat out)" = "inc/a.c:4: in helper" ] || complain "refs: $(cat out)"
expect 0 graph imports inc/a.c
[ "$(cat out)" = "inc/a.c:1: a.h is inc/a.h" ] || complain "imports: $(cat out)"
expect 0 graph like helper
[ "$(head -1 out)" = "inc/a.c:2: function helper" ] || complain "like: $(cat out)"
expect 0 graph like "help me"
[ "$(head -1 out)" = "inc/a.c:2: function helper" ] || complain "like words: $(cat out)"
expect 0 graph def nothing
[ ! -s out ] || complain "nothing is defined"
expect 0 graph def helper --json
python3 -c 'import json; r = json.load(open("out")); assert r[0]["line"] == 2 and r[0]["end_line"] == 5, r' || complain "json"
expect 0 graph map --tokens 100
grep -q 'int helper(int n)' out || complain "map: $(cat out)"
# What JSON cannot hold is a failure, not an empty success.
mkdir -p latin
printf 'int lone(int n) /* \350 */\n{\n    return n;\n}\n' >latin/lone.c
expect 0 whit graph latin map --cache cache
expect 5 whit graph latin map --cache cache --json
one_line "not UTF-8"
[ ! -s out ] || complain "half an object: $(cat out)"
# Names of files that are not UTF-8 leave no row out.
odd=$(printf 'n\350')
mkdir -p odd
printf 'int odd_one(void) { return odd_one(); }\n' >"odd/$odd.h"
printf '#include "%s.h"\n' "$odd" >odd/a.c
for query in "def odd_one" "callers odd_one" "imports a.c"; do
    # shellcheck disable=SC2086 # a query and its name
    expect 0 whit graph odd $query --cache cache --json
    python3 -c 'import json; r, = json.load(open("out", encoding="utf-8")); assert "n\ufffd.h" in (r["file"], r.get("is")), r' || complain "$query"
done
# A long line is cut between characters, wherever they lie.
for space in '' ' '; do
    mkdir -p accents
    python3 -c 'import sys; open("accents/f.c", "wb").write(("int f(void) /* " + sys.argv[1] + 60 * "\u00e9" + " */\n{\n}\n").encode())' "$space"
    expect 0 whit graph accents map --cache cache --json
    python3 -c 'import json; assert "\u00e9" in json.load(open("out", encoding="utf-8"))["map"]' || complain "no accents"
done
printf 'int other(void) { return helper(2); }\n' >>project/main.c
expect 0 graph callers helper
grep -q 'main.c:3: in other' out || complain "an edit is not followed: $(cat out)"
expect 0 graph like others
[ "$(head -1 out)" = "main.c:3: function other" ] || complain "like does not follow: $(cat out)"
[ "$(grep -c 'function main' out)" = 1 ] || complain "like has main twice or not at all: $(cat out)"
expect 2 graph what
one_line "what"
expect 2 graph def
one_line "needs a name"
expect 1 graph imports none.c
one_line "none.c"
expect 5 whit graph no-such-folder
one_line "no-such-folder"
finish
