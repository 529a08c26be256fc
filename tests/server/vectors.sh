# SPDX-License-Identifier: MIT
# Embedding and rerank models behind the server: their own pooling, dimensions, scores, and chats that are refused.
. "$SOURCE/tests/server/lib.sh"
[ -d "$SHARED/models-tiny/bert-embed" ] || { echo "skipped: no models in $SHARED"; exit 77; }
rm -rf bert-embed bare-embed bert-rerank cache ./*.jsonl
python3 "$SOURCE/tests/cli/vectors.py" make "$SHARED" || exit 1
printf '%s\n' 'how to cook rice' 'a b' 'what is a cat?' >texts
expect 0 whit embed bert-embed -f texts
cp out vectors.jsonl
expect 0 whit embed bert-embed -f texts --prompt query
cp out prompted.jsonl
# A pooling whose mean leaves the prompt out.
cp -r bert-embed bare-embed
echo '{"pooling_mode_mean_tokens": true, "include_prompt": false}' >bare-embed/1_Pooling/config.json
expect 0 whit embed bare-embed -f texts
cp out bare.jsonl
expect 0 whit embed bare-embed -f texts --prompt query
cp out bare_prompted.jsonl
expect 0 whit rerank bert-rerank 'how to cook rice' -f texts
cp out scores.jsonl
python3 "$SOURCE/tests/server/vectors.py" || failed=1
exit $failed
