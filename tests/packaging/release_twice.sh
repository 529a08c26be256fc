#!/bin/sh
# SPDX-License-Identifier: MIT
# make release-check: two releases of what is committed, each from a clone of its own, have the same bytes. The clones have
# paths of different lengths; no cache of compilations is used.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CCACHE_DISABLE=1
for folder in a a-folder-with-a-longer-name; do
    git clone -q --no-hardlinks "$source" "$work/$folder"
    make -s -C "$work/$folder" release >"$work/log" 2>&1 || {
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
diff -r "$work/made/a" "$work/made/a-folder-with-a-longer-name" || {
    echo "two releases differ"
    exit 1
}
echo "two releases have the same bytes:"
cat "$work/made/a/build-release/SHA256SUMS"
