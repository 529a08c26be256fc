# SPDX-License-Identifier: MIT
# whit bench --arrays: every form is measured, and says beside which.
. "$SOURCE/tests/cli/lib.sh"
expect 0 whit bench --arrays -r 1 --json
python3 - out <<'END' || complain "bench --arrays --json"
import json, sys
rows = json.load(open(sys.argv[1]))
forms = {(r["test"], r["form"]) for r in rows}
for wanted in [("add 896", "table of 65,536"), ("add 896", "f32 loop"), ("add 896", "bit-sliced"),
               ("add 896", "program: q += d, every round"),
               ("dot 3584", "8 popcounts"), ("dot 3584", "4 popcounts"), ("field of 40", "read in place"),
               ("r = a * b + 2 * a - b of 1,024", "program"),
               ("r = softmax(a) of 16,777,216", "C, gcc -O3 for this CPU")]:
    assert wanted in forms, wanted
assert all(r["ns"] > 0 and r["ratio"] > 0 for r in rows)
END
expect 0 env WHIT_CPU=generic $EMULATOR "$WHIT" bench --arrays -r 1 --csv
grep -q 'avx' out && complain "WHIT_CPU=generic is not obeyed by bench --arrays"
finish
