# SPDX-License-Identifier: MIT
# stories260K through the program: greedy text and perplexities equal the goldens beside the model.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache
golden=$SHARED/models/stories260K
if [ ! -d "$golden" ]; then
    echo "no $golden: this test needs the shared test data"
    [ -z "${CI:-}" ] || exit 1
    exit 77
fi
model=$golden/stories260K.gguf
for threads in 1 2 5; do
    expect 0 whit run -m "$model" -p '' -n 200 --temp 0 --act f32 --kv f32 -t $threads
    cmp out "$golden/greedy-empty-prompt.txt" || complain "greedy text from nothing, $threads threads"
done
# 200 positions, of which the prompt with its BOS takes five.
expect 0 whit run -m "$model" -p 'One day, Lily' -n 196 --temp 0 --act f32 --kv f32
cmp out "$golden/greedy-one-day-lily.txt" || complain "greedy text from a prompt"

python3 -c '
import json, sys
for case in json.load(open(sys.argv[1]))["cases"]: print(case["file"], case["tokens"], case["nll"])
' "$golden/nll.json" >cases
while read -r file tokens nll; do
    head -c 3000 "$SHARED/corpora/$file" >text
    expect 0 whit perplexity -m "$model" -f text -c 512 --chunks 1 --act f32 --kv f32 --json
    python3 -c '
import json, sys
got = json.load(open("out"))
sys.exit(not (got["tokens"] == int(sys.argv[1]) and abs(got["nll"] - float(sys.argv[2])) < 0.0005))
' "$tokens" "$nll" || complain "$file: $(cat out), expected $tokens tokens, nll $nll"
done <cases
finish
