# SPDX-License-Identifier: MIT
# The forms with one JSON object a line: tokenize --jsonl and template --jsonl.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache
tiny model.gguf

# ---- on what the project makes itself
printf '{"text": "the land"}\n\n{"text": "the</s>", "add_special": false, "parse_special": false}\n' >in
whit tokenize -m model.gguf --jsonl <in >out 2>err || complain "tokenize --jsonl: $(cat err)"
[ "$(wc -l <out)" = 2 ] || complain "two lines are wanted: $(cat out)"
head -n 1 out >ids
whit tokenize -m model.gguf --jsonl <ids >out 2>err || complain "ids back to text: $(cat err)"
python3 -c '
import json
r = json.load(open("out")); assert r["text"] == "the land" and "".join(r["pieces"]) + r["tail"] == r["text"], r
' || complain "back to text: $(cat out)"
for line in 'x' '[]' '{"ids": ["a"]}' '{"neither": 1}'; do
    printf '%s\n' "$line" | whit tokenize -m model.gguf --jsonl >out 2>err
    [ $? = 3 ] || complain "$line should be refused"
    one_line "line 1"
done
printf '{"source": "{{ a + 1 }}", "context": {"a": 2}}\n{"source": "{{ raise_exception(\\"no\\") }}", "context": {}}\n' >in
whit template --jsonl <in >out 2>err || complain "template --jsonl: $(cat err)"
python3 -c '
import json
a, b = map(json.loads, open("out")); assert a == {"text": "3"} and "no" in b["error"] and b["line"] == 1, (a, b)
' || complain "template: $(cat out)"
printf '{%% for m in messages %%}<{{ m.role }}>{{ m.content }}{%% endfor %%}{{ strftime_now("%%Y") }}' >chat.jinja
printf '{"messages": [{"role": "user", "content": "hi"}], "add_generation_prompt": true}\n' >in
whit template --template chat.jinja --now 2026-01-02T03:04:05 <in >out 2>err
grep -q '"<user>hi2026"' out || complain "chat: $(cat out err)"
expect 2 whit template --now yesterday
one_line yesterday
expect 3 whit template -m model.gguf
one_line "no chat template"
printf '{%% for %%}' >bad.jinja
expect 3 whit template --template bad.jinja
one_line bad.jinja "line 1"

# ---- on the shared cases, through the program
if [ -d "$SHARED/tokenizers" ]; then
    # shellcheck disable=SC2086 # the emulator is a command with arguments
    python3 "$SOURCE/tests/cli/lines.py" "$SHARED" ${EMULATOR:-} "$WHIT" || failed=1
fi
finish
