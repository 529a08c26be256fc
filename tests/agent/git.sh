# SPDX-License-Identifier: MIT
# Turns in a git work tree. usage: git.sh TURNS
grep -q 'WHIT_HAVE_GIT2 *1' "$BUILD/generated/whit_config.h" || {
    echo "[ SKIPPED ] a build without libgit2 makes no commits"
    exit 77
}
command -v git >/dev/null || {
    echo "[ SKIPPED ] no git here to look at what was made"
    exit 77
}
exec python3 "$SOURCE/tests/agent/git.py" "$WHIT" "$1" "$(grep -c 'WHIT_HAVE_CURL *1' "$BUILD/generated/whit_config.h")"
