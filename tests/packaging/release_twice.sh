#!/bin/sh
# SPDX-License-Identifier: MIT
# make release-check: two releases of what is committed, each from a clone of its own, have the same bytes. The clones have
# paths of different lengths; no cache of compilations is used.
#
#   release_twice.sh [TARGET...]   further targets of the Makefile whose packages become part of it; default: npm, and those
#                                  for 64-bit Arm, where their tools are installed
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CCACHE_DISABLE=1
commit=$(git -C "$source" rev-parse HEAD)
if [ $# = 0 ]; then
    if command -v emcc >/dev/null; then set -- npm; fi
    if command -v aarch64-linux-gnu-gcc >/dev/null && "$source/tools/deps" check arm >/dev/null 2>&1; then
        set -- "$@" archive-arm64 wheel-arm64
    fi
fi
for folder in a a-folder-with-a-longer-name; do
    git clone -q --no-hardlinks "$source" "$work/$folder"
    git -C "$work/$folder" checkout -q "$commit" # a commit may have been made meanwhile
    make -s -C "$work/$folder" "$@" release >"$work/log" 2>&1 || {
        tail -n 20 "$work/log"
        exit 1
    }
    mkdir -p "$work/made/$folder"
    mv "$work/$folder/build-release" "$work/made/$folder/"
    ! grep -rqaF "$work/$folder" "$work/made/$folder/build-release" || {
        echo "a path of this machine is in the release"
        exit 1
    }
    rm -rf "${work:?}/$folder"
done
diff -rq "$work/made/a" "$work/made/a-folder-with-a-longer-name" || {
    echo "two releases differ"
    exit 1
}
echo "two releases have the same bytes:"
cat "$work/made/a/build-release/SHA256SUMS"
