# SPDX-License-Identifier: MIT
# Every way of showing a change shows all of it, before anything is run or written.
grep -q 'WHIT_HAVE_CURL *1' "$BUILD/generated/whit_config.h" || {
    echo "[ SKIPPED ] a build without libcurl asks no endpoint"
    exit 77
}
. "$SOURCE/tests/cli/lib.sh"
has_terminals || exit 77
exec python3 "$SOURCE/tests/agent/shown.py" "$WHIT"
