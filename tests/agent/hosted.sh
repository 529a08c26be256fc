# SPDX-License-Identifier: MIT
# The conversations of an editor that hosts the agent.
grep -q 'WHIT_HAVE_CURL *1' "$BUILD/generated/whit_config.h" || {
    echo "[ SKIPPED ] a build without libcurl asks no endpoint"
    exit 77
}
exec python3 "$SOURCE/tests/agent/hosted.py" "$WHIT"
