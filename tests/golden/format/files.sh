# SPDX-License-Identifier: MIT
# Golden files of version 1 of the format, made by make.sh when it became that: what is in them is found
# by every later program, and by the second reader.
. "$SOURCE/tests/cli/lib.sh"
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
export XDG_CACHE_HOME=$PWD/cache XDG_STATE_HOME=$PWD/cache
rm -rf cache ./*.ndf ./*.mem
cp "$SOURCE"/tests/golden/format/*.ndf "$SOURCE"/tests/golden/format/*.mem "$SOURCE"/tests/golden/format/*.pub .
chmod u+w ./*.ndf ./*.mem
for name in b1 t t2 ternary-q2 q2 appended; do
    # shellcheck disable=SC2086 # the emulator is a command with arguments
    ${EMULATOR:-} "$1" $name.ndf >read 2>&1 || complain "ndf-read $name.ndf: $(tail -n 1 read)"
    grep -q "^identity $(python3 -c "import json; print(json.load(open('$SOURCE/tests/golden/format/golden.json'))['$name']['identity'])")" read ||
        complain "ndf-read finds another identity in $name.ndf"
done
WHIT="${EMULATOR:-} $WHIT" python3 "$SOURCE/tests/golden/format/golden.py" check "$SOURCE/tests/golden/format/golden.json" || failed=1
# Version 0 is refused by name.
python3 -c 'data = bytearray(open("t.ndf", "rb").read()); data[8] = 0; open("old.ndf", "wb").write(data)'
expect 3 whit run -m old.ndf -n 1
one_line 'old.ndf' 'version 0 of the format' 'make it again'
finish
