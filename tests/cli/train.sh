# SPDX-License-Identifier: MIT
# whit train and distill as a user meets them: a model from nothing, runs that are cut and go on, and
# failures that leave the last checkpoint as it was.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache ./*.ndf ./*.run ./*.jsonl
for i in $(seq 60); do
    printf '<s>The fox number %s has a ball. The owl has the ball of the fox.</s>\n' "$i"
done >text
shape="--width 32 --layers 2 --heads 2 --ffn 48 --context 64 --vocab 300"
batch="-c 24 --sequences 2 --threads 1 --embedding f32"

# ---- a model from nothing
# shellcheck disable=SC2086 # options are lists
{
    expect 0 whit train --text text --specials $shape $batch --codec f32 --steps 40 --rate 5e-3 --held-out text \
        --log log.jsonl --name fox -o whole.ndf --seed 3
    python3 -c 'import json, math
lines = [json.loads(line) for line in open("log.jsonl")]
assert lines[-1]["step"] == 40 and lines[-1]["held_ce"] < math.log(300) - 1, lines[-1]' || complain "the log: $(tail -n 1 log.jsonl)"
    expect 0 whit verify whole.ndf
    expect 0 whit run -m whole.ndf -p 'The fox' -n 12 --temp 0
    grep -q '^The fox' out || complain "the new model does not run: $(cat out)"
    expect 0 whit train --text text --specials $shape $batch --codec f32 --steps 40 --rate 5e-3 --name fox -o twin.ndf --seed 3
    cmp -s whole.ndf twin.ndf || complain "the same training gave another model"

    # ---- other shapes, other codecs
    cat >config.json <<'END'
{"architectures": ["LlamaForCausalLM"], "hidden_size": 128, "intermediate_size": 160, "num_hidden_layers": 1,
 "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 280, "max_position_embeddings": 64,
 "rms_norm_eps": 1e-6, "tie_word_embeddings": true}
END
    expect 0 whit train --text text --config config.json $batch --codec t --steps 3 -o ternary.ndf
    expect 0 whit inspect ternary.ndf --json
    python3 -c 'import json
c = json.load(open("out"))["config"]
assert (c["n_embd"], c["n_ff"], c["n_kv_heads"], c["n_vocab"], c["tied_head"]) == (128, 160, 2, 280, True), c' || complain "config.json"
    expect 0 whit distill --teacher whole.ndf --student config.json --text text --specials $batch --codec q2 --steps 3 -o student.ndf
    expect 0 whit run -m student.ndf -p 'The fox' -n 4 --temp 0
    expect 0 whit distill --teacher whole.ndf --sample 400 $batch --codec b1 --steps 3 -o sampled.ndf
    expect 0 whit distill --teacher whole.ndf --start sampled.ndf --codec own --blocks --text text --specials --random 400 $batch --steps 3 -o random.ndf
    expect 0 whit distill --teacher whole.ndf --start sampled.ndf --codec own --blocks --text text --specials $batch --steps 3 -o again.ndf
    cmp -s random.ndf again.ndf && complain "random tokens changed nothing"
    expect 2 whit distill --teacher whole.ndf $batch --codec b1 --steps 3 -o none.ndf
    expect 0 whit distill --teacher whole.ndf --start sampled.ndf --text text --specials $batch --codec b1 --steps 3 -o settled.ndf
    expect 2 whit distill --teacher whole.ndf --start sampled.ndf --student config.json --text text $batch --steps 3 -o none.ndf
    expect 0 whit train --text text --specials --start whole.ndf $batch --codec f32 --steps 1 -o again.ndf
    for option in '--layers 2' '--own-head' '--name hen' '--special x'; do
        expect 2 whit train --text text --start whole.ndf $option $batch --steps 1 -o none.ndf
        one_line "${option%% *} is for a new model"
    done
    [ ! -e none.ndf ] || complain "a refused training left a model"
    tiny tiny.gguf
    expect 0 whit train --text text --tokenizer tiny.gguf $shape $batch --steps 1 -o again.ndf

    # ---- cut and gone on with: the same bits
    training="train --text text --specials $shape $batch --codec t --rate 5e-3 --seed 3"
    expect 0 whit $training --steps 150 -o straight.ndf
    python3 "$SOURCE/tests/cli/cut.py" ${EMULATOR:-} "$WHIT" $training --steps 150 || failed=1
    cmp -s straight.ndf cut.ndf || complain "a run that was cut by Ctrl-C and kill -9 ended with other bits"

    # ---- products of one precision give the same model at every level; a checkpoint names the precision it needs
    for precision in bf16-amx bf16-avx512; do
        expect 0 whit $training --steps 4 --precision $precision --checkpoint $precision.run --log $precision.jsonl -o $precision.ndf
        grep -q "\"precision\":\"$precision\"" $precision.jsonl || complain "the log: $(head -n 1 $precision.jsonl)"
        for level in avx2 generic; do
            WHIT_CPU=$level expect 0 whit $training --steps 4 --precision $precision -o level.ndf
            cmp -s $precision.ndf level.ndf || complain "--precision $precision gives another model with WHIT_CPU=$level"
        done
    done
    cmp -s bf16-amx.ndf bf16-avx512.ndf && complain "both orders of sums give one model"
    expect 2 whit $training --steps 4 --precision f32 --checkpoint bf16-avx512.run --resume -o lost.ndf
    grep -q 'with products in bf16-avx512, here they are in f32; resume it with --precision bf16-avx512' err ||
        complain "another precision's checkpoint: $(cat err)"

    # ---- failures
    : >empty
    expect 3 whit train --text empty $shape $batch --steps 1 -o lost.ndf
    one_line empty
    printf 'a few words' >short
    expect 2 whit train --text short $shape $batch --steps 1 -o lost.ndf
    grep -q 'window' err || complain "a short text: $(cat err)"
    expect 5 whit train --text absent $shape $batch --steps 1 -o lost.ndf
    grep -q 'absent: cannot open: No such file' err || complain "an absent text: $(cat err)"
    # A context below the default window is the window.
    expect 0 whit train --text text $shape --sequences 1 --threads 1 --steps 1 --log window.jsonl -o window.ndf
    python3 -c 'import json; assert json.loads(open("window.jsonl").readline())["run"]["window"] == 64' ||
        complain "the window of a short context: $(head -n 1 window.jsonl)"
    expect 2 whit train --text text $shape -c 65 --steps 1 -o lost.ndf
    expect 2 whit train --text text $shape --vocab 12 $batch --steps 1 -o lost.ndf
    expect 2 whit train --text text $shape $batch -o lost.ndf
    expect 2 whit train --text text $shape $batch --steps 1 --resume -o lost.ndf
    expect 3 whit train --text text $shape --heads 3 --kv-heads 2 $batch --steps 1 -o lost.ndf
    printf '{"hidden_size": 1e99}' >wrong.json
    expect 3 whit train --text text --config wrong.json $batch --steps 1 -o lost.ndf
    [ ! -e lost.ndf ] || complain "a failure left a model"

    # ---- a full disk: files may grow to 64 KiB here, a checkpoint is larger
    expect 0 whit $training --steps 20 --checkpoint full.run -o small.ndf
    cp full.run before.run
    (
        trap '' XFSZ
        ulimit -f 64
        expect 5 whit $training --steps 20 --checkpoint full.run --resume -o small.ndf
        exit $failed
    ) || failed=1
    expect 0 whit $training --steps 20 --ramp 0.5 --checkpoint ramp.run -o ramp.ndf
    expect 0 whit $training --steps 20 --ramp 0.5 --checkpoint ramp.run --resume -o ramp-again.ndf
    cmp -s ramp.ndf ramp-again.ndf || complain "resuming a finished run writes another model"
    cmp -s full.run before.run || complain "a full disk changed the checkpoint"
    [ -z "$(ls full.run.tmp-* 2>/dev/null)" ] || complain "a full disk left a torn file"
    expect 0 whit $training --steps 20 --checkpoint full.run --resume -o small.ndf
    # A kill lost the steps behind the checkpoint, and the log has them twice: the curve has the later ones.
    printf '%s\n' '{"run": {"resumed": false}}' '{"step": 5, "ce": 7}' '{"run": {"resumed": false}}' '{"step": 10, "ce": 6}' \
        '{"step": 20, "ce": 5}' '{"step": 30, "ce": 4}' '{"run": {"resumed": true}}' '{"step": 15, "ce": 3}' \
        '{"step": 25, "ce": 2}' >twice.jsonl
    expect 0 whit $training --steps 20 --checkpoint full.run --resume -o small.ndf --log twice.jsonl --plot twice.svg
    python3 - <<'END' || complain "--plot of a log with steps twice: $(grep polyline twice.svg)"
import xml.dom.minidom
line, = xml.dom.minidom.parse("twice.svg").getElementsByTagName("polyline")
x = [float(point.split(",")[0]) for point in line.getAttribute("points").split()]
assert len(x) == 3 and x[0] < x[1] < x[2], x
END
    expect 2 whit $training --steps 21 --checkpoint full.run --resume -o small.ndf
    grep -q 'another model, text or settings' err || complain "another run's checkpoint: $(cat err)"
}
finish
