# SPDX-License-Identifier: MIT
# The languages of schemas by whole texts: own tables, bounded numbers at random, and the shared cases where they are.
set -u
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
failed=0
python3 "$SOURCE/tests/grammar/accept.py" "$1" "$SOURCE"/tests/grammar/accept/*.jsonl || failed=1
for seed in 1 2 3; do python3 "$SOURCE/tests/grammar/bounded.py" "$1" $seed || failed=1; done
for name in number-bounds enum-escapes property-names; do
    table=$SHARED/cases/wild/$name.jsonl
    [ -f "$table" ] || continue
    python3 "$SOURCE/tests/grammar/accept.py" "$1" "$table" || failed=1
done
for request in "$SHARED"/cases/clients/schema-*.json "$SHARED"/cases/clients/messages-forced-tool-map.json; do
    [ -f "$request" ] || continue
    python3 "$SOURCE/tests/grammar/accept.py" "$1" "$request" || failed=1
done
exit $failed
