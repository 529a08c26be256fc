# SPDX-License-Identifier: MIT
# whit compress --bits on a model that the script trains: within the budget, nearer to the original with more bits, the
# same bytes with other threads and after a kill, the choice in the file, and refusals. How near it is on a model of
# some size is for compress_bars.sh.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache ./*.ndf ./*.work
python3 -c 'import random
random.seed(5)
who, what = ["fox", "owl", "cat", "old man", "child"], ["ball", "hat", "red stone", "song", "letter"]
for i in range(1500):
    a, b, c = random.choice(who), random.choice(what), random.choice(who)
    print(f"The {a} number {i % 97} has a {b}. The {c} wants the {b} of the {a}.")' >text
head -c 16000 text >calibration
tail -c 8000 text >own
expect 0 whit train --text text --width 64 --layers 2 --heads 2 --ffn 128 --context 64 --vocab 300 -c 32 --sequences 8 \
    --threads 1 --embedding f32 --codec f32 --steps 250 --rate 1e-2 -o original.ndf --seed 1

bits_of() { whit inspect "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["body_bits_per_weight"])'; }

# ---- within the budget; nearer than fewer bits of one codec
for bits in 2.76 3.8; do
    expect 0 whit compress original.ndf --bits $bits --calib calibration -c 32 -t 2 --json -o $bits.ndf
    cp out $bits.json
    expect 0 whit verify $bits.ndf
done
expect 0 whit compress original.ndf --codec t --calib calibration -c 32 -o one.ndf
expect 0 whit compare original.ndf 2.76.ndf 3.8.ndf one.ndf -f own -c 32 --json
python3 - "$(bits_of 2.76.ndf)" "$(bits_of 3.8.ndf)" "$(bits_of one.ndf)" <<'END' || complain "$(cat out)"
import json, sys
small, large, one = map(float, sys.argv[1:])
kl = [f["kld_mean"] for f in json.load(open("out"))["texts"][0]["files"]]
assert 2.6 < small <= 2.76 and 3.5 < large <= 3.8, (small, large)
assert one < small and kl[1] < kl[0] < kl[2], (small, one, kl)
choice = json.load(open("2.76.json"))["choice"]
matrices = {line.split(":")[0]: line.split(": ")[1].split(",")[0] for line in choice[1:]}
assert len(matrices) == 14 and len(set(matrices.values())) > 1, choice
assert abs(float(choice[0].split()[0]) - small) < 0.02, (choice[0], small)
END
# ---- the file says who got what and why
expect 0 whit inspect 2.76.ndf
grep -q 'layers.1.down: .* bits, costs' out || complain "inspect says no choice: $(cat out)"
expect 0 whit compress original.ndf --bits 2.76 -v --calib calibration -c 32 -t 3 -o again.ndf
grep -q '^layers.0.v: .* costs' out || complain "-v says no choice: $(cat out)"
cmp -s 2.76.ndf again.ndf || complain "3 threads gave another file"

# ---- cut at a layer, resumed: the same bytes
# shellcheck disable=SC2086 # not the function: its shell would be killed, and the program would write on
WHIT_TEST=1 ${EMULATOR:-} "$WHIT" compress original.ndf --bits 2.76 --calib calibration -c 32 -t 1 -o cut.ndf >/dev/null 2>&1 &
pid=$!
while kill -0 $pid 2>/dev/null && [ "$(stat -c %s cut.ndf.work 2>/dev/null || echo 0)" -le 1000 ]; do sleep 0.01; done
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
expect 0 whit compress original.ndf --bits 2.76 --calib calibration -c 32 -t 2 --resume -o cut.ndf
cmp -s 2.76.ndf cut.ndf || complain "a resumed run gave another file"

# ---- refusals: one line each, and no file
for how in '--bits 1.1' '--bits 2.4 --codec q2' '--bits 2.4 --mixed v=t' '--bits 2.4 --method gptq' '--bits 5'; do
    # shellcheck disable=SC2086
    expect 2 whit compress original.ndf $how --calib calibration -c 32 -o no.ndf
    [ "$(wc -l <err)" -le 2 ] || complain "$how: $(cat err)"
done
expect 2 whit compress original.ndf --bits 1.2 --calib calibration -c 32 -o no.ndf
grep -q 'is too few' err || complain "--bits 1.2: $(cat err)"
[ ! -e no.ndf ] || complain "a refused run left a file"
finish
