# SPDX-License-Identifier: MIT
# whit compress on a model that the script trains: every codec and method, what each stage gives, the same
# bytes with any number of threads, and failures that leave an older file as it was.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache ./*.ndf ./*.work ./*.gguf
python3 "$SOURCE/tests/cli/make_text.py" 1500 >text
# Sanitizers look at every path on less text; how good the results are is measured by the plain build.
sanitized=$(grep -E 'WHIT_SANITIZE_[A-Z]*:BOOL=ON' "$BUILD/CMakeCache.txt")
calibration_bytes=20000 tune_tokens=30000
[ -z "$sanitized" ] || calibration_bytes=8000 tune_tokens=6000
head -c $calibration_bytes text >calibration
tail -c 8000 text >own
expect 0 whit train --text text --width 64 --layers 2 --heads 2 --ffn 128 --context 64 --vocab 300 -c 32 --sequences 8 \
    --threads 1 --embedding f32 --codec f32 --steps 250 --rate 1e-2 -o original.ndf --seed 1

divergence() { # FILE: its mean KL from the original
    [ -z "$sanitized" ] || return 0
    whit perplexity -m "$1" -f own -c 32 --second-half --kl-base original.ndf --json |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["kld_mean"])'
}
less() { # A B FACTOR: is A below FACTOR times B?
    [ -z "$sanitized" ] || return 0
    python3 -c "import sys; sys.exit(not $1 < $2 * $3)" || complain "$4: $1 is not below $3 of $2"
}

printf 'a few words' >short

# ---- every codec: error feedback beats rounding, every stage together beats both
for codec in b1 t q2; do
    expect 0 whit compress original.ndf --codec $codec --method rtn -o rtn.ndf
    for method in gptq full; do
        expect 0 whit compress original.ndf --codec $codec --method $method --calib calibration -c 32 -t 2 -o $method.ndf
    done
    expect 0 whit verify full.ndf
    rtn=$(divergence rtn.ndf) gptq=$(divergence gptq.ndf) full=$(divergence full.ndf)
    [ $codec = b1 ] || less "$gptq" "$rtn" 0.9 "$codec: gptq against rtn" # signs are too coarse for it alone here
    less "$full" "$gptq" 0.8 "$codec: full against gptq"
    less "$full" "$rtn" 0.8 "$codec: full against rtn"
    mv full.ndf $codec.ndf
done
less "$(divergence q2.ndf)" "$(divergence t.ndf)" 1 'q2 against t'
less "$(divergence t.ndf)" "$(divergence b1.ndf)" 1 't against b1'

# ---- threads change no byte; a stage left out does
for t in 1 3; do
    expect 0 whit compress original.ndf --codec q2 --calib calibration -c 32 -t $t -o again.ndf
    cmp -s q2.ndf again.ndf || complain "$t threads gave another file"
done
for stage in qep residual order anneal descent; do
    expect 0 whit compress original.ndf --codec t --calib calibration -c 32 --without $stage -o without.ndf
    [ $stage = order ] || { cmp -s t.ndf without.ndf && complain "--without $stage changed nothing"; }
done
# ---- annealing leaves minima of descent that are not the least: less error in most matrices and in sum
for without in outliers anneal; do
    expect 0 whit compress original.ndf --codec t --calib calibration -c 32 --without outliers --without rotation \
        --without $without --json -o without.ndf
    cp out without.$without.json
done
python3 -c 'import json
drawn, plain = ([m["error"] for m in json.load(open(f"without.{name}.json"))["matrices"]] for name in ("outliers", "anneal"))
assert sum(a < b for a, b in zip(drawn, plain)) > len(drawn) * 0.7 and sum(drawn) < 0.97 * sum(plain), (drawn, plain)' ||
    complain "annealing: $(cat without.*.json)"

# ---- a weight in each row of v and o that no level reaches: both are turned, and the model keeps more
expect 0 whit export original.ndf --type f32 --float-type f32 -o even.gguf
python3 "$SOURCE/tests/cli/uneven.py" even.gguf uneven.gguf 10 || complain "no uneven model"
expect 0 whit compress uneven.gguf --codec q2 --calib calibration -c 32 --json -o turned.ndf
python3 -c 'import json
found = {m["name"]: m["rotated"] for m in json.load(open("out"))["matrices"]}
assert len(found) == 14 and sum(found.values()) in (2, 4), found
for layer in 0, 1: assert found[f"layers.{layer}.v"] == found[f"layers.{layer}.o"], found' || complain "rotation: $(cat out)"
expect 0 whit compress uneven.gguf --codec q2 --calib calibration -c 32 --without rotation -o plain.ndf
if [ -z "$sanitized" ]; then
    expect 0 whit compare uneven.gguf turned.ndf plain.ndf -f own -c 32 --json
    python3 -c 'import json
turned, plain = (f["kld_mean"] for f in json.load(open("out"))["texts"][0]["files"])
assert turned < plain, (turned, plain)' || complain "rotated against not rotated: $(cat out)"
fi
expect 0 whit compress uneven.gguf --codec q2 --calib calibration -c 32 -t 3 -o again.ndf
cmp -s turned.ndf again.ndf || complain "3 threads gave another rotated file"

# ---- weights that scales of f16 cannot hold
python3 "$SOURCE/tests/cli/uneven.py" even.gguf huge.gguf 1e9 || complain "no huge weights"
for scales in f16 u8; do
    expect 7 whit compress huge.gguf --codec t --method rtn --scales $scales -o huge.ndf
    one_line "layers.0.[vo]'" 'too large'
    [ ! -e huge.ndf ] || complain "a file with scales that are no numbers"
done

# ---- a context of one token has nothing to tune; a text of less than a window
python3 -c 'b = bytearray(open("even.gguf", "rb").read())
at = b.index(b"context_length") + len(b"context_length") + 4 # behind the type of the value
b[at:at + 4] = bytes([1, 0, 0, 0])
open("one.gguf", "wb").write(b)'
expect 0 whit compress one.gguf --codec t --calib calibration --calib-tokens 500 -o one.ndf
whit inspect one.ndf --json | grep -q '"whit compress .* --calib calibration --calib-tokens 500 ' ||
    complain "the file does not say which text it was calibrated on: $(whit inspect one.ndf --json | grep command)"
expect 2 whit compress one.gguf --codec t --calib calibration --tune-tokens 100 -o again.ndf
one_line 'context of one token'
expect 2 whit compress original.ndf --codec t --calib calibration -c 32 --calib-tokens 10 -o again.ndf
one_line '10 tokens of calibration text are less than a window of 32'

# ---- sign plane and low-rank pair: less error, read by the second reader, the same with other threads
expect 0 whit compress original.ndf --codec b1 --pure --calib calibration -c 32 --json -o plain.ndf
cp out plain.json
for how in '--plane 50' '--rank 16' '--plane 50 --rank 4 --outliers 0.3'; do
    expect 0 whit compress original.ndf --codec b1 --pure --calib calibration -c 32 $how --json -o out.ndf
    python3 -c 'import json
plain, found = (json.load(open(name))["matrices"] for name in ("plain.json", "out"))
assert sum(m["error"] for m in found) < 0.95 * sum(m["error"] for m in plain)' || complain "$how: $(cat out)"
    less "$(divergence out.ndf)" "$(divergence plain.ndf)" 1 "b1 $how"
    "$BUILD/tools/ndf-read" out.ndf >out 2>err || complain "$how: the second reader: $(cat err)"
done
grep -q '^plane [1-9]' out && grep -q '^rank 4' out && grep -q '^outliers [1-9]' out || complain "corrections are not there"
expect 0 whit compress original.ndf --codec b1 --pure --calib calibration -c 32 $how -t 3 -o again.ndf
cmp -s out.ndf again.ndf || complain "3 threads gave other corrections"
bits=$(whit inspect out.ndf --json | grep body_bits)
expect 0 whit compress original.ndf --codec b1 --pure --calib calibration -c 32 $how --tune-tokens 8000 -o again.ndf
[ "$bits" = "$(whit inspect again.ndf --json | grep body_bits)" ] || complain "tuning lost corrections"
less "$(divergence again.ndf)" "$(divergence out.ndf)" 1 'tuning with corrections'

# ---- outliers: beside every codec, in fewer bits than asked for and with less error, read by the second reader
for codec in b1 t q2; do
    expect 0 whit compress original.ndf --codec $codec --pure --calib calibration -c 32 --without outliers --without rotation \
        --without anneal --json -o plain.ndf
    cp out plain.json
    expect 0 whit compress original.ndf --codec $codec --pure --calib calibration -c 32 --outliers 0.3 \
        --without rotation --without anneal --json -o out.ndf
    python3 -c 'import json
plain, found = (json.load(open(name))["matrices"] for name in ("plain.json", "out"))
for m in found: assert m["outliers"] > 0, m
assert sum(m["error"] for m in found) < 0.95 * sum(m["error"] for m in plain)' || complain "outliers: $(cat out)"
    less "$(divergence out.ndf)" "$(divergence plain.ndf)" 1.2 "$codec: with outliers"
    expect 0 whit verify out.ndf
    "$BUILD/tools/ndf-read" out.ndf >out 2>err || complain "$codec: the second reader: $(cat err)"
    grep -q '^outliers [1-9]' out || complain "$codec: the second reader found no outliers"
done
expect 0 whit compress original.ndf --codec q2 --pure --calib calibration -c 32 --outliers 0.3 --without rotation --without anneal \
    -t 3 -o again.ndf
cmp -s out.ndf again.ndf || complain "3 threads gave other outliers"
# Training from such a file: at a rate that moves nothing it stays what it was, at a real one the same windows of the
# same text diverge less on the way, and both keep the outliers. (Of other text a few tokens decide here.)
for rate in 1e-9 3e-4; do
    rm -f $rate.log
    expect 0 whit distill --teacher original.ndf --start out.ndf --codec own --text calibration -c 32 --sequences 8 \
        --steps 40 --rate $rate --log $rate.log -o trained.$rate.ndf
    for file in out trained.$rate; do "$BUILD/tools/ndf-read" $file.ndf | grep '^outliers' >$file.outliers; done
    cmp -s out.outliers trained.$rate.outliers || complain "distillation lost outliers: $(diff out.outliers trained.$rate.outliers)"
done
less "$(divergence trained.1e-9.ndf)" "$(divergence out.ndf)" 1.01 'a start with outliers'
less "$(divergence out.ndf)" "$(divergence trained.1e-9.ndf)" 1.01 'a start with outliers'
mean_kl() { # LOG: of all steps; a report has the mean of those since the one before, whose times are the clock's
    python3 -c 'import json, sys
reports = [r for r in map(json.loads, open(sys.argv[1])) if "step" in r]
print(sum(r["kl"] * (r["step"] - b["step"]) for r, b in zip(reports, [{"step": 0}] + reports)) / reports[-1]["step"])' "$1"
}
less "$(mean_kl 3e-4.log)" "$(mean_kl 1e-9.log)" 0.85 'distillation from outliers'
expect 3 whit convert out.ndf -o again.ndf
grep -q corrections err || complain "a conversion of outliers: $(cat err)"
expect 0 whit compress original.ndf --codec t --calib calibration -c 32 --json -o again.ndf
python3 -c 'import json
for m in json.load(open("out"))["matrices"]: assert m["error"] < 0.9 * m["error_gptq"] and m["sweeps"], m' || complain "descent: $(cat out)"

# ---- mixed codecs, text that the model makes, what is said
expect 0 whit compress original.ndf --codec b1 --mixed v=t --mixed down=i8 --sample 3000 -c 32 --embedding f16 --json -o mixed.ndf
python3 -c 'import json
r = json.load(open("out"))
codecs = {m["name"]: m["codec"] for m in r["matrices"]}
assert codecs["layers.1.v"] == "t2" and codecs["layers.0.q"] == "b1" and "layers.0.down" not in codecs, codecs
assert 1 < r["body_bits_per_weight"] < 8, r' || complain "the report: $(cat out)"
expect 0 whit inspect mixed.ndf --json
expect 0 whit run -m mixed.ndf -p 'The fox' -n 8 --temp 0

# ---- the report: one well-formed page without an outside address, with a row and two bars for each matrix; what it
# shows of a text or a name is shown as text
cp original.ndf '<b>&.ndf'
expect 0 whit compress '<b>&.ndf' --codec b1 --calib calibration -c 32 --report report.html -o again.ndf
[ "$(whit inspect again.ndf --json | grep identity)" = "$(whit inspect b1.ndf --json | grep identity)" ] ||
    complain "--report changed the weights"
python3 - <<'END' || complain "the report"
import html.parser, re
text = open("report.html", encoding="utf-8").read()


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.n, self.data = [], {}, []

    def handle_starttag(self, tag, attributes):
        assert tag != "b" and tag not in ("script", "img", "link", "iframe"), tag
        for name, value in attributes:
            assert name not in ("src", "href", "srcset", "action") and not name.startswith("on"), (tag, name)
        kind = tag + "." + dict(attributes).get("class", "")
        self.n[kind] = self.n.get(kind, 0) + 1
        if tag not in ("meta", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert tag in ("path",) or self.open.pop() == tag, tag

    def handle_data(self, data):
        self.data.append(data)


page = Page()
page.feed(text)
assert not page.open, page.open
assert not re.search(r"https?:|url\(|@import", text), "an outside address"
assert "<b>&.ndf" in page.data, "the source's name"
assert page.n["rect.before"] + page.n.get("rect.before odd", 0) == 14, page.n
assert page.n["rect.after"] + page.n.get("rect.after odd", 0) == 28, page.n
assert sum(d.startswith("layers.1.") for d in page.data) >= 7 and "NaN" not in text and "nan" not in text
assert text.count('<td class="text">') == 7 + 9, text.count('<td class="text">')
END
expect 0 whit compress original.ndf --codec b1 --method rtn --report rtn.html -o again.ndf
expect 5 whit compress original.ndf --codec b1 --method rtn --report absent/rtn.html -o again.ndf
rm -f '<b>&.ndf'

# ---- kill -9 at some moment (of the model with rotated layers), then --resume, until it ends: the same bytes; OUT is never there half
kill_some() { # N SEED
    local i delay
    RANDOM=$2
    for i in $(seq "$1"); do
        cp b1.ndf killed.ndf
        rm -f killed.ndf.work
        delay=$(python3 -c "print(0.05 + $RANDOM / 32768 * $whole)")
        { timeout -s KILL "$delay" "$WHIT" compress uneven.gguf --codec q2 --calib calibration -c 32 -o killed.ndf; } >/dev/null 2>&1
        cmp -s killed.ndf b1.ndf || cmp -s killed.ndf turned.ndf || complain "kill $i: OUT is neither the old nor the new file"
        delay=$(python3 -c "print(0.05 + $RANDOM / 32768 * $whole)")
        { timeout -s KILL "$delay" "$WHIT" compress uneven.gguf --codec q2 --calib calibration -c 32 --resume -o killed.ndf; } >/dev/null 2>&1
        expect 0 whit compress uneven.gguf --codec q2 --calib calibration -c 32 --resume -o killed.ndf
        cmp -s killed.ndf turned.ndf || complain "kill $i: another file after --resume"
        [ ! -e killed.ndf.work ] || complain "kill $i: the work file stays"
    done
}
if [ -z "${EMULATOR:-}" ]; then
    whole=$(TIMEFORMAT=%R; { time whit compress uneven.gguf --codec q2 --calib calibration -c 32 -o again.ndf >/dev/null 2>&1; } 2>&1)
    kill_some "${WHIT_TEST_KILLS:-2}" 7
fi
# a work file that is torn, damaged, or another run's
catch_work() { # COPY OPTIONS...: the work file of a run that has finished a layer; none where the run was too quick
    local copy=$1 i
    shift
    whit compress uneven.gguf --codec q2 --calib calibration "$@" -o torn.ndf 2>/dev/null &
    for i in $(seq 200); do
        [ "$(stat -c %s torn.ndf.work 2>/dev/null || echo 0)" -gt 1000 ] && cp torn.ndf.work "$copy" && break
        sleep 0.02
    done
    wait
}
rm -f work other.work
catch_work work -c 32
catch_work other.work -c 16
if [ -s work ]; then
    for change in 'b = b[:-5]' 'b[-9] ^= 4' 'b = b[:20]' 'b += b"torn record"'; do
        python3 -c "b = bytearray(open('work', 'rb').read()); $change; open('torn.ndf.work', 'wb').write(b)"
        expect 0 whit compress uneven.gguf --codec q2 --calib calibration -c 32 --resume -o torn.ndf
        cmp -s torn.ndf turned.ndf || complain "a work file with $change gave another file"
    done
    cp work torn.ndf.work
    expect 2 whit compress uneven.gguf --codec q2 --calib calibration -c 32 -o torn.ndf
    one_line 'torn.ndf.work has the work of an earlier run: --resume continues it'
    expect 2 whit compress original.ndf --codec t --calib calibration -c 32 --resume -o torn.ndf
    one_line 'another model, text or settings'
    cmp -s work torn.ndf.work || complain "another run's work file was changed"
    # the model was changed meanwhile: a number of its configuration, or a weight somewhere
    for change in 'b[b.index(b"rope.freq_base") + 20] ^= 64' 'b[len(b) // 2 & ~3] ^= 64'; do
        python3 -c "b = bytearray(open('uneven.gguf', 'rb').read()); $change; open('changed.gguf', 'wb').write(b)"
        expect 2 whit compress changed.gguf --codec q2 --calib calibration -c 32 --resume -o torn.ndf
        one_line 'another model, text or settings'
    done
    if [ -s other.work ]; then # records that another run wrote into this one's file at the same time
        cat <(head -c 40 work) <(tail -c +41 other.work) >torn.ndf.work
        expect 0 whit compress uneven.gguf --codec q2 --calib calibration -c 32 --resume -o torn.ndf
        cmp -s torn.ndf turned.ndf || complain "another run's records were taken"
    fi
    printf 'not a work file, but as long as the header of one' >torn.ndf.work
    expect 3 whit compress original.ndf --codec t --calib calibration -c 32 --resume -o torn.ndf
fi

# ---- compare
expect 0 whit compare original.ndf q2.ndf t.ndf -f own -c 32 --json
python3 -c 'import json
q2, t = json.load(open("out"))["texts"][0]["files"]
assert 0 < q2["kld_mean"] < t["kld_mean"] and q2["kld_median"] <= q2["kld_p99"] <= q2["kld_max"], (q2, t)
assert q2["file_bytes"] > q2["resident_bytes"] > 0 and 0 < q2["rms_change"] < 100 and q2["top1"] > t["top1"] - 5, q2' || complain "compare: $(cat out)"
kl=$(python3 -c 'import json; print(json.load(open("out"))["texts"][0]["files"][0]["kld_mean"])')
[ -n "$sanitized" ] || [ "$kl" = "$(divergence q2.ndf)" ] || complain "compare and perplexity disagree: $kl, $(divergence q2.ndf)"
expect 0 whit compare original.ndf q2.ndf -f own -f calibration -c 32 --chunks 3
grep -q 'q2.ndf' out || complain "the table: $(cat out)"
# --all scores what perplexity does without --second-half, the last and shorter window too; a GGUF is as large as it is.
head -c 1000 own >part
for window in 29 32; do
    expect 0 whit compare original.ndf q2.ndf uneven.gguf -f part -c $window --all --json
    cp out compared
    expect 0 whit perplexity -m q2.ndf -f part -c $window --kl-base original.ndf --json
    python3 -c 'import json, os
q2, gguf = json.load(open("compared"))["texts"][0]["files"]
alone = json.load(open("out"))
assert (q2["tokens"], q2["kld_mean"]) == (alone["tokens"], alone["kld_mean"]), (q2, alone)
assert gguf["file_bytes"] == os.path.getsize("uneven.gguf"), gguf' || complain "compare --all -c $window: $(cat compared out)"
done
expect 2 whit compare original.ndf q2.ndf
expect 3 whit compare original.ndf q2.ndf -f short

# ---- questions: words of the text against noise; the published forms
python3 -c 'import json
for a in ["fox", "owl", "cat"]:
    for b in ["ball", "hat", "song"]:
        q = {"context": f"The {a} number 7 has a", "choices": ["zqx", b, "mmmm"], "answer": 1}
        print(json.dumps(q))' >task.jsonl
expect 0 whit eval -m original.ndf --task task.jsonl --json
python3 -c 'import json
r = json.load(open("out"))
assert r["questions"] == 9 and r["accuracy"] > 0.85 and abs(r["chance"] - 1 / 3) < 1e-9, r
assert abs(r["accuracy_error"] - (r["accuracy"] * (1 - r["accuracy"]) / 8) ** 0.5) < 1e-9, r' || complain "eval: $(cat out)"
expect 0 whit eval -m original.ndf --task task.jsonl --limit 4
grep -q '^4 questions' out || complain "--limit: $(cat out)"
for form in hellaswag arc arc_columns winogrande boolq; do
    expect 0 whit eval -m original.ndf --task "$SOURCE/tests/fuzz/corpus/task/$form" --json
done
expect 3 whit eval -m original.ndf --task "$SOURCE/tests/fuzz/corpus/task/piqa"
echo 0 >labels
expect 0 whit eval -m original.ndf --task "$SOURCE/tests/fuzz/corpus/task/piqa" --labels labels
echo '{"context": "a"' >broken
expect 3 whit eval -m original.ndf --task broken
one_line 'broken: line 1 is not JSON'
: >empty
expect 3 whit eval -m original.ndf --task empty
# Behind nothing a choice's first token has no likelihood: of a choice of one it would be 1.
tiny tiny.gguf
python3 -c 'b = bytearray(open("tiny.gguf", "rb").read())
key = b"tokenizer.ggml.add_bos_token"
b[b.index(key) + len(key) + 4] = 0 # behind the type of the value
open("bare.gguf", "wb").write(b)'
echo '{"context": "", "choices": ["a", "the land"], "answer": 1}' >behind-nothing
expect 0 whit eval -m tiny.gguf --task behind-nothing
expect 0 whit convert bare.gguf -o bare.ndf
expect 3 whit eval -m bare.ndf --task behind-nothing
one_line 'behind-nothing: line 1 has an empty context'

# ---- tuning: the same bytes with any number of threads, nearer than before; a cut run goes on
tuned="compress original.ndf --codec b1 --calib calibration -c 32 --tune-tokens $tune_tokens --tune-rate 3e-4"
expect 0 whit $tuned -t 1 -o tuned.ndf
expect 0 whit $tuned -t 3 -o again.ndf
cmp -s tuned.ndf again.ndf || complain "threads changed a tuned file"
less "$(divergence tuned.ndf)" "$(divergence b1.ndf)" 0.9 'tuning'
[ "$(whit inspect tuned.ndf --json | grep body_bits)" = "$(whit inspect b1.ndf --json | grep body_bits)" ] || complain "tuning changed the types"
[ -z "$(ls tuned.ndf.* 2>/dev/null)" ] || complain "tuning left files: $(ls tuned.ndf.*)"
if [ -z "${EMULATOR:-}" ]; then
    { timeout -s KILL 2 "$WHIT" $tuned -o again.ndf; } >/dev/null 2>&1
    expect 0 whit $tuned --resume -o again.ndf
    cmp -s tuned.ndf again.ndf || complain "a tuned run that was killed ended with other bytes"
fi

# ---- layers tuned by themselves: the same bytes with any number of threads, nearer than before
expect 0 whit $tuned --tune-blocks -t 1 -o blocks.ndf
expect 0 whit $tuned --tune-blocks -t 3 -o again.ndf
cmp -s blocks.ndf again.ndf || complain "threads changed a file whose layers were tuned"
cmp -s blocks.ndf tuned.ndf && complain "tuning by layers is tuning towards the logits"
less "$(divergence blocks.ndf)" "$(divergence b1.ndf)" 0.9 'tuning by layers'
expect 2 whit compress original.ndf --codec b1 --calib calibration --tune-blocks -o bad.ndf
one_line '--tune-tokens N'

# ---- out again: Q1_0 and TQ2_0 hold plain groups exactly
if [ -n "$sanitized" ]; then
    echo "a whole model is exported by the plain build alone"
elif [ -e "$SHARED/models/prose-6M/prose-6M-f16.gguf" ]; then
    prose=$SHARED/models/prose-6M/prose-6M-f16.gguf
    head -c 4000 "$SHARED/models/prose-6M/own.txt" >prose.txt
    for how in 'b1 128 q1_0' 't 256 tq2_0'; do
        set -- $how
        expect 0 whit compress "$prose" --codec "$1" --group "$2" --method rtn --embedding f16 -o out.ndf
        expect 0 whit export out.ndf --type "$3" -o out.gguf
        before=$(whit perplexity -m out.ndf -f prose.txt -c 64 --json)
        [ "$before" = "$(whit perplexity -m out.gguf -f prose.txt -c 64 --json)" ] || complain "$3 gives other logits"
    done
else
    echo "[ SKIPPED ] no prose-6M: Q1_0 and TQ2_0 are not compared"
fi

# ---- an importance matrix in place of a text: both forms, the same bytes; weighted errors fall; another model's refused
for form in gguf dat; do
    python3 "$SOURCE/tests/cli/imatrix.py" $form 2 64 128 imatrix.$form
    expect 0 whit compress original.ndf --codec q2 --imatrix imatrix.$form --json -o weighted.$form.ndf
    mv out weighted.json
    for fault in missing nan twice count cut; do
        python3 "$SOURCE/tests/cli/imatrix.py" $form 2 64 128 bad $fault
        case $fault in nan | count) wanted=7 ;; *) wanted=3 ;; esac
        expect $wanted whit compress original.ndf --codec q2 --imatrix bad -o bad.ndf
        one_line bad
    done
    for shape in '3 64 128' '2 96 128' '2 64 64' '1 64 128'; do
        python3 "$SOURCE/tests/cli/imatrix.py" $form $shape other
        expect 3 whit compress original.ndf --codec q2 --imatrix other -o bad.ndf
        one_line 'another model'
    done
done
[ ! -e bad.ndf ] || complain "a refused importance matrix left a file"
whit inspect weighted.gguf.ndf --json | grep identity >a
whit inspect weighted.dat.ndf --json | grep identity >b
cmp -s a b || complain "the two forms of an importance matrix gave other weights"
expect 0 whit compress original.ndf --codec q2 --method rtn -o rtn.ndf
whit inspect rtn.ndf --json | grep identity >b
cmp -s a b && complain "an importance matrix changed nothing"
python3 "$SOURCE/tests/cli/imatrix.py" gguf 2 64 128 other model
expect 3 whit compress original.ndf --imatrix other -o bad.ndf
expect 2 whit compress original.ndf --imatrix imatrix.dat --calib calibration -o bad.ndf

# ---- scales of a byte: nearly as good, and fewer bits where rows have groups enough. With calibration the divergence of
# so small a model is decided by a few tokens, in other ways on other processors: the errors of its matrices are not.
errors() { python3 -c 'import json; print(sum(m["error"] for m in json.load(open("out"))["matrices"]))'; }
for how in '--method rtn' '--calib calibration -c 32'; do
    expect 0 whit compress original.ndf --codec q2-planes --group 32 $how --json -o f16.ndf
    [ "$how" = '--method rtn' ] || f16=$(errors)
    expect 0 whit compress original.ndf --codec q2 --group 32 $how --scales u8 -t 2 --json -o u8.ndf
    [ "$how" = '--method rtn' ] || u8=$(errors)
    expect 0 whit compress original.ndf --codec q2 --group 32 $how --scales u8 -t 1 -o again.ndf
    cmp -s u8.ndf again.ndf || complain "threads changed a file with scales of u8"
    expect 0 whit verify u8.ndf
    [ "$how" != '--method rtn' ] || less "$(divergence u8.ndf)" "$(divergence f16.ndf)" 1.15 "u8 scales, $how"
done
less "$u8" "$f16" 1.05 'errors with u8 scales'
body_bits() { whit inspect "$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["body_bits_per_weight"])'; }
less "$(body_bits u8.ndf)" "$(body_bits f16.ndf)" 1 'bits of u8 scales'

# ---- four levels: one number a weight by default, in fewer bits than two planes and with the same error; a conversion
# makes neither of the other
codecs_of() { whit inspect "$1" --tensors --json | python3 -c 'import json, sys
print(*sorted({t["codec"] for t in json.load(sys.stdin)["tensors"] if t["name"].startswith("layers.") and t["codec"] != "f32"}))'; }
for how in '--method rtn' '--calib calibration -c 32 --without outliers --without rotation'; do
    expect 0 whit compress original.ndf --codec q2-planes $how --json -o planes.ndf
    planes=$(errors)
    expect 0 whit compress original.ndf --codec q2 $how --json -o levels.ndf
    [ "$how" = '--method rtn' ] || less "$(errors)" "$planes" 1.02 'errors of one number a weight'
done
[ "$(codecs_of levels.ndf) $(codecs_of planes.ndf)" = 'l2 q2' ] || complain "codecs: $(codecs_of levels.ndf), $(codecs_of planes.ndf)"
less "$(body_bits levels.ndf)" "$(body_bits planes.ndf)" 1.0001 'bits of one number a weight' # equal in rows of one group
for file in levels planes; do
    expect 0 whit convert $file.ndf -o same.ndf
    cmp -s $file.ndf same.ndf || [ "$(codecs_of same.ndf)" = "$(codecs_of $file.ndf)" ] || complain "convert changed the codec of $file.ndf"
done
expect 2 whit compress original.ndf --calib calibration --scales u8 --tune-tokens 1000 -o bad.ndf

# ---- failures: one line, a status of our own, the older file untouched
cp t.ndf older.ndf
: >empty
expect 3 whit compress original.ndf --calib empty -o older.ndf
one_line empty
expect 2 whit compress original.ndf --calib short -o older.ndf
one_line 'calibration text has'
expect 5 whit compress original.ndf --calib absent -o older.ndf
expect 2 whit compress original.ndf --calib calibration -c 128 -o older.ndf
expect 2 whit compress original.ndf --calib calibration --without tea -o older.ndf
expect 2 whit compress original.ndf --method rtn --outliers 0.3 -o older.ndf
one_line 'method full'
expect 2 whit compress original.ndf --calib calibration --mixed tea=t -o older.ndf
expect 2 whit compress original.ndf --calib calibration --mixed down=tea -o older.ndf
expect 2 whit compress original.ndf --calib calibration
expect 3 whit compress q2.ndf --calib calibration -o older.ndf
one_line 'compressed already'
tiny odd.gguf 3 no-tokenizer
expect 3 whit compress odd.gguf --calib calibration -o older.ndf
one_line tokenizer
tiny tiny.gguf
python3 -c 'b = bytearray(open("tiny.gguf", "rb").read()); b[-4:] = b"\xff\xff\xff\xff"; open("nan.gguf", "wb").write(b)'
for method in rtn full; do
    expect 7 whit compress nan.gguf --method $method --calib calibration -o older.ndf
    one_line 'not a number' "tensor '"
done
(
    trap '' XFSZ
    ulimit -f 16
    expect 5 whit compress original.ndf --method rtn -o older.ndf
    exit $failed
) || failed=1
# A disk without room for the activations, or with room for them and nothing else: the same bytes. One without room for
# the file: a line, and nothing left but finished layers.
mkdir -p disk
on_disk() { # SIZE STATUS
    unshare -rm sh -c 'mount -t tmpfs -o size="$1" none disk && shift && "$@"; status=$?; cp -r disk left; exit $status' \
        sh "$1" "$WHIT" compress original.ndf --codec t --calib calibration -c 32 -o disk/out.ndf >out 2>err
    [ $? = "$2" ] || complain "a disk of $1: not $2: $(cat err)"
}
if [ -z "${EMULATOR:-}" ] && unshare -rm mount -t tmpfs -o size=16k none disk 2>err; then
    for size in 1m 3600k; do
        rm -rf left
        on_disk $size 0
        cmp -s t.ndf left/out.ndf || complain "a disk of $size gave another file"
    done
    rm -rf left
    on_disk 16k 5
    one_line 'No space left'
    [ -z "$(ls left | grep -v '^out.ndf.work$')" ] || complain "a full disk has $(ls left)"
    # With room for the layers, and not for the file as well, the line says what is left: another run needs no more.
    rm -rf left
    on_disk 48k 5
    one_line 'No space left' 'out.ndf.work contains the finished layers, and --resume reuses them'
    mv left/out.ndf.work resumed.ndf.work
    expect 0 whit compress original.ndf --codec t --calib calibration -c 32 --resume -o resumed.ndf
    cmp -s t.ndf resumed.ndf || complain "another file after a full disk"
else
    echo "[ SKIPPED ] no file system can be mounted here: nothing is compressed to a full disk"
fi
cmp -s t.ndf older.ndf || complain "a failure changed the older file"
[ -z "$(ls older.ndf.tmp-* 2>/dev/null)" ] || complain "a failure left a torn file"
finish
