# SPDX-License-Identifier: MIT
# Adapters from the command line: convert, mount, inspect, verify, merge.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache lora* tuned ./*.ndf ./*.run
tiny model.gguf
tiny other.gguf 2
expect 0 whit convert model.gguf -o model.ndf
expect 0 whit convert other.gguf -o other.ndf

# A LoRA folder for every projection of both layers (width 64, KV width 32, feed-forward 96).
mkdir lora
python3 - <<'END'
import json, struct
shapes = {"self_attn.q_proj": (64, 64), "self_attn.k_proj": (32, 64), "self_attn.v_proj": (32, 64),
          "self_attn.o_proj": (64, 64), "mlp.gate_proj": (96, 64), "mlp.up_proj": (96, 64), "mlp.down_proj": (64, 96)}
header, data, rank, state = {}, b"", 6, 1
def values(n):
    global state
    out = []
    for _ in range(n):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append(((state >> 40) / 2**24 - 0.5) * 0.4)
    return out
for layer in range(2):
    for name, (rows, columns) in shapes.items():
        for factor, shape in (("A", (rank, columns)), ("B", (rows, rank))):
            raw = struct.pack("<%df" % (shape[0] * shape[1]), *values(shape[0] * shape[1]))
            header["base_model.model.model.layers.%d.%s.lora_%s.weight" % (layer, name, factor)] = {
                "dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
text = json.dumps(header).encode()
open("lora/adapter_model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
json.dump({"peft_type": "LORA", "r": rank, "lora_alpha": 12, "bias": "none", "target_modules": ["q_proj"],
           "base_model_name_or_path": "tiny"}, open("lora/adapter_config.json", "w"))
END

# ---- convert
expect 2 whit convert lora -o verse.ndf
one_line "belongs to a model" "--for MODEL"
expect 2 whit convert lora --for model.ndf
one_line "--append"
expect 2 whit convert lora --for model.ndf -o model.ndf
one_line "is the model"
expect 0 whit convert lora --for model.gguf -o verse.ndf
expect 0 whit convert lora --for model.ndf -o twin.ndf --json --name verse
python3 -c 'import json; a = json.load(open("out")); assert a["rank"] == 6 and a["matrices"] == 14' || complain "convert --json"
cmp -s verse.ndf twin.ndf || complain "the same adapter for a source and for its .ndf differs"
expect 2 whit convert verse.ndf --for other.ndf -o wrong.ndf
one_line "made for the model"

# ---- mount
greedy="--temp 0 -n 24 -c 64"
# shellcheck disable=SC2086 # options are a list
{
    expect 0 whit run -m model.ndf -p 'the land' $greedy
    cp out plain
    expect 0 whit run -m model.ndf -p 'the land' $greedy --adapter verse.ndf:0
    cmp -s out plain || complain "a strength of 0 changes the text"
    expect 0 whit run -m model.ndf -p 'the land' $greedy --adapter verse.ndf
    cp out verse
    cmp -s out plain && complain "an adapter changes nothing"
    expect 0 whit run -m model.gguf -p 'the land' $greedy --adapter ./verse.ndf:1 -t 2
    cmp -s out verse || complain "the source's text differs with the adapter"
    expect 0 whit run -m model.ndf -p 'the land' $greedy --adapter verse.ndf:3 --adapter verse.ndf:-3
    expect 2 whit run -m other.ndf -p 'the land' $greedy --adapter verse.ndf
    one_line "verse.ndf" "made for the model"
    expect 5 whit run -m model.ndf -p 'the land' $greedy --adapter none.ndf
    one_line "none.ndf" "no such file"
    expect 3 whit run -m model.ndf -p 'the land' $greedy --adapter other.ndf
    one_line "not an adapter"
    expect 3 whit run -m verse.ndf -p 'the land' $greedy
    one_line "an adapter without a model"
    expect 2 whit run -m model.ndf -p 'the land' $greedy --adapter verse.ndf:1e999
    one_line "not a finite number"
}
printf '1 5 9 260 270 280\n' >ids
expect 0 whit logits -m model.ndf --tokens ids -o plain.f32
expect 0 whit logits -m model.ndf --tokens ids -o mounted.f32 --adapter verse.ndf:0.5
printf 'the land and the time of once then in a land, the end. ' >text
expect 0 whit perplexity -m model.ndf -f text -c 16 --json --kl-base model.ndf
python3 -c 'import json; assert json.load(open("out"))["kld_max"] < 1e-5' || complain "divergence without an adapter"
expect 0 whit perplexity -m model.ndf -f text -c 16 --json --kl-base model.ndf --adapter verse.ndf
python3 -c 'import json; assert json.load(open("out"))["kld_mean"] > 1e-3' || complain "perplexity --adapter"

# ---- in the model's own file
cp model.ndf own.ndf
expect 0 whit convert verse.ndf --for own.ndf --append --name rhyme
# shellcheck disable=SC2086
expect 0 whit run -m own.ndf -p 'the land' $greedy --adapter rhyme
cmp -s out verse || complain "the adapter in the model's file gives another text"
expect 0 whit verify own.ndf
expect 0 whit inspect own.ndf
grep -q '^adapter *rhyme, rank 6, 14 matrices' out || complain "inspect does not show the adapter: $(head -n 6 out)"
expect 0 whit inspect own.ndf --json
python3 -c 'import json; a = json.load(open("out"))["appended"][0]; assert a["rank"] == 6 and len(a["matrices"]) == 14' ||
    complain "inspect --json of an adapter in a model"

expect 0 whit inspect own.ndf --json --adapter rhyme -ub 64
cp out adapted
expect 0 whit inspect own.ndf --json -ub 64
python3 - <<'END' || complain "inspect does not count the session's adapters"
import json
plain, adapted = (json.load(open(name))["session_bytes"] for name in ("out", "adapted"))
assert 0 < plain and 3 * 16 * 64 * 4 < adapted - plain < 2 * 3 * 16 * 64 * 4  # q, k, v to 16 ranks of 64 rows, and a little
END

# ---- inspect, verify
expect 0 whit inspect verse.ndf
grep -q 'rank 6, 14 matrices' out || complain "inspect of an adapter"
expect 0 whit verify verse.ndf
grep -q 'adapter of the model' out || complain "verify of an adapter: $(cat out)"
python3 - <<'END'
data = bytearray(open("verse.ndf", "rb").read())
data[len(data) // 2] ^= 1
open("bad.ndf", "wb").write(data)
END
expect 3 whit verify bad.ndf

# ---- merge
expect 0 whit merge -m model.ndf --adapter verse.ndf:0.5 -o merged.ndf -v
[ "$(grep -c 'error' out)" = 14 ] || complain "merge -v"
expect 0 whit logits -m merged.ndf --tokens ids -o merged.f32
python3 - <<'END' || complain "the merged model computes something else"
import array
def load(name): return array.array("f", open(name, "rb").read())
plain, mounted, merged = load("plain.f32"), load("mounted.f32"), load("merged.f32")
def far(a, b): return max(abs(x - y) for x, y in zip(a, b))
assert far(plain, mounted) > 0.05 and far(mounted, merged) < 1e-3 * far(plain, mounted) + 1e-4
END
expect 0 whit merge -m model.gguf --no-cache --adapter verse.ndf -o small.ndf --codec i4 --json
expect 2 whit merge -m small.ndf --adapter verse.ndf -o none.ndf --codec i8
expect 2 whit merge -m model.ndf -o none.ndf
[ ! -e none.ndf ] || complain "a refused merge left a file"

# ---- tune
for _ in 1 2 3 4 5 6 7 8; do cat text; done >texts
small="--steps 6 --sequences 2 -c 16 --precision f32 --rate 3e-3 -t 2"
rm -f log* run.checkpoint
# shellcheck disable=SC2086
{
    expect 0 whit tune -m model.ndf --text texts $small --rank 4 -o tuned.ndf --held-out texts --held-out-every 2 --log log --plot curve.svg
    expect 0 whit tune -m model.ndf --text texts $small --rank 4 -o again.ndf --held-out texts --held-out-every 2
    cmp -s tuned.ndf again.ndf || complain "the same tuning gives another adapter"
    # A run that ended is resumed, as after a kill in front of the last write: nothing is left to do but that.
    expect 0 whit tune -m model.ndf --text texts $small --rank 4 -o finished.ndf --held-out texts --checkpoint finished.run
    expect 0 whit tune -m model.ndf --text texts $small --rank 4 -o resumed.ndf --held-out texts --checkpoint finished.run --resume
    cmp -s finished.ndf resumed.ndf || complain "resuming a finished run writes another adapter"
    expect 0 whit run -m model.ndf -p 'the land' $greedy --adapter tuned.ndf
    cmp -s out plain && complain "a tuned adapter changes nothing"
    expect 0 whit tune -m model.gguf --teacher model.gguf --text texts $small --rank 4 --norms -o tuned-model.ndf
    expect 0 whit run -m tuned-model.ndf -p 'the land' $greedy --adapter tuned
    # A disk that has room for the model and not for its adapter leaves the older file; links stay links.
    mkdir tuned
    ln -s tuned/both.ndf link.ndf
    expect 0 whit tune -m model.ndf --text texts $small --rank 0 --norms -o tuned/alone.ndf
    expect 0 whit tune -m model.ndf --text texts $small --rank 4 --norms -o link.ndf
    [ -L link.ndf ] && [ -f tuned/both.ndf ] || complain "tuning wrote over a link: $(ls -l link.ndf tuned)"
    cp tuned/both.ndf both.ndf
    blocks=$((($(stat -c %s both.ndf) - 1) / 1024))
    [ $((blocks * 1024)) -ge "$(stat -c %s tuned/alone.ndf)" ] || complain "no size is between $(ls -l tuned)"
    (
        trap '' XFSZ
        ulimit -f $blocks
        expect 5 whit tune -m model.ndf --text texts $small --rank 4 --norms --seed 1 -o link.ndf
        exit $failed
    ) || failed=1
    cmp -s tuned/both.ndf both.ndf || complain "a full disk changed the tuned model"
    [ "$(ls tuned | wc -l)" = 2 ] || complain "a full disk left a file: $(ls tuned)"
    expect 2 whit tune -m model.ndf --text texts $small --rank 0 -o none.ndf
    one_line "nothing to tune"
    expect 2 whit tune -m model.ndf --text texts $small --matrix head -o none.ndf
    one_line "no matrix 'head'"
    expect 3 whit tune -m model.ndf --text texts $small --scales -o none.ndf
    one_line "no scales that can be tuned"
    # The adapter needs its model, and no file is written over a text or another file of the run.
    cp model.ndf kept.ndf
    cp texts kept.texts
    expect 2 whit tune -m model.ndf --text texts $small --rank 4 -o ./model.ndf
    one_line "is the file of -m" "name another file for -o"
    cmp -s model.ndf kept.ndf || complain "tuning wrote over the model"
    expect 2 whit tune -m model.ndf --text texts $small -o texts
    one_line "is the file of --text"
    expect 2 whit tune -m model.ndf --text text $small -o none.ndf --held-out texts --log ./texts
    one_line "is the file of --held-out" "for --log"
    expect 2 whit tune -m model.ndf --text texts $small -o none.ndf --checkpoint none.ndf
    one_line "is the file of -o" "for --checkpoint"
    cmp -s texts kept.texts || complain "tuning wrote over its text"
    expect 2 whit tune -m model.ndf --text texts $small --scales --refit-scales -o none.ndf
    one_line "--refit-scales"
    expect 2 whit tune -m model.ndf --text texts $small --embedding f16 -o none.ndf
    one_line "--embedding" # of new models: tuning leaves it as it is
    : >empty
    expect 3 whit tune -m model.ndf --text empty $small -o none.ndf
    expect 2 whit tune -m model.ndf -o none.ndf
}
[ ! -e none.ndf ] || complain "a refused tuning left a file"
python3 - <<'END' || complain "three measurements should be three lines of log: $(cat log)"
import json
reports = [json.loads(line) for line in open("log")]
assert "run" in reports.pop(0) # what the run was asked for
assert reports.pop(0)["before"]["held_ce"] > 0
assert [r["step"] for r in reports if "held_ce" in r] == [2, 4, 6]
# Another line only where a slow machine, or one that was held up, has said nothing for five seconds.
shown = [0] + [r["seconds"] for r in reports]
assert all("held_ce" in r or r["seconds"] - before >= 4.99 for r, before in zip(reports, shown))
END
python3 - <<'END' || complain "--plot"
import xml.dom.minidom
n_reports = len(open("log").readlines()) - 2 # the first say what was asked for, and what there was before
svg = xml.dom.minidom.parse("curve.svg").documentElement
lines = {line.getAttribute("class"): line.getAttribute("points").split() for line in svg.getElementsByTagName("polyline")}
assert svg.tagName == "svg" and {name: len(points) for name, points in lines.items()} == {"loss": n_reports, "held": 3}
for points in lines.values():
    for point in points:
        x, y = map(float, point.split(","))
        assert 0 <= x <= 800 and 0 <= y <= 460
assert len(svg.getElementsByTagName("circle")) == 3
title, = svg.getElementsByTagName("title") # the whole command, of which the picture has room for a part
assert title.firstChild.data.startswith("whit tune ") and "--rank 4" in title.firstChild.data, title.firstChild.data
assert all(len(text.firstChild.data) <= 100 for text in svg.getElementsByTagName("text"))
END
finish
