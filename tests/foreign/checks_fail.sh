# SPDX-License-Identifier: MIT
# The checks of foreign.py see faults that are planted.
command -v git >/dev/null || {
    echo "[ SKIPPED ] without git there are no repositories of strangers"
    exit 77
}
. "$SOURCE/tests/cli/lib.sh"
has_terminals || exit 77
exec python3 "$SOURCE/tests/foreign/checks_fail.py"
