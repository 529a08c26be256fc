#!/bin/bash
# SPDX-License-Identifier: MIT
# The independent reader (tools/ndf-read.c) and the library say the same about the same files.
#     ndf_reader.sh NDF_DUMP NDF_READ
set -eu
dump=$1 read=$2
rm -f ./*.ndf
$EMULATOR "$dump" make .
for file in model split adapter; do
    $EMULATOR "$dump" show $file.ndf >$file.library
    $EMULATOR "$read" --container $file.ndf >$file.reader # what their tensors hold is nothing that has a digest
    diff $file.library $file.reader
done
grep -c . model.reader
# Both find the parts beside the file that a link leads to.
mkdir -p linked
ln -sf ../split.ndf linked/split.ndf
$EMULATOR "$dump" show linked/split.ndf | diff split.library -
$EMULATOR "$read" --container linked/split.ndf | diff split.library -
rm -r linked
identities=$(grep -h ^identity model.reader split.reader | sort -u | wc -l)
[ "$identities" = 1 ] || { echo "splitting a model changed its identity"; exit 1; }

# Digests: of a tensor of every type with several lengths of rows the reader finds the library's; not of other bytes.
$EMULATOR "$dump" show types.ndf >types.library
$EMULATOR "$read" types.ndf >types.reader
diff types.library types.reader
[ "$(grep -c '^tensor ' types.reader)" -gt 800 ] || { echo "only $(grep -c '^tensor ' types.reader) types"; exit 1; }
if $EMULATOR "$read" model.ndf >/dev/null 2>why; then echo "ndf-read takes digests of anything"; exit 1; fi
grep -q 'other lengths\|not that of its parts' why

# The file that docs/dev/format.md prints, byte for byte, is the one that is written today.
$EMULATOR "$read" smallest.ndf | grep -q '^tensor w 1 2 ' || { echo "the smallest file cannot be read"; exit 1; }
sed -n '/^## 12/,$p' "$SOURCE/docs/dev/format.md" | sed -nE 's/^([0-9a-f]{4})  (([0-9a-f]{2} ?){8}) (([0-9a-f]{2} ?){8}).*/\1 \2 \4/p' |
    tr -s ' ' | sed 's/ $//' >printed
od -An -v -tx1 -w16 smallest.ndf | awk '{ printf "%04x%s\n", 16 * (NR - 1), $0 }' >written
[ "$(grep -c . printed)" -gt 60 ] || { echo "docs/dev/format.md prints $(grep -c . printed) rows"; exit 1; }
grep -vxFf printed written | grep -v '^....\( 00\)*$' && { echo "docs/dev/format.md prints another file"; exit 1; }
grep -vxFf written printed && { echo "docs/dev/format.md prints what is not in the file"; exit 1; }

# Both refuse a damaged byte in each of several places, and a missing end.
size=$(stat -c %s model.ndf)
for at in 9 130 700 $((size / 2)) $((size - 300)) $((size - 1)); do
    cp model.ndf damaged.ndf
    printf '\252' | dd of=damaged.ndf bs=1 seek=$at conv=notrunc status=none
    if $EMULATOR "$read" --container damaged.ndf >/dev/null 2>&1; then echo "ndf-read takes damage at $at"; exit 1; fi
    if $EMULATOR "$dump" show damaged.ndf >/dev/null 2>&1; then echo "whit takes damage at $at"; exit 1; fi
done
for at in 130 300 600; do
    cp adapter.ndf damaged.ndf
    printf '\252' | dd of=damaged.ndf bs=1 seek=$at conv=notrunc status=none
    if $EMULATOR "$read" --container damaged.ndf >/dev/null 2>&1; then echo "ndf-read takes an adapter's damage at $at"; exit 1; fi
    if $EMULATOR "$dump" show damaged.ndf >/dev/null 2>&1; then echo "whit takes an adapter's damage at $at"; exit 1; fi
done

# Both refuse what the specification forbids, under hashes that are right.
$EMULATOR "$dump" forge .
while read -r name reason; do
    if $EMULATOR "$read" --container "$name.ndf" >/dev/null 2>why; then echo "ndf-read takes $name.ndf"; exit 1; fi
    grep -q "$reason" why || { echo "ndf-read, $name.ndf: $(cat why)"; exit 1; }
    [ "$name" = pair ] && continue # the model room's to refuse, as all corrections are
    if $EMULATOR "$dump" show "$name.ndf" >/dev/null 2>&1; then echo "whit takes $name.ndf"; exit 1; fi
done <<'EOF'
files files: reserved
seal frame: reserved
empty a part is empty
nan a number is NaN
nans a number is NaN
boolean a wrong boolean
text a text has a wrong end
texts a text has a wrong end
pair a pair's second factor
EOF
head -c 1000 model.ndf >cut.ndf
if $EMULATOR "$read" --container cut.ndf 2>/dev/null; then echo "ndf-read takes a cut file"; exit 1; fi
rm -f ./*.ndf
