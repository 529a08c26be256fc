# SPDX-License-Identifier: MIT
# Long work looks at its options and files first, says what a cut run loses, and ends with what it made.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache ./*.ndf ./*.run ./*.jsonl ./*.svg
for i in $(seq 60); do printf 'The fox number %s has a ball. The owl has the ball of the fox.\n' "$i"; done >text
tiny model.gguf
shape="--width 32 --layers 1 --heads 2 --ffn 48 --context 64 --vocab 300"
batch="-c 24 --sequences 2 --threads 1"
: >not-a-folder

# ---- before anything is learnt
# first STATUS PATTERN OPTION...: refused with one line, which leaves no time for a vocabulary.
first() {
    local wanted=$1 pattern=$2
    shift 2
    # shellcheck disable=SC2086 # options are lists
    expect "$wanted" whit train --text text $shape $batch "$@"
    one_line "$pattern"
    # shellcheck disable=SC2086
    expect "$wanted" whit tune -m model.gguf --text text $batch "$@"
    one_line "$pattern"
}
first 5 not-a-folder/out.ndf --steps 2 -o not-a-folder/out.ndf
first 5 /nowhere/out.ndf --steps 2 -o /nowhere/out.ndf
first 5 /nowhere/keep.run --steps 2 -o out.ndf --checkpoint /nowhere/keep.run
first 5 /nowhere/plot.svg --steps 2 -o out.ndf --plot /nowhere/plot.svg
first 5 absent --steps 2 -o out.ndf --held-out absent
first 5 absent.run --steps 2 -o out.ndf --checkpoint absent.run --resume
first 2 "give either --steps N or --minutes N" -o out.ndf
first 2 "give either --steps N or --minutes N" --steps 2 --minutes 1 -o out.ndf
first 2 "--resume needs --checkpoint" --steps 2 -o out.ndf --resume
if [ "$(id -u)" != 0 ]; then
    mkdir -p shut && chmod 500 shut
    first 5 shut/out.ndf --steps 2 -o shut/out.ndf
fi
# shellcheck disable=SC2086
expect 2 whit train --text text $shape --steps 2 -c 65 -o out.ndf
one_line "longer than the model's context of 64"
[ -z "$(ls -A ./*.ndf ./*.run ./*.svg 2>/dev/null)" ] || complain "left: $(ls -A)"

# ---- the end says what was made; a log says what was run, and has the gradient's norm
# shellcheck disable=SC2086
expect 0 whit train --text text $shape $batch --codec t --steps 5 --seed 7 -o out.ndf --log log.jsonl
tail -n 1 err | grep -qE '^whit: out.ndf: .* kB, [0-9.]+ bits per weight in the layers, cross-entropy [0-9.]+ .*5 steps$' ||
    complain "the last line: $(tail -n 1 err)"
grep -q KL err && complain "a divergence without a teacher: $(grep KL err | head -n 1)"
python3 - <<'END' || complain "the log: $(cat log.jsonl)"
import json
run, *steps = [json.loads(line) for line in open("log.jsonl")]
assert run["run"]["seed"] == 7 and run["run"]["steps"] == 5 and run["run"]["text"] == ["text"], run
assert steps and all(s["gradient_norm"] > 0 and "kl" not in s for s in steps), steps
END
expect 0 whit inspect out.ndf
grep -q 'whit.command .*whit train .*--steps 5.*"$' out || complain "inspect cuts the command: $(grep whit.command out)"
# shellcheck disable=SC2086
expect 0 whit distill --teacher out.ndf --text text $batch --codec b1 --steps 3 -o student.ndf --log kl.jsonl
grep -q 'KL [0-9]' err || complain "no divergence from the teacher: $(cat err)"
python3 -c 'import json; assert "kl" in json.loads(open("kl.jsonl").read().splitlines()[-1])' || complain "the log lacks kl"

# ---- bytes that are no text have more tokens than bytes
python3 -c 'import sys; sys.stdout.buffer.write(bytes((i * 167 + 13) % 256 for i in range(3000)))' >bytes
# shellcheck disable=SC2086
expect 0 whit train --text bytes $shape $batch --steps 2 -o bytes.ndf
expect 0 whit tune -m model.gguf --text bytes --steps 1 -c 24 --sequences 2 -o a.ndf

# ---- a run that is cut writes what it has learned
# shellcheck disable=SC2086
for keep in "" "--checkpoint keep.run"; do
    rm -f cut.ndf
    $EMULATOR "$WHIT" train --text text $shape $batch --minutes 5 -o cut.ndf --log cut.jsonl $keep >out 2>err &
    pid=$!
    while kill -0 $pid 2>/dev/null && ! grep -q '"step"' cut.jsonl 2>/dev/null; do sleep 0.1; done
    kill -TERM $pid
    wait $pid
    [ $? = 6 ] || complain "a cut run: $(cat err)"
    tail -n 1 err | grep -qE 'interrupted: cut.ndf contains the model after [0-9]+ steps?' || complain "a cut run $keep: $(tail -n 1 err)"
    case $keep in
    '') tail -n 1 err | grep -q 'with --checkpoint FILE it could be resumed' ;;
    *) tail -n 1 err | grep -q 'with --resume resumes keep.run' ;;
    esac || complain "a cut run $keep: $(tail -n 1 err)"
    expect 0 whit verify cut.ndf
    expect 0 whit run -m cut.ndf -p fox -n 2
    rm -f cut.jsonl
done
# the same command without --resume does not replace what the run has done
cp keep.run kept.run
# shellcheck disable=SC2086
expect 2 whit train --text text $shape $batch --minutes 5 -o cut.ndf --checkpoint keep.run
one_line 'keep.run has the work of an earlier run: --resume continues it'
cmp -s keep.run kept.run || complain "the checkpoint of the cut run was changed"

# ---- held-out text is measured before and after, in the unit that is trained, within the time that was given
# shellcheck disable=SC2086
{
    expect 0 whit distill --teacher out.ndf --text text $batch --codec b1 --steps 3 --held-out text -o student.ndf
    grep -qE '^whit: before: held-out perplexity [0-9.]+, KL [0-9.]+$' err || complain "before: $(cat err)"
    grep -q '^whit: about 100 % of text is in the training text' err || complain "no warning of the training text: $(cat err)"
    tail -n 1 err | grep -qE 'student.ndf: .*, KL [0-9.]+ from the teacher, cross-entropy' || tail -n 2 err | grep -q 'KL [0-9.]* from the teacher' ||
        complain "the last line: $(tail -n 2 err)"
    expect 0 whit train --text text --start out.ndf $batch --codec f32 --rate 1 --steps 3 --held-out text -o worse.ndf
    tail -n 1 err | grep -q 'worse than before training: held-out cross-entropy' || complain "worse: $(tail -n 2 err)"
    expect 0 whit train --text text --start out.ndf $batch --minutes 0.0001 --held-out text -o short.ndf
    grep -qE 'before: .*\(on [0-9]+ of [0-9]+ windows\)' err || complain "a short run measures everything: $(cat err)"
}

# ---- a new model has few bits, and codes that stay are trained gently
# shellcheck disable=SC2086
{
    expect 0 whit train --text text $shape $batch --steps 2 -o usual.ndf
    expect 0 whit inspect usual.ndf --json
    python3 -c 'import json; assert json.load(open("out"))["body_bits_per_weight"] < 3' || complain "train makes no low-bit model by itself"
    expect 0 whit distill --teacher out.ndf --start student.ndf --codec own --text text $batch --steps 1 --log own.jsonl -o own.ndf
    python3 -c 'import json; r = json.loads(open("own.jsonl").readline())["run"]; assert abs(r["rate"] - 1e-4) < 1e-9, r' || complain "the rate of --codec own"
}
finish
