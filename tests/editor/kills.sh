# SPDX-License-Identifier: MIT
# The editor killed while a person types, saves and recovers. usage: kills.sh KILLS
"$WHIT" edit --list-keys >/dev/null && grep -q 'WHIT_HAVE_NCURSESW *1' "$BUILD/generated/whit_config.h" || {
    echo "[ SKIPPED ] a build without ncursesw has no editor"
    exit 77
}
exec python3 "$SOURCE/tests/editor/kills.py" "$WHIT" "$1"
