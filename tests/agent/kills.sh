# SPDX-License-Identifier: MIT
# Kills in the middle of turns. usage: kills.sh KILLS
grep -q 'WHIT_HAVE_CURL *1' "$BUILD/generated/whit_config.h" || {
    echo "[ SKIPPED ] a build without libcurl asks no endpoint"
    exit 77
}
"$WHIT" doctor | grep -q '^sandbox *Landlock ABI [1-9].*, seccomp' || {
    echo "[ SKIPPED ] this machine cannot hold the checks of a gate"
    exit 77
}
exec python3 "$SOURCE/tests/agent/kills.py" "$WHIT" "$1"
