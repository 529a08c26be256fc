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
    $EMULATOR "$read" $file.ndf >$file.reader
    diff $file.library $file.reader
done
grep -c . model.reader
identities=$(grep -h ^identity model.reader split.reader | sort -u | wc -l)
[ "$identities" = 1 ] || { echo "splitting a model changed its identity"; exit 1; }

# Both refuse a damaged byte in each of several places, and a missing end.
size=$(stat -c %s model.ndf)
for at in 9 130 700 $((size / 2)) $((size - 300)) $((size - 1)); do
    cp model.ndf damaged.ndf
    printf '\252' | dd of=damaged.ndf bs=1 seek=$at conv=notrunc status=none
    if $EMULATOR "$read" damaged.ndf >/dev/null 2>&1; then echo "ndf-read takes damage at $at"; exit 1; fi
    if $EMULATOR "$dump" show damaged.ndf >/dev/null 2>&1; then echo "whit takes damage at $at"; exit 1; fi
done
for at in 130 300 600; do
    cp adapter.ndf damaged.ndf
    printf '\252' | dd of=damaged.ndf bs=1 seek=$at conv=notrunc status=none
    if $EMULATOR "$read" damaged.ndf >/dev/null 2>&1; then echo "ndf-read takes an adapter's damage at $at"; exit 1; fi
    if $EMULATOR "$dump" show damaged.ndf >/dev/null 2>&1; then echo "whit takes an adapter's damage at $at"; exit 1; fi
done
head -c 1000 model.ndf >cut.ndf
if $EMULATOR "$read" cut.ndf 2>/dev/null; then echo "ndf-read takes a cut file"; exit 1; fi
rm -f ./*.ndf
