# SPDX-License-Identifier: MIT
# Commands of an agent, the gate, and questions at a terminal.
grep -q 'WHIT_HAVE_CURL *1' "$BUILD/generated/whit_config.h" || {
    echo "[ SKIPPED ] a build without libcurl asks no endpoint"
    exit 77
}
. "$SOURCE/tests/cli/lib.sh"
has_terminals || exit 77
exec python3 "$SOURCE/tests/agent/gate.py" "$WHIT"
