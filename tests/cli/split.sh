# SPDX-License-Identifier: MIT
# One model that several processes run, which mpirun starts: the logits and texts of one process, to the bit.
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/cli/mpirun.sh"
tiny model.gguf
tiny chat.gguf 3 chat
for i in $(seq 90); do echo $((i * 37 % 200)); done >ids
# logits MODEL N OPTION...: the logits of one process and of N ranks are the same bytes.
logits() {
    local model=$1 n=$2
    shift 2
    whit logits -m "$model" --tokens ids -o whole "$@" 2>err || complain "$model: $(cat err)"
    rm -f split
    ranks "$n" logits -m "$model" --tokens ids -o split "$@" || return
    cmp -s whole split || complain "$model, $n ranks, $*: other logits than one process has"
}
for n in 2 4; do logits model.gguf $n -t 1; done
logits model.gguf 2 --kv k4v2 -t 2 -b 16
for model in bitnet-b158 qwen35-hybrid gpt-oss; do
    [ -d "$SHARED/models-tiny/$model/hf" ] && logits "$SHARED/models-tiny/$model/hf" 3 --kv i8 -t 1
done
# Texts, with a line on what travels; every rank's share of heads and matrices is in test_split.
whit run -m model.gguf -p "the land" --raw -n 12 --temp 0 -t 1 >whole 2>err || complain "$(cat err)"
ranks 2 run -m model.gguf -p "the land" --raw -n 12 --temp 0 -t 1
cmp -s whole out || complain "another text: $(cat out)"
[ "$(grep -c '2 ranks; rank 0, a pass: ' err)" = 1 ] || complain "nothing is said of what travels: $(cat err)"
whit run -m chat.gguf "the time" -n 8 --temp 0 -t 1 >whole 2>err || complain "$(cat err)"
ranks 3 run -m chat.gguf "the time" -n 8 --temp 0 -t 1
# mpirun's pipe is a terminal, where the program shows no control characters.
LC_ALL=C sed -i 's/[[:cntrl:]]/?/g; s/\r$//' whole out
cmp -s whole out || complain "another answer: $(cat out)"
# A bench counts what travels, and predicts the time from it: two layers of four exchanges, the logits and the order.
export WHIT_RANKS_DELAY=500,1
ranks 2 bench -m model.gguf -p 6 -n 3 -d 0,9 -ub 4 -r 2 -t 1 --json
unset WHIT_RANKS_DELAY
if command -v python3 >/dev/null; then
    python3 - out <<'END' || complain "bench of two ranks: $(cat out)"
import json, sys
tests = json.load(open(sys.argv[1]))
assert [(t["test"], t["depth"]) for t in tests] == [("pp6", 0), ("tg3", 0), ("pp6", 9), ("tg3", 9)], tests
width, vocabulary, tiles = 64 + 64 + 64 + 96, 294, 19
for t in tests:
    assert t["ranks"] == 2 and t["threads"] == 1 and t["tps_best"] >= t["tps_median"] > 0, t
    assert t["latency_us"] >= 500 and t["gbits"] > 0, t
    # A prompt's two passes compute logits once. A pass begins with one message to the other rank and ends with one.
    passes, heads, tokens = (2, 1, 6) if t["test"] == "pp6" else (3, 3, 3)
    assert abs(t["exchanges_per_token"] * tokens - (9 * passes + heads)) < 1e-6, t
    assert abs(t["messages_per_token"] * tokens - (8 * passes + 2 * passes)) < 1e-6, t
    received = 2 * tokens * width * 4 / 2 + heads * 4 * (vocabulary - tiles // 2 * 16)
    assert abs(t["received_bytes_per_token"] * tokens - received) < 1e-6, (received, t)
    exchanged = max(t["sent_bytes_per_token"], t["received_bytes_per_token"])
    predicted = t["alone_ms"] / 2 + t["exchanges_per_token"] * t["latency_us"] / 1e3 + exchanged * 8e-6 / t["gbits"]
    assert abs(predicted - t["predicted_ms"]) < 1e-6 * predicted, (predicted, t)
    assert t["seen_ms"] >= 0.5 * (t["exchanges_per_token"] - passes / tokens), t
END
fi
mpirun -np 2 "$BUILD/whit" bench -m model.gguf -m chat.gguf >out 2>err && complain "two models were measured"
grep -q 'one model at a time' err || complain "$(cat err)"
mpirun -np 2 "$BUILD/whit" bench --kernels >out 2>err && complain "kernels were measured on two ranks"
grep -q 'work on one machine' err || complain "$(cat err)"
# What does not work on several machines says so in one line.
mpirun -np 2 "$BUILD/whit" run -m model.gguf -p a -n 1 --session kept >out 2>err && complain "a session file was kept"
[ "$(grep -c 'session files are not supported' err)" = 1 ] || complain "$(cat err)"
# A server: the answer of one process, for requests at the same time, until SIGTERM.
ask() {
    local asked=()
    for i in 1 2; do
        curl -s -m 600 --unix-socket socket -o "$1$i" http://localhost/completion -d "{\"prompt\": \"the land $i\", \"n_predict\": 8, \"temperature\": 0}" &
        asked+=($!)
    done
    wait "${asked[@]}"
    for i in 1 2; do python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["content"])' "$1$i" >"$1$i.text" || complain "no answer: $(cat "$1$i")"; done
}
# serve NAME COMMAND...: starts a server, asks it, and ends it; the answers land in NAME1.text and NAME2.text.
serve() {
    local name=$1
    shift
    rm -f socket
    "$@" serve -m model.gguf --socket socket -t 1 -np 2 --no-sandbox >out 2>err &
    local started=$!
    while kill -0 $started 2>/dev/null && ! grep -q serving err; do sleep 0.1; done
    ask "$name"
    # shellcheck disable=SC2046 # all ranks, of which the others wait for the first
    kill -TERM $(pgrep -P $started -x whit || echo $started)
    wait $started || complain "the server ended with $?: $(cat err)"
}
if command -v curl >/dev/null && command -v python3 >/dev/null; then
    serve alone "$BUILD/whit"
    serve both mpirun -np 2 "$BUILD/whit"
    for i in 1 2; do cmp -s alone$i.text both$i.text || complain "the server's answer $i is $(cat both$i), $(cat err)"; done
fi
# A dead rank ends the run.
mpirun -np 3 "$BUILD/whit" run -m model.gguf -p "the end" --endless --ignore-eos -n -1 -t 1 >out 2>err &
started=$!
while kill -0 $started 2>/dev/null && [ ! -s out ]; do sleep 0.1; done
kill -KILL "$(pgrep -P $started | tail -n 1)" || { complain "no rank to kill"; kill $started; } # it would never end
wait $started && complain "a run without one of its ranks ended well"
# A rank that fails before the others have met it ends the run, whichever it is.
for missing in 0 1; do
    models=(model.gguf model.gguf)
    models[missing]=none.gguf
    mpirun -np 1 "$BUILD/whit" run -m "${models[0]}" -p a --raw -n 2 -t 1 : -np 1 "$BUILD/whit" run -m "${models[1]}" -p a --raw -n 2 -t 1 >out 2>err </dev/null &&
        complain "a run without the model of rank $missing ended well"
    grep -q 'none.gguf: No such file' err || complain "rank $missing does not say what it lacks: $(cat err)"
done
# A rank that ends well before it has joined the others cannot be told from a slow one: the others say that they wait.
if [ -n "${LONG:-}" ]; then
    MPIEXEC_TIMEOUT=40 mpirun -np 1 "$BUILD/whit" run -m model.gguf -p a --raw -n 2 -t 1 : -np 1 "$BUILD/whit" --version >out 2>err </dev/null &&
        complain "a run without its second rank ended well"
    [ "$(grep -c 'waiting for the other ranks for 30 s now' err)" = 1 ] || complain "nothing is said of the wait: $(cat err)"
fi
exit $failed
