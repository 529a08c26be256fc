# SPDX-License-Identifier: MIT
# whit chat from scripts and on a terminal, and run --chat, on the small model.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache XDG_STATE_HOME=$PWD/state
rm -rf cache state ./*.json
tiny model.gguf 1 chat
tiny plain.gguf
whit run -m plain.gguf -p a -n 1 >/dev/null 2>&1 # its conversion into the cache says a line, once
expect 0 whit convert model.gguf -o model.ndf

# script STATUS LINES [OPTION...]: the lines as a chat.
script() {
    local wanted=$1 lines=$2 status
    shift 2
    printf '%b' "$lines" | whit chat -m model.ndf -c 128 --temp 0 -n 8 "$@" >out 2>err
    status=$?
    [ "$status" = "$wanted" ] || complain "chat of '$lines' ended with $status, not $wanted: $(head -n 3 err)"
}

# ---- turns: each computes the new tokens only, and is the same as from a new start
script 0 'the land\nand then\n/show history\n/show context\n/save two.json\n' --stats
grep -q '^user: the land$' out && grep -q '^assistant: ' out || complain "/show history: $(cat out)"
grep -q '4 messages' out || complain "/show context: $(cat out)"
[ "$(grep -c 'tokens in .* kept; generated' err)" = 2 ] || complain "--stats: $(cat err)"
[ "$(sed -n 's/.* s (.*), \([0-9]*\) kept.*/\1/p' err | head -n 1)" = 0 ] || complain "the first turn kept tokens"
[ "$(sed -n 's/.* \([0-9]*\) kept.*/\1/p' err | tail -n 1)" -gt 10 ] || complain "the second turn kept nothing: $(cat err)"
[ ! -d state ] || complain "a script wrote a history"
python3 - <<'END' || complain "/save: $(cat two.json)"
import json
messages = json.load(open("two.json"))["messages"]
assert [m["role"] for m in messages] == ["user", "assistant"] * 2
json.dump({"messages": messages[:3]}, open("three.json", "w"))
END
[ "$(wc -l <two.json)" = 1 ] || complain "a conversation is one line"
whit template -m model.ndf --jsonl <two.json | grep -q 'user:and then' || complain "template --jsonl of a conversation"
script 0 '/regen\n/save again.json\n' --load three.json
cmp -s two.json again.json || complain "a loaded conversation answers otherwise: $(cat again.json)"
script 0 '/load two.json\n/save same.json\n/clear\n/save empty.json\n'
cmp -s two.json same.json || complain "/load and /save: $(cat same.json)"
grep -q '"messages": \[\]' empty.json || complain "/clear: $(cat empty.json)"

# ---- answers that depend on the seed alone
script 0 'the land\n/save 1.json\n/regen\n/save 2.json\n/set seed 5\n/regen\n/save 3.json\n' --temp 1.5 -s 5
cmp -s 1.json 3.json || complain "the same seed gave another answer: $(cat 1.json 3.json)"
cmp -s 1.json 2.json && complain "/regen gave the same answer: $(cat 1.json)"

# ---- messages of several lines, the system message, the prompt as it was
script 0 '"""the\nland"""\n/show prompt\n/set system """be\nbrief"""\n"""one"""\n/show prompt\n/show system\n/set system\n x\n/show prompt\n' -sys 'on land'
tr '\n' '|' <out >flat
grep -q '<s>system:on land</s>user:the|land</s>assistant:' flat || complain "a block: $(cat flat)"
grep -q '<s>system:be|brief</s>user:the|land</s>' flat || complain "/set system: $(cat flat)"
grep -q '<s>user:the|land</s>' flat || complain "no system any more: $(cat flat)"
grep -q 'user: x</s>assistant:' flat || complain "a message: $(cat flat)"

# ---- parameters: given ones, changed ones, advised ones
script 0 '/show parameters\n/set parameter top_k 7\n/set min-p 0.25\n/set predict 3\n/set think off\n/show parameters\n' -s 9
grep -q '^top-k  *40$' out && grep -q '^top-k  *7$' out || complain "top_k: $(cat out)"
grep -q '^seed  *9$' out && grep -q '^min-p  *0.25$' out && grep -q '^predict  *3$' out && grep -q '^think  *off$' out ||
    complain "/show parameters: $(cat out)"
script 0 '/show\n/show model\n/show template\n/help\n'
grep -q '^model  *tiny$' out && grep -q 'bos_token' out && grep -q '^/save' out || complain "/show: $(cat out)"
printf '/show info\n' | whit chat -m "$SOURCE/tools/tales/tales.ndf" >out 2>err || complain "/show info: $(cat err)"
grep -q '^family  *llama$' out || complain "/show info of a model that was made here: $(cat out)"

# ---- names of files as in a shell; a parameter without a value is shown
mkdir -p home
echo "the land" >"home/a text"
HOME=$PWD/home script 0 '/read "~/a text" what is it\n/save ~/kept.json\n/show history\n'
grep -q '^user: what is it$' out && [ -s home/kept.json ] || complain "names of files: $(cat out err)"
HOME=$PWD/home script 0 '/load "~/kept.json"\n/show history\n'
grep -q '^user: what is it$' out || complain "a name in quotes: $(cat out err)"
script 0 '/set temp=0.5\n/set temp\n/set seed\n/clear\n' -s 9
grep -q '^temp  *0.5$' out && grep -q '^seed  *9$' out && grep -q 'begins anew' err || complain "/set: $(cat out err)"

# ---- mistakes: a line each; a script goes on and remembers the first
script 2 '/nonsense\nthe land\n/save kept.json\n'
one_line_of() { grep -q -- "$1" err || complain "stderr lacks '$1': $(cat err)"; }
one_line_of "/nonsense"
[ -s kept.json ] || complain "the script did not go on"
script 2 '/stats\n/modle\n'
one_line_of "no command /stats; did you mean /set stats; /help"
one_line_of "no command /modle; did you mean /model; /help"
script 2 '/set temp hot\n'
one_line_of "temp takes a number"
script 2 '/set wings 2\n'
one_line_of wings
script 2 '/show wings\n'
one_line_of wings
script 2 '/regen\n'
one_line_of "nothing to answer"
script 2 '"""never\nclosed\n'
one_line_of "not closed"
script 5 '/load absent.json\n'
one_line_of absent.json
echo '{"messages": [{"role": "tool", "content": "x"}]}' >tool.json
script 3 'the land\n/load tool.json\n/show history\n'
one_line_of tool.json:1
grep -q '^user: the land$' out || complain "a file that was refused cost the conversation"
echo precious >notes.txt
script 3 '/save notes.txt\n'
one_line_of notes.txt
[ "$(cat notes.txt)" = precious ] || complain "/save replaced what is no conversation"
script 3 '/load notes.txt\n'
one_line_of "notes.txt: this is not a conversation: expected a JSON object"
script 5 '/save /nowhere/x.json\n'
script 4 "$(printf 'z%.0s' $(seq 300))\nthe land\n/show history\n"
one_line_of "-c"
[ "$(grep -c '^user:' out)" = 1 ] || complain "a message that was too long stayed: $(cat out)"
script 0 "$(for i in $(seq 12); do printf 'the ocean %s\\n' "$i"; done)/show context\n" -sys 'on land'
grep -q 'no longer sees the oldest' err || complain "nothing was said about the full context: $(cat err)"
expect 3 whit chat -m plain.gguf
one_line plain.gguf "no chat template" "--chat-template NAME"
printf '{%% if %%}' >bad.jinja
expect 3 whit chat -m model.ndf --template bad.jinja
one_line bad.jinja "line 1"
expect 3 whit chat -m model.ndf --load tool.json
one_line tool.json

# ---- run
expect 0 whit run -m model.ndf --chat -p 'the land' --temp 0 -n 8 -c 128
cp out answer
script 0 'the land\n'
cmp -s out answer || complain "run --chat and chat differ: $(cat out answer)"
expect 0 whit run -m model.ndf -sys 'on land' -p 'the land' --temp 0 -n 8 --json
python3 -c 'import json; r = json.load(open("out")); assert r["prompt"] == "<s>system:on land</s>user:the land</s>assistant:"; assert r["generated_tokens"] == 8' ||
    complain "run -sys --json: $(cat out)"
echo '{{ messages[0].content }}' >own.jinja
expect 0 whit run -m plain.gguf --template own.jinja -p 'the land' --temp 0 -n 8
expect 0 whit run -m plain.gguf -p 'the land' --temp 0 -n 8 --no-display-prompt
expect 3 whit run -m plain.gguf --chat -p 'the land'
one_line "no chat template"

# ---- a terminal
if has_terminals; then
    # shellcheck disable=SC2086 # the emulator is a command with arguments
    EDITOR_BUILT=$(grep -c '^#define WHIT_HAVE_EDIT *1' "$BUILD/generated/whit_config.h") \
        python3 "$SOURCE/tests/cli/chat.py" ${EMULATOR:-} "$WHIT" || failed=1
fi
finish
