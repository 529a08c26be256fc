# SPDX-License-Identifier: MIT
# whit export --type and whit refine on a model that the script trains: every type that matrices are rounded to, what a
# calibration text gains, the same bytes with any number of threads, files with corrections, and refusals.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache ./*.ndf ./*.gguf
python3 "$SOURCE/tests/cli/make_text.py" 600 >text
head -c 12000 text >calibration
tail -c 4000 text >own
steps=60
! grep -qE 'WHIT_SANITIZE_[A-Z]*:BOOL=ON' "$BUILD/CMakeCache.txt" || steps=2
expect 0 whit train --text text --width 256 --layers 1 --heads 4 --ffn 256 --context 64 --vocab 300 -c 32 --sequences 8 \
    --threads 2 --embedding f32 --codec f32 --steps $steps --rate 3e-3 -o original.ndf --seed 1

divergence() { # FILE [BASE]: its mean KL from BASE, else from the original
    whit perplexity -m "$1" -f own -c 32 --second-half --kl-base "${2:-original.ndf}" --json |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["kld_mean"])'
}
less() { # A B WHAT: is A below B?
    python3 -c "import sys; sys.exit(not $1 < $2)" || complain "$3: $1 is not below $2"
}

within() { # A B FACTOR WHAT: is A below B times FACTOR?
    python3 -c "import sys; sys.exit(not $1 < $2 * $3)" || complain "$4: $1 is not within $3 of $2"
}

# ---- every type: other programs' layouts are read back, and more bits are nearer to the original
last=0
for type in q8_0 q6_k q5_k q4_k q3_k q2_k q1_0; do
    expect 0 whit export original.ndf --type $type -o $type.gguf
    now=$(divergence $type.gguf)
    less "$last" "$now" "$type"
    last=$now
done
for type in q4_0 iq4_nl iq4_xs iq2_s iq2_xs iq2_xxs q2_0 tq2_0 tq1_0; do
    expect 0 whit export original.ndf --type $type -o $type.gguf
    grep -q "matrices rounded, mean relative squared error of the weights" err || complain "$type tells no loss: $(cat err)"
    expect 0 whit inspect $type.gguf
done
less "$(divergence iq4_nl.gguf)" "$(divergence q3_k.gguf)" "iq4_nl against q3_k"

# ---- error feedback over a text, with any number of threads
expect 0 whit export original.ndf --type q2_k --calib calibration -t 1 -o one.gguf
expect 0 whit export original.ndf --type q2_k --calib calibration -t 3 -o three.gguf
for verb in "export original.ndf --type q2_k" "refine one.gguf --original original.ndf"; do
    # shellcheck disable=SC2086
    expect 0 whit $verb --calib calibration --calib-tokens 256 -o few.gguf
    cmp -s few.gguf one.gguf && complain "$verb: --calib-tokens changed nothing"
    # shellcheck disable=SC2086
    expect 2 whit $verb --calib calibration --calib-tokens 10 -o few.gguf
    grep -q "10 tokens of calibration text are less than a window of 64" err || complain "$verb: $(cat err)"
done
cmp -s one.gguf three.gguf || complain "three threads gave another file"
[ $steps = 2 ] || less "$(divergence one.gguf)" "$(divergence q2_k.gguf)" "calibrated q2_k against plain"

# ---- refine: the same types and bytes of the file, nearer to the original
for type in q2_k q4_k iq4_xs iq2_xs; do
    expect 0 whit refine $type.gguf --original original.ndf --calib calibration -o better.gguf
    grep -q "7 tensors were replaced" err || complain "$type: $(cat err)"
    [ "$(wc -c <better.gguf)" = "$(wc -c <$type.gguf)" ] || complain "$type: another size"
    [ $steps = 2 ] || less "$(divergence better.gguf)" "$(divergence $type.gguf)" "refined $type"
    [ -z "$(ls better.gguf.* 2>/dev/null)" ] || complain "refine left files: $(ls better.gguf.*)"
done

# ---- killed in the middle: the older file stays; the same command with other threads then gives the same bytes
refined="refine q4_k.gguf --original original.ndf --calib calibration"
expect 0 whit $refined -t 2 -o whole.gguf
echo old >cut.gguf
# shellcheck disable=SC2086 # not the function: its shell would be killed, and the program would write on
${EMULATOR:-} "$WHIT" $refined -t 1 -o cut.gguf >/dev/null 2>&1 &
pid=$!
while kill -0 $pid 2>/dev/null && [ "$(stat -c %s cut.gguf.rounded.ndf.work 2>/dev/null || echo 0)" -le 1000 ]; do sleep 0.01; done
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
[ $? != 137 ] || [ "$(cat cut.gguf)" = old ] || complain "a killed refine changed the older file"
rm -f cut.gguf.rounded.ndf # where the kill came after the rounding
expect 0 whit $refined -t 3 -o cut.gguf
cmp -s whole.gguf cut.gguf || complain "refine after a kill gave another file"
[ -z "$(ls cut.gguf.* 2>/dev/null)" ] || complain "refine after a kill left files: $(ls cut.gguf.*)"

# ---- a compressed file with corrections is rounded with them
expect 0 whit compress original.ndf --codec q2 --calib calibration -c 32 --outliers 0.3 -o q2.ndf
expect 3 whit export q2.ndf -o out.gguf
one_line 'which no GGUF type can store exactly; with --calib TEXT it is rounded to q2_k, which loses least'
expect 0 whit export q2.ndf --type Q4_0 -o out.gguf
[ $steps = 2 ] || less "$(divergence out.gguf)" "$(divergence q2_k.gguf)" "a q2 file in q4_0 against plain q2_k"
# without a type: that of the codec, and not plainly rounded
expect 0 whit export q2.ndf --calib calibration -o out.gguf
grep -q "q2.ndf: rounded to q2_k, which loses least" err || complain "no type is named: $(cat err)"
expect 0 whit export q2.ndf --calib calibration --type q2_k -o named.gguf
cmp -s out.gguf named.gguf || complain "the type of a q2 file is not q2_k"
# what the export adds to the file's own loss, against what the same type loses of the original
[ $steps = 2 ] || within "$(divergence out.gguf q2.ndf)" "$(divergence one.gguf)" 1.15 "q2 in q2_k"
expect 0 whit export original.ndf --type q2_0 --calib calibration -o solved.gguf
for codec in t b1; do
    expect 0 whit compress original.ndf --codec $codec --calib calibration -c 32 --outliers 0.3 -o low.ndf
    expect 0 whit export low.ndf --calib calibration -o out.gguf
    grep -q "low.ndf: rounded to q2_0, which loses least" err || complain "$codec: $(cat err)"
    [ $steps = 2 ] || within "$(divergence out.gguf low.ndf)" "$(divergence solved.gguf)" 1.15 "$codec in q2_0"
done
expect 0 whit compress original.ndf --codec t --method rtn -o t.ndf
expect 0 whit export t.ndf --calib calibration -o out.gguf
grep -q "nothing was rounded: --calib was not needed" err || complain "an exact export with a text: $(cat err)"
# codes with scales of a kind that the type has not are rounded, never written as floats that were not asked for
expect 0 whit compress original.ndf --codec q2 --method rtn -o plain.ndf
expect 3 whit export plain.ndf -o out.gguf
one_line "name a type to round it to"
for source in plain.ndf q4_k.gguf; do
    expect 0 whit export $source --type q2_k -o out.gguf
    grep -q "matrices rounded" err || complain "$source is not rounded to q2_k: $(cat err)"
    [ "$(wc -c <out.gguf)" -lt $(($(wc -c <q2_k.gguf) + 1000)) ] || complain "$source in q2_k is larger than q2_k"
done
expect 0 whit export plain.ndf --type f32 -o out.gguf
# what a type holds is not rounded
expect 0 whit compress original.ndf --codec t --group 256 --method rtn -o t.ndf
expect 0 whit export t.ndf --type tq2_0 -o exact.gguf
grep -q rounded err && complain "an exact export was rounded: $(cat err)"

# ---- IQ3: fewer bits than int8 with float32 scales, and nothing to refine within its own blocks
iq3=$SHARED/models/prose-6M/gguf/prose-6M-IQ3_XXS.gguf
if [ -f "$iq3" ]; then
    expect 0 whit convert "$iq3" -o iq3.ndf
    [ "$(wc -c <iq3.ndf)" -lt $(($(wc -c <"$iq3") * 18 / 10)) ] || complain "IQ3_XXS grows to $(wc -c <iq3.ndf) bytes"
    expect 3 whit refine "$iq3" --original original.ndf --calib calibration -o kept.gguf
    one_line "can be refined"
fi

# ---- refusals, each one line, and an older file stays
echo old >kept.gguf
expect 2 whit export original.ndf --type q9_9 -o kept.gguf
one_line "type 'q9_9' is unknown"
expect 2 whit export original.ndf --type Q4_K_M -o kept.gguf
one_line "Q4_K_M names a choice of types" "all matrices: Q4_K"
expect 2 whit export original.ndf other.gguf
one_line "an output is given by -o: whit export original.ndf -o other.gguf"
expect 2 whit export original.ndf --calib calibration -o kept.gguf
one_line "name a type"
expect 2 whit refine q2_k.gguf --original original.ndf -o kept.gguf
one_line "--calib FILE"
expect 2 whit refine q2_k.gguf --calib calibration -o kept.gguf
one_line "--original SRC"
expect 3 whit refine q8_0.gguf --original original.ndf --calib calibration -o kept.gguf
one_line "can be refined"
echo mine >kept.gguf.rounded.ndf # the name of the file between the two steps
expect 2 whit export original.ndf --type q2_k -o kept.gguf
one_line "kept.gguf.rounded.ndf" "would be replaced"
[ "$(cat kept.gguf.rounded.ndf)" = mine ] || complain "a file beside the output was lost"
rm -f kept.gguf.rounded.ndf
[ "$(cat kept.gguf)" = old ] || complain "a refusal changed an older file"
finish
