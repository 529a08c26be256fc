# SPDX-License-Identifier: MIT
# Every field of every JSON output is explained in docs/use/json.md.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache ./*.json ./*.jsonl odd*
tiny model.gguf
printf 'the land and the ocean and then an inn on the land. %.0s' 1 2 3 4 >words
batch="--steps 1 -c 16 --sequences 2 -t 1"

# keep NAME COMMAND...: its JSON as NAME.json.
keep() {
    local name=$1
    shift
    expect 0 "$@"
    cp out "$name.json"
}
expect 0 whit convert model.gguf -o model.ndf
keep run whit run model.ndf the -n 2 --json
keep perplexity whit perplexity model.ndf -f words -c 16 --kl-base model.gguf --json
whit tokenize model.ndf --json <words >tokenize.json || complain "tokenize"
keep inspect whit inspect model.ndf --json
keep convert whit convert model.gguf -o again.ndf --json
# shellcheck disable=SC2086
expect 0 whit tune -m model.ndf --text words $batch -o adapter.ndf --log log.jsonl --held-out words
keep inspect-adapter whit inspect adapter.ndf --json
keep merge whit merge -m model.ndf --adapter adapter.ndf -o merged.ndf --json
keep verify whit verify model.ndf --json
keep compress whit compress model.gguf --codec q2 --calib words -c 16 --json -o small.ndf
cat words words >more
echo '{"prompt": "the", "answer": "a", "calls": true, "tools": [{"function": {"name": "f", "parameters": {}}}]}' >chats.jsonl
tiny chat.gguf 1 chat
keep compare whit compare model.gguf small.ndf small.ndf -f words -f more -c 16 --json
keep compare-chats whit compare chat.gguf chat.gguf --chat chats.jsonl --json -c 1024
keep copies whit compare model.gguf small.ndf --copies more -c 128 --json
keep eval-chats whit eval -m chat.gguf --chat chats.jsonl --json -c 1024
keep eval whit eval -m model.ndf --task "$SOURCE/tests/fuzz/corpus/task/boolq" --json
python3 -c 'data = bytearray(open("model.ndf", "rb").read()); data[len(data) // 2] ^= 1; open("damaged.ndf", "wb").write(data)'
whit verify damaged.ndf --json >verify-damage.json 2>err
keep list whit list --json
keep kernels whit kernels --json
keep doctor whit doctor --json
[ -n "${EMULATOR:-}" ] || keep bench whit bench -m model.ndf -p 4 -n 2 -r 1 --profile --json

# A name that is not UTF-8 leaves no field out: its bytes that are none become U+FFFD.
odd=$(printf 'odd\351')
cp words "$odd"
cp model.ndf "$odd.ndf"
# shellcheck disable=SC2086
expect 0 whit tune -m model.ndf --text "$odd" $batch -o "$odd-adapter.ndf" --log odd.log
XDG_CACHE_HOME=$PWD/$odd-cache expect 0 whit doctor --json
cp out odd-doctor
[ -n "${EMULATOR:-}" ] || expect 0 whit bench -m "$odd.ndf" -p 4 -n 0 -r 1 --json
python3 - "${EMULATOR:-}" <<'END' || complain "fields of odd names: $(cat odd.log odd-doctor out)"
import json, sys
run = json.loads(open("odd.log").readline())["run"]
assert run["text"] == ["odd\ufffd"] and run["output"] == "odd\ufffd-adapter.ndf", run
assert json.load(open("odd-doctor"))["cache"].endswith("odd\ufffd-cache/whit")
if not sys.argv[1]:
    assert json.load(open("out"))[0]["shape"] == "odd\ufffd.ndf"
END

python3 - "$SOURCE/docs/use/json.md" <<'END' || failed=1
import glob, json, re, sys
known = set(re.findall(r"`([^`]+)`", open(sys.argv[1]).read()))
own = {"config", "metadata", "libraries"}  # tables with keys of the file's or the build's
failed, seen = 0, 0


def look(name, value):
    global failed, seen
    if isinstance(value, list):
        for item in value:
            look(name, item)
    if isinstance(value, dict):
        for key, inner in value.items():
            seen += 1
            if key not in known:
                print("FAILED:", name, "has a field that docs/use/json.md lacks:", key)
                failed = 1
            if key not in own:
                look(name, inner)


for path in glob.glob("*.json"):
    look(path, json.load(open(path)))
for line in open("log.jsonl"):
    look("log", json.loads(line))
if seen < 100:
    print("FAILED: only", seen, "fields were seen")
    failed = 1
sys.exit(failed)
END
finish
