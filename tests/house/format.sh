# SPDX-License-Identifier: MIT
# `make fmt` would change nothing, and no line of C is longer than .clang-format's limit: comments and strings,
# which it leaves alone, included. Lists of files for CMake and tables of other languages are left out.
set -u
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$SOURCE" || exit 1
limit=$(sed -n 's/^ColumnLimit: *//p' .clang-format)
find src include tests tools bench examples \( -name '*.c' -o -name '*.h' -o -name '*.inc' \) ! -path '*/corpus/*' |
    sort >"$work/files"
long=$(LC_ALL=C.UTF-8 xargs grep -nHE "^.{$((limit + 1)),}" <"$work/files")
[ -z "$long" ] || {
    printf 'longer than %s columns:\n%s\n' "$limit" "$long"
    failed=1
}
[ "$(grep -c . "$work/files")" -gt 500 ] || {
    echo "only $(grep -c . "$work/files") files of C were found"
    failed=1
}
if command -v clang-format >/dev/null; then
    grep -v '\.inc$' "$work/files" | xargs -P 2 -n 200 clang-format --dry-run -Werror 2>"$work/format" || {
        grep -m 20 error "$work/format"
        echo "make fmt writes these as they should be"
        failed=1
    }
fi
exit $failed
