# SPDX-License-Identifier: MIT
# A person ends a task.
grep -q 'WHIT_HAVE_CURL *1' "$BUILD/generated/whit_config.h" || {
    echo "[ SKIPPED ] a build without libcurl asks no endpoint"
    exit 77
}
exec python3 "$SOURCE/tests/agent/cancels.py" "$WHIT"
