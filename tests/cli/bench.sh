# SPDX-License-Identifier: MIT
# whit bench: every field of every object, lists, mistakes; a random model of a real shape.
. "$SOURCE/tests/cli/lib.sh"

tiny tiny.gguf
expect 0 whit convert tiny.gguf -o tiny.ndf
expect 0 whit bench -m tiny.ndf -p 8 -n 4 -d 0,70 -t 1,2 -ub 4 -r 2 --kv i8 --columns 2 --json
python3 - out <<'END' || complain "bench --json: $(cat out)"
import json, sys
tests = json.load(open(sys.argv[1]))
fields = {"shape", "test", "depth", "columns", "kv", "threads", "cpu", "isa", "tps_median", "tps_best",
          "bytes_per_token", "read_gbps", "bandwidth_share", "int8_gmacs", "int8_share", "roofline_share",
          "huge_share", "peak_rss_bytes"}
assert len(tests) == 8, len(tests)
assert {(t["test"], t["depth"], t["threads"]) for t in tests} == {
    (name, depth, threads) for name in ("pp8", "tg4") for depth in (0, 70) for threads in (1, 2)}
for t in tests:
    assert set(t) == fields, set(t) ^ fields
    assert t["shape"] == "tiny.ndf" and t["kv"] == "i8" and t["columns"] == (2 if t["test"] == "tg4" else 1)
    assert t["tps_best"] >= t["tps_median"] > 0 and t["roofline_share"] >= t["bandwidth_share"] - 1e-9
    assert t["bytes_per_token"] > 0 and t["read_gbps"] > 0 and t["int8_gmacs"] > 0 and t["peak_rss_bytes"] > 1e6
END
expect 0 whit bench -m tiny.ndf -p 0 -n 2 -r 1 --steal --csv
[ "$(wc -l <out)" = 3 ] || complain "bench --steal --csv: $(cat out)"
expect 0 whit bench -m tiny.ndf -p 4 -n 0 -r 1 --profile
grep -q '^| tiny.ndf | pp4 |' out || complain "bench: $(cat out)"
grep -q 'x gate+up' out || complain "bench --profile: $(cat out)"

# Only the last pass of a prompt reads the head, and a screened one not the low halves of all its rows.
expect 0 whit convert tiny.gguf --head i8s -o screened.ndf
prompt="-p 8 -n 0 -r 1 -t 1 --json"
# shellcheck disable=SC2086 # options are a list
{
    expect 0 whit bench -m tiny.ndf $prompt --exact-head -ub 8
    cp out one
    expect 0 whit bench -m tiny.ndf $prompt --exact-head -ub 4
    cp out two
    expect 0 whit bench -m screened.ndf $prompt --profile --exact-head
    cp out exact
    expect 0 whit bench -m screened.ndf $prompt --profile
}
python3 - one two exact out <<'END' || complain "bench counts what is not read: $(cat one two exact out)"
import json, sys
one, two, exact, screened = (json.load(open(name))[0] for name in sys.argv[1:])
# Two passes read all weights but the head twice, and both ways look up eight rows of the embedding.
head = 8 * (2 * one["bytes_per_token"] - two["bytes_per_token"])
assert 64 * 280 + 8 * 64 * 4 < head < 64 * 360 * 4, (head, one, two) # all weights are over three times as much
whole, half = (sum(line["bytes"] for line in test["profile"]) for test in (exact, screened))
assert whole - half > 64 * 280 / 3, (whole, half)
END
expect 2 whit bench -m tiny.ndf --profile --csv
one_line "--profile"

# Guesses: by the model's own block, by a draft model, from the text; what does not go together is refused.
rm -rf draft
XDG_CACHE_HOME=$PWD/cache python3 "$SOURCE/tests/cli/draft.py" draft 64 310 || complain "no model with a block"
expect 0 whit convert draft -o draft.ndf
for how in "draft.ndf --draft mtp --spec 3" "tiny.ndf --draft draft.ndf --spec 2" "draft.ndf --draft mtp" \
    "tiny.ndf --draft none --spec 7"; do
    # shellcheck disable=SC2086 # options are a list
    expect 0 whit bench -m $how -p 8 -n 40 -d 0,5 -r 2 -t 1 --json
    python3 - out "$how" <<'END' || complain "bench $how: $(cat out)"
import json, sys
tests = json.load(open(sys.argv[1]))
assert [(t["test"], t["depth"]) for t in tests] == [("pp8", 0), ("tg40", 0), ("pp8", 5), ("tg40", 5)]
for t in tests:
    assert t["tps_median"] > 0 and t["bytes_per_token"] > 0, t
    if t["test"] == "pp8":
        assert t["tokens_per_step"] == t["draft_accepted"] == 0, t
        continue
    assert t["tokens_per_step"] >= 1 and 0 <= t["draft_accepted"] <= 1, t
    # A right guess is a token more of a step; the first step has none.
    if "--spec" in sys.argv[2]:
        n = int(sys.argv[2].split()[-1])
        assert t["tokens_per_step"] <= 1 + n * t["draft_accepted"] + 1e-9, t
END
done
# The model's text repeats itself in the end, so that guesses from the text are right.
expect 0 whit bench -m tiny.ndf --draft none --spec 7 -p 0 -n 200 -r 1 -t 1 --json
python3 -c 'import json; t = json.load(open("out"))[0]; assert t["draft_accepted"] > 0.1 and t["tokens_per_step"] > 1.1' || complain "no guess was right: $(cat out)"
expect 0 whit bench -m tiny.ndf --draft none -p 0 -n 8 -r 1
grep -q '| accepted |' out || complain "the table lacks guesses: $(cat out)"
expect 2 whit bench -m tiny.ndf --spec 3
one_line "--draft"
expect 2 whit bench -m tiny.ndf --draft none --columns 2
one_line "one sequence"
expect 3 whit bench -m tiny.ndf --draft mtp -n 4 -p 0
one_line "no block that predicts"
expect 5 whit bench -m tiny.ndf --draft absent.ndf -n 4 -p 0
one_line "absent.ndf"

expect 2 whit bench
one_line "--shape"
expect 2 whit bench --shape bitnet
one_line "bitnet-2b4t"
expect 2 whit bench --shape bitnet-2b4t:t7
one_line "t7"
expect 2 whit bench --shape bitnet-2b4t:mobile # a mix of bits that only Gemma 4 has
one_line "mobile"
expect 2 whit bench --shape gemma4-e2b:mobil
one_line "mobil'"
expect 2 whit bench --shape qwen3-30b-a3b/49:t2
one_line "48 layers"
expect 2 whit bench --shape qwen3-30b-a3b/0:t2
one_line "48 layers"
expect 2 whit bench --shape bitnet-2b4t:t2:i8s:i8s:i8s
one_line "NAME:LAYERS"
expect 2 whit bench -m tiny.ndf -d 1,,2
one_line "-d"
expect 2 whit bench -m tiny.ndf --csv --json
one_line "only one"
expect 5 whit bench -m missing.ndf -p 1 -n 1
one_line "missing.ndf"

# Rows of CSV have the fields of the header, shares as in JSON.
if [ -z "$EMULATOR" ] && ! grep -qE 'WHIT_SANITIZE_[A-Z]*:BOOL=ON' "$BUILD/CMakeCache.txt"; then
    expect 0 whit bench --kernels -r 1 --csv
    python3 - out <<'END' || complain "bench --kernels --csv: $(head -n 3 out)"
import csv, re, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert rows
for row in rows:
    assert None not in row and None not in row.values(), row
    assert row["isa"] and not row["isa"][0].isdigit() and float(row["us"]) > 0, row
    # Shares of one, as in the other tables, to four digits; how large they are is up to what else runs.
    assert all(re.fullmatch(r"\d+\.\d{4}", row[key]) for key in ("bandwidth_share", "int8_share")), row
END
fi

if [ -z "$EMULATOR" ]; then
    export XDG_CACHE_HOME=$PWD/cache
    expect 0 whit bench --shape qwen3-0.6b:b1:none:i4 -p 0 -n 1 -r 1 --json
    cp out fresh
    # Page by page in no order: the file comes back in small pages. The bench has it read as it was when it was written.
    python3 - cache/whit/bench/*.ndf <<'END'
import os, random, sys
file = os.open(sys.argv[1], os.O_RDONLY)
os.fsync(file)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
places = list(range(0, os.fstat(file).st_size, 4096))
random.seed(1)
random.shuffle(places)
for place in places:
    os.pread(file, 1, place)
END
    expect 0 whit bench --shape qwen3-0.6b:b1:none:i4 -p 0 -n 1 -r 1 --json
    cp out renewed
    expect 0 whit verify cache/whit/bench/*.ndf
    # What a file that is written now gets: memory may have been broken up by others in between.
    rm -rf cache
    expect 0 whit bench --shape qwen3-0.6b:b1:none:i4 -p 0 -n 1 -r 1 --json
    python3 - fresh out renewed <<'END' || complain "bench measured a file in small pages: $(cat fresh out renewed)"
import json, sys
before, again, renewed = (json.load(open(name))[0]["huge_share"] for name in sys.argv[1:])
assert renewed > min(before, again) - 0.1, (before, again, renewed)
END
    rm -rf cache
    # Of a mixture of experts those that a token takes are counted: an eighth of one layer's, beside two dense layers.
    expect 0 whit bench --shape lfm2-8b-a1b/3:b1:none:i4 -p 0 -n 1 -r 1 --json
    python3 - out cache/whit/bench/*.ndf <<'END' || complain "bench counts all experts: $(cat out)"
import json, os, sys
row = json.load(open(sys.argv[1]))[0]
embedding = 65536 * 2048 / 2
layers = os.path.getsize(sys.argv[2]) - embedding
assert 0 < row["bytes_per_token"] < 0.55 * layers, (row, layers)
END
    rm -rf cache
fi
finish
