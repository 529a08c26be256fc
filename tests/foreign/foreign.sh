# SPDX-License-Identifier: MIT
# foreign.sh [PROJECTS]: whit's commands in projects of strangers; without PROJECTS for FOREIGN_SECONDS.
grep -q 'WHIT_HAVE_CURL *1' "$BUILD/generated/whit_config.h" || {
    echo "[ SKIPPED ] a build without libcurl asks no endpoint"
    exit 77
}
command -v git >/dev/null || {
    echo "[ SKIPPED ] without git there are no repositories of strangers"
    exit 77
}
. "$SOURCE/tests/cli/lib.sh"
has_terminals || exit 77
exec python3 "$SOURCE/tests/foreign/foreign.py" "$WHIT" "$TINY" "$@"
