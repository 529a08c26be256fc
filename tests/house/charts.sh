# SPDX-License-Identifier: MIT
# The pictures of speed and quality are of the data beside them, and the page of figures stays one that is read.
set -u
failed=0
"$SOURCE/tools/charts" --check || failed=1
lines=$(wc -l <"$SOURCE/docs/use/performance.md")
[ "$lines" -le 120 ] || {
    echo "docs/use/performance.md has $lines lines; at most 120"
    failed=1
}
exit $failed
