# SPDX-License-Identifier: MIT
# names.sh LIBRARY...: no name is defined twice in what one program links, and the test sees one that is.
set -u
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Every name that a library gives away, and where: NAME LIBRARY:OBJECT.
names() {
    for library in "$@"; do
        nm -g --defined-only "$library" 2>/dev/null | awk -v library="${library##*/}" '
            /:$/ { object = $1 }
            NF == 3 && $2 ~ /^[A-Z]$/ && $2 !~ /[WV]/ { print $3, library ":" object }'
    done
}
twice() {
    names "$@" | sort | awk '$1 == last { print $1 ": " place " and " $2 } { last = $1; place = $2 }'
}

n=$(names "$@" | wc -l)
[ "$n" -gt 500 ] || {
    echo "only $n names in $*"
    failed=1
}
found=$(twice "$@")
[ -z "$found" ] || {
    echo "$found"
    failed=1
}
echo 'int whit_here_and_there; int whit_there(void) { return 0; }' >"$work/a.c"
echo 'int whit_there(void) { return 1; }' >"$work/b.c"
for part in a b; do "$CC" -c "$work/$part.c" -o "$work/$part.o" && ar rc "$work/$part.a" "$work/$part.o"; done
[ "$(twice "$work/a.a" "$work/b.a" | cut -d: -f1)" = whit_there ] || {
    echo "a name that two libraries define was not seen"
    failed=1
}
exit $failed
