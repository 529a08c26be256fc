# SPDX-License-Identifier: MIT
# A chat as a person has it: what the banner says, pasting, wrapped words, taking back, and that
# every command says what it did.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache XDG_STATE_HOME=$PWD/state
rm -rf cache state ./*.json
tiny model.gguf 1 chat
expect 0 whit convert model.gguf -o model.ndf

# ---- commands say which way and what
printf '%s\n' '/show history' '/show system' '/show prompt' '/undo' '/show info' 'the land' '/show context' '/save a.json' \
    '/undo' '/load a.json' '/retry' '/undo' '/undo' '/set stats on' 'the ocean' '/show bogus' |
    whit chat model.ndf --temp 0 -n 4 -s 1 >out 2>err
for line in "no messages yet" "no system message" "nothing was sent" "^family" "2 messages, and all messages fit"; do
    grep -q "$line" out || complain "stdout lacks '$line': $(cat out)"
done
for line in "there is no message to take back" "saved 2 messages to a.json" "loaded 2 messages from a.json" \
    "took back the last message and its answer; 0 messages left" "generated 4 in" "/show takes info"; do
    grep -q "$line" err || complain "stderr lacks '$line': $(cat err)"
done
[ "$(grep -c "no message to take back" err)" = 2 ] || complain "/undo twice: $(cat err)"

# ---- a system message that the template drops
printf '%s' '{% for m in messages %}{% if m.role != "system" %}{{ m.content }} {% endif %}{% endfor %}' >drops.jinja
printf '%s' '{% for m in messages %}{{ m.content | trim }} {% endfor %}' >keeps.jinja
printf 'the land\nand then\n' | whit chat model.ndf -n 4 -sys ' the ocean ' --template drops.jinja >out 2>err
[ "$(grep -c "leaves the system message out" err)" = 1 ] || complain "a dropped system message: $(cat err)"
printf 'the land\n' | whit chat model.ndf -n 4 -sys ' the ocean ' --template keeps.jinja >out 2>err
grep -q "system message" err && complain "a kept system message: $(cat err)"

expect 0 whit run model.ndf the land -n 4 -sys ' the ocean ' --template drops.jinja
[ "$(grep -c "leaves the system message out" err)" = 1 ] || complain "run: a dropped system message: $(cat err)"
expect 0 whit run model.ndf the land -n 4 --no-stats
[ ! -s err ] || complain "--no-stats: $(cat err)"

# ---- what Ollama's users type: each says what it did, a file is a message, and exit leaves
printf 'of the land\n' >part.txt
: >empty.txt
printf '%%PDF-1.7 x\n' >paper.pdf
printf '%s\n' '/set parameter temperature 0.5' '/set system Be brief.' '/set predict 3' '/set think off' '/set num_ctx 8192' \
    '/read part.txt the ocean' '/read absent.txt' '/read empty.txt' '/read paper.pdf' '/model other' '/list' '/save read.json' '/format json' '/model model.ndf' \
    'the land' '/save json.json' '/format off' 'exit' '/save never.json' |
    whit chat model.ndf -n 24 -s 1 >out 2>err
for line in "temperature: 0.5" "the system message is set" "predict: at most 3 tokens" "think: off" "whit chat -c N" \
    "part.txt: 12 bytes" "absent.txt" "empty.txt: is empty" "paper.pdf: is a PDF ('pdftotext FILE' writes its text)" "other: no pulled model" "whit list" "format: a JSON object" \
    "format: any text"; do
    grep -q "$line" err || complain "stderr lacks '$line': $(cat err)"
done
python3 - <<'END' || complain "/read and /format: $(cat read.json json.json)"
import json
said = json.load(open("read.json"))["messages"]
assert [m["content"] for m in said if m["role"] == "user"] == ["the ocean\n\nof the land\n"], said
assert json.load(open("json.json"))["messages"][-1]["content"].lstrip().startswith("{"), "no object"
END
[ ! -e never.json ] || complain "exit does not leave"
for word in quit :q :wq; do
    printf '%s\n/save never.json\n' "$word" | whit chat model.ndf >out 2>err
    [ ! -e never.json ] || complain "$word does not leave"
done

# ---- on a terminal
EDITOR_BUILT=$(grep -c '^#define WHIT_HAVE_EDIT *1' "$BUILD/generated/whit_config.h")
export EDITOR_BUILT
if has_terminals; then
    # shellcheck disable=SC2086 # the emulator is a command with arguments
    python3 "$SOURCE/tests/cli/talk.py" ${EMULATOR:-} "$WHIT" || failed=1
fi
finish
