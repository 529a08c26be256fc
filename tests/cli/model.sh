# SPDX-License-Identifier: MIT
# Every verb that takes a model, on the small model that the project makes itself.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache
tiny model.gguf
tiny other.gguf 2 tied
tiny mute.gguf 1 no-tokenizer

# ---- convert, verify, inspect
expect 0 whit convert model.gguf -o model.ndf
[ ! -s out ] || complain "convert wrote to stdout"
expect 0 whit convert model.gguf -o model.ndf --json
python3 -c 'import json; assert len(json.load(open("out"))["tensors"]) == 21' || complain "convert --json"
expect 0 whit convert model.gguf -o twin.ndf -v
grep -q '^\[1/21\]' out || complain "convert -v"
expect 0 whit verify model.ndf
expect 0 whit verify model.ndf --json
expect 0 whit inspect model.ndf --json
cp out inspected
expect 0 whit inspect twin.ndf --json
python3 - <<'END' || complain "inspect --json"
import json
a, b = json.load(open("inspected")), json.load(open("out"))
assert a["identity"] == b["identity"] and len(a["identity"]) == 64
assert 32 <= a["body_bits_per_weight"] < 40 and a["session_bytes"] > 0
assert a["config"]["n_layers"] == 2 and len(a["tensors"]) == 21
assert a["metadata"]["general.name"] == "tiny"
END
expect 0 whit inspect model.gguf
grep -q '^identity' out || complain "inspect of a source"
expect 0 whit inspect model.ndf --tensors
grep -q 'layers.1.down' out || complain "inspect --tensors"
expect 0 whit inspect model.ndf --plan
grep -q attend out || complain "inspect --plan"
expect 0 whit inspect model.ndf --plan --rows 64
grep -q rope+attend out || complain "inspect --plan --rows"
expect 0 whit convert model.gguf -o small.ndf --embd i8 --head i8
if [ -z "${EMULATOR:-}" ]; then # it measures: an emulator takes minutes
    expect 0 whit convert model.gguf -o measured.ndf --codec auto
    grep -q '^whit: t[25]: this machine decodes [0-9]* billion weights a second of t2, [0-9]* of t5' err ||
        complain "convert --codec auto: $(cat err)"
fi
expect 0 whit convert model.gguf -o same.ndf --codec q2
grep -q "the model has no ternary matrices" err || complain "--codec without anything to do: $(cat err)"
expect 0 whit convert "$SOURCE/tools/tales/tales.ndf" -o signs.ndf --codec q2
grep -q "no ternary" err && complain "--codec q2 of a ternary model: $(cat err)"
expect 2 whit convert model.gguf -o small.ndf --embd x9
one_line x9
expect 2 whit convert model.gguf
one_line "-o OUT"

# ---- tokenize
printf 'the land' | whit tokenize -m model.ndf >out 2>err || complain "tokenize"
printf 'the land' | whit tokenize -m model.ndf --no-special >plain
[ "$(cut -d ' ' -f 1 out)" = 1 ] || complain "no BOS in front: $(cat out)"
[ "1 $(cat plain)" = "$(cat out)" ] || complain "--no-special: $(cat plain)"
printf 'the land' | whit tokenize -m model.ndf --json | python3 -c 'import json, sys
assert json.load(sys.stdin)["ids"][0] == 1' || complain "tokenize --json"

# ---- run: the same text from either file, with any number of threads, on every level
greedy="--temp 0 -n 24 -c 64"
# shellcheck disable=SC2086 # options are a list
{
    expect 0 whit run -m model.gguf -p 'the land' $greedy
    cp out text
    grep -q '^the land' text || complain "run lacks its prompt: $(cat out)"
    [ -n "$(find cache -name '*.ndf')" ] || complain "the source was not cached"
    [ "$(stat -c %a cache/whit)" = 700 ] || complain "the cache folder is not private"
    for more in "-t 1" "-t 3" "-t 7" "-ub 1" "--no-cache"; do
        expect 0 whit run -m model.gguf -p 'the land' $greedy $more
        cmp -s out text || complain "$more gave another text"
    done
    for level in generic avx2 avx512; do
        expect 0 env WHIT_CPU=$level $EMULATOR "$WHIT" run -m model.ndf -p 'the land' $greedy
        cmp -s out text || complain "WHIT_CPU=$level gave another text"
    done
    expect 0 whit run -m model.ndf -p 'the land' $greedy --no-display-prompt
    [ "the land$(cat out)" = "$(cat text)" ] || complain "--no-display-prompt: $(cat out)"
    printf 'the land\n' >prompt
    expect 0 whit run -m model.ndf -f prompt $greedy
    cmp -s out text || complain "-f gave another text"
    whit run -m model.ndf $greedy <prompt >out 2>err
    cmp -s out text || complain "a prompt on stdin gave another text"
    expect 0 whit run -m model.ndf -p '' -n 4 --temp 0
    expect 0 whit run -m model.ndf -p 'the' -n 8 -s 7 --temp 1.5 --top-k 0 --top-p 1 --min-p 0
    cp out text
    expect 0 whit run -m model.ndf -p 'the' -n 8 -s 7 --temp 1.5 --top-k 0 --top-p 1 --min-p 0
    cmp -s out text || complain "the same seed gave another text"
    expect 0 whit run -m model.ndf -p 'the' -n 6 --temp 0 -l 300+1000 --json
    python3 -c 'import json; r = json.load(open("out")); assert r["generated_tokens"] == 6 and r["finish"] == "length"' ||
        complain "run --json: $(cat out)"
    expect 0 whit run -m model.ndf -p 'the' -n -1 -c 32 --temp 0 --ignore-eos
    grep -q 'context 3[12] of 32' err || complain "-n -1 fills the context: $(cat err)"
}
expect 2 env WHIT_CPU=avx9 $EMULATOR "$WHIT" run -m model.ndf -p x
one_line avx9
(
    ulimit -f 100 # in KiB; the file has 400
    expect 5 whit convert model.gguf -o large.ndf
    one_line large.ndf
    exit $failed
) || failed=1
[ -z "$(ls large.ndf* 2>/dev/null)" ] || complain "a failed conversion left $(ls large.ndf*)"
expect 2 whit run -m model.ndf -p x --kv f64
one_line "f16|f32|i8"
expect 2 whit run -m model.ndf -p x -t many
one_line "whole number"
expect 4 whit run -m model.ndf -p 'the land of the land and the land' -c 4
one_line "context"
expect 5 whit run -m absent.gguf -p x
one_line "absent.gguf"
for verb in run tokenize; do
    printf x | whit $verb -m mute.gguf >out 2>err
    [ $? = 3 ] && grep -q 'a folder needs tokenizer.json or tokenizer.model\|--tokenizer PATH' err || complain "$verb without a tokenizer: $(cat err)"
done

# ---- logits: n x vocabulary, the same from either file, for any batch
printf '1 300\n301\t302 303' >ids
expect 0 whit logits -m model.gguf --tokens ids -o a.f32
[ "$(stat -c %s a.f32)" = $((5 * 310 * 4)) ] || complain "logits have $(stat -c %s a.f32) bytes"
expect 0 whit logits -m model.ndf --tokens ids -o b.f32 -ub 2 -t 3
cmp -s a.f32 b.f32 || complain "logits differ between files or batches"
expect 0 whit logits -m mute.gguf --tokens ids -o b.f32
cmp -s a.f32 b.f32 || complain "logits need no tokenizer"
printf '1 3x' >bad
expect 3 whit logits -m model.ndf --tokens bad -o b.f32
one_line "3x"
long=x234567890123456789012345678901234567890 # 40 bytes; of more no more are shown
for more in '' abc; do
    printf '1 %s 2' $long$more >bad
    expect 3 whit logits -m model.ndf --tokens bad -o b.f32
    one_line "'$long' is not a token id"
done
printf '1 310' >bad
whit logits -m model.ndf --tokens bad -o c.f32 2>err && complain "an id beyond the vocabulary"
[ ! -e c.f32 ] || complain "a failed run left its output behind"
if [ -w /dev/full ]; then
    expect 5 whit logits -m model.ndf --tokens ids -o /nowhere/out.f32
fi

# ---- perplexity against the logits themselves, computed again in Python
printf 'the land and the ocean and then an inn on the land. %.0s' 1 2 3 4 >text
expect 0 whit perplexity -m model.ndf -f text -c 16 --json
cp out windows
expect 0 whit perplexity -m model.ndf -f text -c 16 --second-half --chunks 2 --kl-base other.gguf --json
cp out halves
whit tokenize -m model.ndf <text >ids
python3 - "$WHIT" <<'END' || complain "perplexity disagrees with the logits"
import json, math, struct, subprocess, sys
emulator = __import__("os").environ.get("EMULATOR", "").split()
ids = list(map(int, open("ids").read().split()))
def log_softmax(row):
    top = max(row)
    total = top + math.log(sum(math.exp(x - top) for x in row))
    return [x - total for x in row]
def rows(model, window):
    open("window", "w").write(" ".join(map(str, window)))
    subprocess.run(emulator + [sys.argv[1], "logits", "-m", model, "--tokens", "window", "-o", "w.f32"], check=True)
    data = open("w.f32", "rb").read()
    return [log_softmax(struct.unpack_from("<310f", data, i * 1240)) for i in range(len(window))]
def windows(n):
    for at in range(0, len(ids), n):
        window = ids[at:at + n]
        yield [1] + window[1:]
nll, n = 0, 0
for window in windows(16):
    p = rows("model.ndf", window)
    for i in range(len(window) - 1):
        nll -= p[i][window[i + 1]]; n += 1
got = json.load(open("windows"))
assert got["tokens"] == n and abs(got["nll"] - nll / n) < 1e-6, (got, nll / n, n)
assert abs(got["ppl"] - math.exp(nll / n)) < 1e-4
nll, base, n, kl, same = 0, 0, 0, [], 0
for window in list(windows(16))[:2]:
    p, q = rows("model.ndf", window), rows("other.gguf", window)
    for i in range(8, 15):
        nll -= p[i][window[i + 1]]; base -= q[i][window[i + 1]]; n += 1
        kl.append(sum(math.exp(b) * (b - a) for a, b in zip(p[i], q[i])))
        same += p[i].index(max(p[i])) == q[i].index(max(q[i]))
got = json.load(open("halves"))
kl.sort()
def quantile(x, q):
    at = q * (len(x) - 1); i = int(at)
    return x[-1] if i + 1 >= len(x) else x[i] * (1 - at + i) + x[i + 1] * (at - i)
for key, value in {"tokens": n, "nll": nll / n, "ppl_base": math.exp(base / n), "kld_mean": sum(kl) / n,
                   "kld_median": quantile(kl, .5), "kld_p99": quantile(kl, .99), "kld_max": kl[-1],
                   "top1": 100 * same / n}.items():
    assert abs(got[key] - value) < 1e-4 * max(1, abs(value)), (key, got[key], value)
END
expect 0 whit perplexity -m model.ndf -f text -c 16 --kl-base model.gguf
grep -q '^Final estimate: PPL over' out || complain "perplexity text: $(cat out)"
expect 3 whit perplexity -m model.ndf -f prompt -c 512 --second-half
one_line "too few"
expect 2 whit perplexity -m model.ndf
one_line "-f TEXT"
# Windows in which nothing is scored are refused; in the smallest others one token is.
expect 2 whit perplexity -m model.ndf -f text -c 1
one_line "at least 2 tokens"
expect 2 whit perplexity -m model.ndf -f text -c 2 --second-half --kv-base f32
one_line "at least 3 tokens"
expect 0 whit perplexity -m model.ndf -f text -c 3 --chunks 1 --second-half --kv-base f32 --json
grep -q '"tokens": 1,' out || complain "a window of three: $(cat out)"
expect 2 whit compare model.gguf model.ndf -f text -c 2
one_line "at least 3 tokens"
expect 0 whit compare model.gguf model.ndf -f text -c 2 --chunks 1 --all --json
grep -q '"tokens": 1,' out || complain "a window of two: $(cat out)"

# ---- contracts: a key that may change the result and is not known
python3 "$SOURCE/tests/cli/contracts.py" model.gguf ${EMULATOR:-} "$WHIT" || complain "see above"
finish
