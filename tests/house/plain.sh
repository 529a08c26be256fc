# SPDX-License-Identifier: MIT
# Comments, documents and names in plain English: what is left of the old dialect may only fall.
if ! git -C "$SOURCE" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    echo "[ SKIPPED ] the sources are not in a git work tree"
    exit 0
fi
exec python3 "$SOURCE/tests/house/plain.py"
