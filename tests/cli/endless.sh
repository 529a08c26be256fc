# SPDX-License-Identifier: MIT
# --endless in run, chat and perplexity: on beyond the context, the same text however it is computed, and what does not
# go with it.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache XDG_STATE_HOME=$PWD/state
rm -rf cache state ./*.ndf
tiny model.gguf 1 chat
expect 0 whit convert model.gguf -o model.ndf
run="whit run -m model.ndf --raw --no-display-prompt --ignore-eos --temp 0 -c 96"

# ---- run: as many tokens as are asked for
expect 4 $run -p "the land" -n 400
one_line 'the context of 96 tokens is full'
expect 0 $run -p "the land" -n 400 --endless
grep -q 'generated 400 ' err || complain "with --endless: $(cat err)"
cp out whole
for more in "--spec 7" "-t 3" "-ub 5" "--sinks 4"; do
    expect 0 $run -p "the land" -n 400 --endless $more
    cmp -s whole out || complain "$more changes the text"
done
for level in generic avx2 avx512 amx; do
    WHIT_CPU=$level expect 0 $run -p "the land" -n 400 --endless
    cmp -s whole out || complain "WHIT_CPU=$level changes the text"
done
expect 0 $run -p "the land" -n 400 --endless --sinks 0
cmp -s whole out && complain "sinks change nothing"

# ---- packed caches: the same text however it is computed
for kv in k4v2 k2v2 bitmap; do
    expect 0 $run -p "the land" -n 400 --endless --kv $kv
    grep -q 'generated 400 ' err || complain "--kv $kv: $(cat err)"
    cp out packed
    for more in "--spec 7" "-t 3" "-ub 5" "--sinks 4"; do
        expect 0 $run -p "the land" -n 400 --endless --kv $kv $more
        cmp -s packed out || complain "$more changes the text with --kv $kv"
    done
    WHIT_CPU=generic expect 0 $run -p "the land" -n 400 --endless --kv $kv
    cmp -s packed out || complain "WHIT_CPU=generic changes the text with --kv $kv"
done

# ---- a prompt that does not fit
for i in $(seq 60); do printf 'the ice of the north %d ' "$i"; done >long
expect 4 $run -f long -n 5
one_line 'the prompt has' 'the context of 96'
expect 0 $run -f long -n 5 --endless

# ---- chat: nothing is left out, the conversation goes on
for i in $(seq 12); do echo "the land of the ice $i"; done >lines
chat="whit chat -m model.ndf -c 96 -n 20 --temp 0"
$chat <lines >out 2>err || complain "$(cat err)"
grep -q 'no longer sees the oldest' err || complain "without --endless turns are left out: $(cat err)"
$chat --endless <lines >talk 2>err || complain "$(cat err)"
grep -q 'no longer sees\|ended with the context' err && complain "with --endless: $(cat err)"
WHIT_CPU=generic $chat --endless -t 1 -ub 3 <lines >out 2>err || complain "$(cat err)"
cmp -s talk out || complain "a chat differs from another way to compute it"
$chat --endless --kv k2v2 <lines >talk 2>err || complain "$(cat err)"
WHIT_CPU=generic $chat --endless --kv k2v2 -t 1 -ub 3 <lines >out 2>err || complain "$(cat err)"
cmp -s talk out || complain "a chat with a packed cache differs from another way to compute it"
printf 'the land\n/undo\nhe said\n' | $chat --endless >out 2>err || complain "$(cat err)"

# ---- perplexity: a text within the context is what it was; a longer one is read as one
expect 0 whit perplexity -m model.ndf -f lines -c 512 --json
cp out short
expect 0 whit perplexity -m model.ndf -f lines -c 512 --json --endless
cmp -s short out || complain "a text within the context: $(cat short out)"
expect 0 whit perplexity -m model.ndf -f long -c 64 --json --endless
python3 - <<'EOF' || complain "$(cat out)"
import json
assert json.load(open("out"))["tokens"] > 300
EOF

# ---- what does not go with it
expect 2 $run -p x --sinks 8
one_line 'with --endless'
expect 2 $run -p x --endless --session s.ndf
one_line 'one of them'
[ ! -e s.ndf ] || complain "a session file was made"
expect 2 whit perplexity -m model.ndf -f lines --endless --second-half
one_line 'one of them'
expect 2 $run -p x --endless --sinks 64 -c 64
one_line '64 sinks'
finish
