# SPDX-License-Identifier: MIT
# idle.sh SECONDS: memory and wake-ups of an editor whose agent does nothing.
for name in CURL NCURSESW; do
    grep -q "WHIT_HAVE_$name *1" "$BUILD/generated/whit_config.h" || {
        echo "[ SKIPPED ] a build without $name"
        exit 77
    }
done
if grep -qE 'WHIT_SANITIZE_[A-Z]*:BOOL=ON' "$BUILD/CMakeCache.txt"; then
    echo "[ SKIPPED ] sanitizers want memory of their own"
    exit 77
fi
. "$SOURCE/tests/cli/lib.sh"
has_terminals || exit 77
exec python3 "$SOURCE/tests/agent/idle.py" "$WHIT" "$1"
