# SPDX-License-Identifier: MIT
# Twelve tasks at once.
grep -q 'WHIT_HAVE_CURL *1' "$BUILD/generated/whit_config.h" || {
    echo "[ SKIPPED ] a build without libcurl asks no endpoint"
    exit 77
}
[ -z "${EMULATOR:-}" ] || {
    echo "[ SKIPPED ] a task is another run of the program, which an emulator does not start"
    exit 77
}
exec python3 "$SOURCE/tests/agent/parallel.py" "$WHIT"
