# SPDX-License-Identifier: MIT
# whit compare and eval: intervals, pairs, texts beside each other, texts that a file was made with, copied passages,
# chats and tool calls.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache ./*.ndf
tiny model.gguf 1 chat
for i in $(seq 60); do echo "the land and the ocean and then an inn on the land $i."; done >calibration
for i in $(seq 60); do echo "and on a hen; an anthem, then $((i * i)) hats on the tent: another land."; done >other
cat calibration other >both
expect 0 whit compress model.gguf --codec q2 --calib calibration -c 32 -o q2.ndf
expect 0 whit compress model.gguf --codec t --method rtn -o t.ndf

# ---- texts
expect 0 whit compare model.gguf t.ndf -f other -c 32 --chunks 2
grep -q 'was trained for' err && complain "a remark about a context within the model's"
expect 0 whit compare model.gguf t.ndf -f other --chunks 1 -c 300
grep -q 'the context has 300 tokens, but the model was trained for 256' err || complain "no remark about a long context: $(cat err)"
expect 0 whit compare model.gguf q2.ndf t.ndf -f other -f both -f calibration -c 32 --chunks 20 --json
grep -q '^whit: q2.ndf: about 100 % of calibration ' err || complain "no warning of the calibration text: $(cat err)"
grep -q 'of other is in' err && complain "a warning of another text: $(cat err)"
grep -q 't.ndf: about' err && complain "a file without a text was named"
expect 0 whit compare model.gguf q2.ndf -f both -c 32 --all --json
mv out whole
expect 0 whit compare model.gguf q2.ndf t.ndf -f other -f both -c 32 --chunks 20 --json
python3 - <<'END' || complain "rows: $(cat out)"
import json, math
texts = json.load(open("out"))["texts"]
for text in texts:
    q2, t = text["files"]
    for row in text["files"]:
        assert row["windows"] == 20 and row["tokens"] == 20 * 15, row
        for key in "ppl_ratio", "kld_mean", "top1":
            low, high = row[key + "_95"]
            assert low < row[key] < high, (key, row)
    assert abs(t["kld_difference"] - (t["kld_mean"] - q2["kld_mean"])) < 1e-9
    low, high = t["kld_difference_95"]
    # In pairs: no wider than the intervals of two samples by much, and around the difference.
    apart = math.hypot(q2["kld_mean_95"][1] - q2["kld_mean"], t["kld_mean_95"][1] - t["kld_mean"])
    assert low < t["kld_difference"] < high and "kld_difference" not in q2
    assert (high - low) / 2 < 1.5 * apart
other, both = texts
assert other["files"][0]["overlap"] == 0 and other["files"][1]["overlap"] is None, other
assert abs(both["files"][0]["kld_beside_first"] - both["files"][0]["kld_mean"] / other["files"][0]["kld_mean"]) < 1e-9
assert "kld_beside_first" not in other["files"][0]
whole = json.load(open("whole"))["texts"][0]["files"][0]["overlap"]
assert 0.3 < whole < 0.7, whole
END
expect 0 whit compare model.gguf q2.ndf t.ndf -f other -f both -c 32 --chunks 20
for line in '+/- ' 'against q2.ndf, window by window' 'KL mean beside that on other' 'times ('; do
    grep -q -- "$line" out || complain "the table lacks '$line': $(cat out)"
done
[ "$(wc -L <out)" -le 80 ] || complain "a row is wider than 80 columns: $(cat out)"
# One window: no interval can be told.
expect 2 whit compare model.gguf q2.ndf other
one_line "no text given: -f other"
expect 0 whit compare model.gguf q2.ndf -f other -c 32 --chunks 1 --json
grep -q '"kld_mean_95": null' out || complain "an interval of one window: $(cat out)"

# ---- the text of a trained and of a tuned file
batch="-c 16 --sequences 2 -t 1"
# shellcheck disable=SC2086
expect 0 whit distill --teacher model.gguf --start q2.ndf --codec own --text other $batch --steps 1 -o student.ndf
expect 0 whit compare model.gguf student.ndf -f both -c 32 --chunks 2 --json
grep -q 'student.ndf: about \(99\|100\) % of both ' err || complain "the texts of both steps: $(cat err)"
expect 0 whit compress model.gguf --codec q2 --calib calibration -c 32 --tune-tokens 64 -o tuned.ndf
expect 0 whit compare model.gguf tuned.ndf -f calibration -c 32 --chunks 2 --json
grep -q 'tuned.ndf: about 100 % of calibration ' err || complain "the text of a tuned file: $(cat err)"

# ---- copies: a model beside itself has no difference
expect 0 whit compare model.gguf model.gguf t.ndf --copies both -c 128 --json
python3 - <<'END' || complain "copies: $(cat out)"
import json
copies = json.load(open("out"))["copies"]
original, same, t = copies["files"]
assert copies["window"] == 128 and copies["windows"] > 5 and len(original["depths"]) == 5
assert [d["depth"] for d in t["depths"]] == [0, 0.25, 0.5, 0.75, 1]
assert same["depths"] == original["depths"] and same["right_difference"] == 0 and same["right_difference_95"] == [0, 0]
mean = sum(d["right"] for d in original["depths"]) / 5
assert abs(mean - original["right"]) < 1e-9, original
END
expect 0 whit compare model.gguf t.ndf --copies both -c 128
grep -q '^model.gguf' out && grep -q '75 %' out || complain "the table of copies: $(cat out)"
expect 2 whit compare model.gguf t.ndf --copies both -c 64
one_line 'at least 128 tokens'

# ---- chats
cat >chats.jsonl <<'END'
{"prompt": "the land"}

{"messages": [{"role": "system", "content": "an inn"}, {"role": "user", "content": "and then"}], "answer": "n"}
{"messages": [{"role": "user", "content": "an inn"}], "calls": true, "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["at"], "additionalProperties": false}}}]}
END
expect 0 whit compare model.gguf model.gguf q2.ndf --chat chats.jsonl -c 1024 -n 60 --json
mv out chats
expect 0 whit run model.gguf --chat -p 'the land' --temp 0 -n 60 --act f32 -c 1024 --json
python3 - <<'END' || complain "chats: $(cat chats out)"
import json
chats, run = json.load(open("chats"))["chats"], json.load(open("out"))
original, same, q2 = chats["files"]
assert original["chats"] == 3 and "equal" not in original
assert same["equal"] == same["prefix"] == same["top1"] == 100 and same["kld_mean"] == 0, same
assert same["equal_95"][0] < 50 and same["equal_95"][1] == 100, same
assert q2["equal"] < 100 and q2["kld_mean"] > 0 and 0 <= q2["prefix"] <= 100 and q2["top1"] < 100, q2
assert original["calls"] >= 1 and original["calls_parsed"] == original["calls_valid"] == 100 and original["held"], original
lines = [a["line"] for a in chats["answers"]]
assert lines == [1, 3, 4], lines
answer = chats["answers"][0]
assert answer["text"] == run["text"], (answer["text"], run["text"])
assert answer["files"][0]["equal"] and answer["files"][0]["first_difference"] is None
parted = [a["files"][1] for a in chats["answers"] if not a["files"][1]["equal"]]
assert parted and all(f["first_difference"] >= 0 for f in parted)
right = "n" in chats["answers"][1]["text"]
assert original["right"] == 100 * right, original
END
expect 0 whit compare model.gguf q2.ndf --chat chats.jsonl -c 1024 -n 60
grep -q '3 chats of chats.jsonl' out && grep -q 'a grammar constrained the calls' err || complain "the table of chats: $(cat out err)"
[ "$(wc -L <out)" -le 80 ] || complain "a row of chats is wider than 80 columns: $(cat out)"
expect 0 whit eval -m model.gguf --chat chats.jsonl -c 1024 -n 60 --act f32 --json
python3 - <<'END' || complain "eval: $(cat out)"
import json
evaluated, compared = json.load(open("out")), json.load(open("chats"))["chats"]["files"][0]
for key in "right", "right_95", "calling", "calls", "calls_parsed", "calls_valid", "calls_valid_95", "held":
    assert evaluated[key] == compared[key], key
END
expect 0 whit eval -m model.gguf --chat chats.jsonl -c 1024 -n 60 --limit 1
grep -q '^1 chats$' out || complain "--limit: $(cat out)"
expect 2 whit eval -m model.gguf
expect 2 whit eval -m model.gguf --chat chats.jsonl --task chats.jsonl
expect 3 whit compare model.gguf q2.ndf --chat calibration
one_line 'line 1'
while read -r text; do
    echo "$text" >odd.jsonl
    expect 3 whit eval -m model.gguf --chat odd.jsonl
    one_line 'line 1'
done <<'END'
{"messages": []}
{"message": "a"}
{"prompt": "a", "tools": 3}
{"prompt": "a", "answer": 3}
{"prompt": "a", "calls": true}
[1]
END
tiny bare.gguf
expect 3 whit eval -m bare.gguf --chat chats.jsonl
finish
