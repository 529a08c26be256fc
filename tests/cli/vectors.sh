# SPDX-License-Identifier: MIT
# whit embed and whit rerank: vectors of ids and of texts, as lines and as a NumPy file; prompts, dimensions, pooling;
# scores; damaged folders.
. "$SOURCE/tests/cli/lib.sh"
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
[ -d "$SHARED/models-tiny/bert-embed" ] || { echo "skipped: no models in $SHARED"; exit 77; }
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache bert-embed bert-rerank ./*.npy ./*.jsonl && mkdir cache
py="python3 $SOURCE/tests/cli/vectors.py"
$py make "$SHARED" || exit 1

# Ids: the goldens themselves.
for name in qwen3-embed gemma-embed bert-embed; do
    $py lines "$SHARED" $name >ids.jsonl
    expect 0 whit embed "$SHARED/models-tiny/$name/hf" --jsonl -f ids.jsonl -o golden.npy
    $py check golden golden.npy "$SHARED/models-tiny/$name/vectors.f32" || complain "$name: not its golden"
done

# Texts: many at once and one at a time, with the same bits.
printf '%s\n' 'how to cook rice' '' 'Rice, in WATER.' 'a b' 'what is a cat?' >texts
expect 0 whit embed bert-embed -f texts
cp out all.jsonl
[ "$(wc -l <all.jsonl)" = 4 ] || complain "empty lines are texts: $(wc -l <all.jsonl)"
: >one.jsonl
while read -r line; do
    [ -z "$line" ] || printf '%s\n' "$line" | whit embed bert-embed >>one.jsonl || complain "one text: $line"
done <texts
$py check equal all.jsonl one.jsonl || complain "a vector depends on its neighbours"
expect 0 whit embed bert-embed -f texts -o all.npy
$py check npy all.jsonl all.npy || complain "another NumPy file"
expect 0 whit embed bert-embed -f texts --dimensions 10
cp out cut.jsonl
$py check cut all.jsonl cut.jsonl || complain "dimensions"
expect 0 whit embed bert-embed -f texts --pooling mean
cp out mean.jsonl
$py check other all.jsonl mean.jsonl || complain "pooling changes nothing"
expect 0 whit embed bert-embed -f texts --pooling cls
cp out cls.jsonl
$py check equal all.jsonl cls.jsonl || complain "the folder's pooling is cls"
expect 0 whit embed bert-embed -f texts --prompt query
cp out named.jsonl
sed 's/^\(..*\)/seek \1/' texts >prompted
expect 0 whit embed bert-embed -f prompted
cp out written.jsonl
$py check equal named.jsonl written.jsonl || complain "a prompt by its name"
$py check other named.jsonl all.jsonl || complain "the prompt changes nothing"

# A pooling without the prompt: another mean, the same first token.
cp bert-embed/1_Pooling/config.json kept
for include in true false; do
    echo '{"pooling_mode_mean_tokens": true, "include_prompt": '$include'}' >bert-embed/1_Pooling/config.json
    expect 0 whit embed bert-embed -f texts --prompt query
    cp out mean_$include.jsonl
    expect 0 whit embed bert-embed -f texts --prompt query --pooling cls
    cp out cls_$include.jsonl
done
$py check other mean_true.jsonl mean_false.jsonl || complain "include_prompt changes nothing"
$py check equal cls_true.jsonl cls_false.jsonl || complain "include_prompt changes the first token"
expect 0 whit embed bert-embed -f texts
cp out bare.jsonl
$py check equal bare.jsonl mean.jsonl || complain "include_prompt changes a text without a prompt"
cp kept bert-embed/1_Pooling/config.json
expect 0 whit embed bert-embed -f texts

# Scores.
expect 0 whit rerank bert-rerank 'how to cook rice' -f texts
cp out scores.jsonl
$py check scores scores.jsonl || complain "scores: $(cat scores.jsonl)"
expect 0 whit rerank bert-rerank 'how to cook rice' -f texts --top 1
[ "$(head -1 scores.jsonl)" = "$(cat out)" ] || complain "--top 1"

# A model of one kind says which command is for it.
expect 3 whit embed bert-rerank -f texts
one_line "whit rerank"
expect 3 whit rerank bert-embed x -f texts
one_line "whit embed"
whit run bert-embed hello >out 2>err && complain "an encoder continued a text"
one_line "whit embed"
expect 2 whit embed bert-embed -f texts --dimensions 97
one_line "96"
expect 3 whit embed bert-embed -f /dev/null
one_line "no texts"

python3 -c "print('a\n' + 'word ' * 100)" >long
expect 4 whit embed bert-embed -f long
one_line "long:2" "64"
expect 0 whit inspect bert-embed --plan
grep -q layer_norm out || complain "the plan of an encoder"
whit inspect bert-embed | grep -q '^session  *0.000' && complain "a session without memory"
for i in 1 2 3 4 5 6 7 8 9 10; do cat texts texts texts texts; done >many
expect 3 whit compress bert-embed --codec q2 --calib many -c 32 -o small.ndf
expect 3 whit tune bert-embed --text many --steps 1 -o adapter.ndf
one_line "attend to later"

# A memory whose texts are compared as the model sees them: the share of equal signs is the angle, and one store has one
# model.
rm -f m.mem* n.mem*
printf '%s\n' 'how to cook rice' 'a b' 'what is a cat?' 'the rice is in water' >meant
expect 0 whit memory import m.mem meant --embed bert-embed
expect 0 whit memory query m.mem 'how to cook rice' 'a cat' --embed bert-embed -k 4
cp out hits.jsonl
expect 0 whit embed bert-embed -f meant
cp out documents.jsonl
printf '%s\n' 'how to cook rice' 'a cat' | whit embed bert-embed --prompt query >queries.jsonl
python3 - <<'END' || complain "whit memory --embed: $(cat hits.jsonl)"
import json, math
texts = open("meant").read().splitlines()
documents, queries = ([json.loads(line)["embedding"] for line in open(name)] for name in ("documents.jsonl", "queries.jsonl"))
hits = [json.loads(line) for line in open("hits.jsonl")]
assert len(hits) == 8
for hit in hits:
    cosine = sum(a * b for a, b in zip(queries[hit["query"] - 1], documents[texts.index(hit["text"])]))
    assert abs(hit["score"] - (1 - 2 * math.acos(max(-1, min(1, cosine))) / math.pi)) < 0.05, (hit, cosine)
END
expect 2 whit memory query m.mem x
one_line "computed by a model (m.mem.model)"
expect 3 whit memory query m.mem x --embed bert-rerank
printf '%064d\n' 0 >m.mem.model
expect 3 whit memory query m.mem x --embed bert-embed
one_line "computed by another model"
expect 0 whit memory add n.mem hello
expect 2 whit memory add n.mem x --embed bert-embed
one_line "needs another store"

# Damaged folders: one line each that names the file.
damage() { # FILE TEXT WORDS
    cp "bert-embed/$1" kept
    printf '%s' "$2" >"bert-embed/$1"
    whit embed bert-embed --no-cache -f texts >out 2>err && complain "$1 '$2': accepted"
    one_line "$3"
    cp kept "bert-embed/$1"
}
damage modules.json '{"a": 1}' modules.json
damage modules.json '[{"type": "sentence_transformers.models.LSTM", "path": "x"}]' LSTM
damage modules.json '[{"type": "a.Pooling", "path": "../1_Pooling"}]' modules.json
damage modules.json '[{"type": "a.Pooling", "path": "2_Pooling"}]' 2_Pooling
damage modules.json '[{"type": "a.Pooling", "path": "1_Pooling"}, {"type": "a.Pooling", "path": "1_Pooling"}]' second
damage modules.json '[' modules.json
damage 1_Pooling/config.json '{"pooling_mode_max_tokens": true}' 1_Pooling
damage 1_Pooling/config.json '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}' 1_Pooling
damage 1_Pooling/config.json '{"pooling_mode_cls_token": 3}' 1_Pooling
damage 1_Pooling/config.json '{"pooling_mode_mean_tokens": true, "include_prompt": "no"}' 1_Pooling
damage config.json '{"architectures": ["BertModel"], "hidden_size": 96}' config.json
exit $failed
