# SPDX-License-Identifier: MIT
# Builds grammars as `make grammars` does and looks at the editor's colours: tree.sh EDITOR_SCENES.
. "$SOURCE/tests/cli/lib.sh"
has_terminals || exit 77
editor_scenes=$1
rm -rf grammars
timeout 120 "$SOURCE/tools/grammars" "$PWD/grammars" c python >built 2>why || {
    # What the network does not give is no failure; a package that is another one is.
    grep -q 'sum is another' why && complain "$(cat why)" && finish
    echo "[ SKIPPED ] no grammars here: $(tail -n 1 why)"
    exit 77
}
[ "$(wc -l <built)" = 2 ] || complain "what was built: $(cat built)"
WHIT_GRAMMARS=$PWD/grammars "$1" "$WHIT" "$SOURCE/tests/editor/grammars/tree.scenes" || failed=1

# ---- a grammar that others may write to, and one that is none
chmod o+w grammars/c.so
refused() { # WHY
    {
        printf 'scene %s\nsize 200 6\nfile a.c\n|int x;\nopen a.c\nscreen\n' "$1"
        printf '|  1  int x;\n|  2\n|~\n|~\n| a.c%*sc  1:1  0%%\n|%s\n' 185 '' "$PWD/grammars/c.so: $1"
    } >refused.scenes
    WHIT_GRAMMARS=$PWD/grammars "$editor_scenes" "$WHIT" refused.scenes || failed=1
}
refused 'others may write to it, so it is not loaded'
chmod o-w grammars/c.so
echo no >grammars/c.so
refused 'is not a grammar; run make grammars again'
expect 2 "$SOURCE/tools/grammars" "$PWD/other" nothing
one_line "there is no grammar 'nothing'"
finish
