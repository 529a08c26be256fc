# SPDX-License-Identifier: MIT
# Session files from the command line: run and chat go on where they stopped, kills cost a turn at most.
#   session.sh [KILLS]      20, unless said otherwise
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache XDG_STATE_HOME=$PWD/state
rm -rf cache state ./*.ndf ./*.json key key.pub other other.pub race.* given.*
kills=${1:-20}
[ -n "${WHIT_TEST_BRIEF:-}" ] && kills=3
tiny model.gguf 1 chat
tiny other.gguf 2 chat
expect 0 whit convert model.gguf -o model.ndf
expect 0 whit convert other.gguf -o other.ndf
say="whit run -m model.ndf --no-display-prompt --ignore-eos --session s.ndf"

# ---- run: three calls are as one, at every level and with other threads, blocks kept or not
expect 0 $say -p "the land" -n 150 --seed 3 --temp 1.1 --dry-multiplier 0.5
ids() {
    whit inspect s.ndf --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["ids"])'
}
ids >whole
for keep in blocks none; do
    rm -f s.ndf
    expect 0 $say -p "the land" -n 90 --seed 3 --temp 1.1 --dry-multiplier 0.5 --session-kv $keep
    WHIT_CPU=generic expect 0 $say -n 45 -t 1 --session-kv $keep
    WHIT_CPU=avx2 expect 0 $say -n 15 -ub 7 --session-kv $keep
    ids >parts
    cmp -s whole parts || complain "--session-kv $keep: three calls differ from one"
    for level in generic avx2 avx512 amx ''; do
        WHIT_CPU=$level expect 0 whit verify s.ndf --replay -m model.ndf
        grep -q 'exactly these 150 tokens in 3 turns' out || complain "replay: $(cat out err)"
    done
done
# ---- an option that was given counts, also where its value is the usual one: what is not is as in the last turn
mv s.ndf kept.ndf
expect 0 $say -p "the land" -n 20 --seed 3 --frequency-penalty 2
mv s.ndf begun.ndf
for penalty in '' '--frequency-penalty 0' '--frequency-penalty 1e-30'; do # the last is too little to change anything
    cp begun.ndf s.ndf
    expect 0 $say -n 40 $penalty
    ids >"given.${penalty##* }"
done
cmp -s given.0 given.1e-30 || complain "--frequency-penalty 0 does not turn off what the last turn had"
cmp -s given.0 given. && complain "a penalty that is not given is not that of the last turn"
mv kept.ndf s.ndf

# ---- packed caches: closed blocks and the tail of each turn, and the replay at every level
for kv in bitmap k4v2 k2v2; do
    for keep in blocks none; do
        rm -f p.ndf
        say_packed="whit run -m model.ndf --no-display-prompt --ignore-eos --session p.ndf --kv $kv --session-kv $keep"
        expect 0 $say_packed --kv-window 0 -p "the land" -n 90 --seed 3 --temp 1.1 --spec 7
        WHIT_CPU=generic expect 0 $say_packed --kv-window 0 -n 45 -t 1
        WHIT_CPU=avx2 expect 0 $say_packed --kv-window 0 -n 15 -ub 7
        whit inspect p.ndf --json >p.json
        [ $kv$keep != k4v2blocks ] || cp p.json first.json
        [ $kv != k4v2 ] || python3 -c 'import json; assert json.load(open("p.json"))["ids"] == json.load(open("first.json"))["ids"]' ||
            complain "$kv: blocks and none differ"
        for level in generic avx2 avx512 amx ''; do
            WHIT_CPU=$level expect 0 whit verify p.ndf --replay -m model.ndf
            grep -q 'exactly these 150 tokens in 3 turns' out || complain "replay of $kv: $(cat out err)"
        done
    done
done
expect 3 whit run -m model.ndf --session p.ndf --kv k2v2 -n 1
one_line 'another window'

[ "$(stat -c %a s.ndf)" = 600 ] || complain "the session is readable by others"
expect 2 whit verify s.ndf --replay -m other.ndf
expect 2 whit run -m other.ndf --session s.ndf -n 1
one_line 's.ndf: the session was made with the model'
expect 2 $say -n 1 --kv i8
one_line 'made with the KV cache f16, but this run has i8'
expect 2 whit run -m model.ndf --session s.ndf --chat -p x
one_line 'made with the purpose text, but this run has chat'
expect 4 $say -p x -c 100
one_line 'the context is 100' 'choose a larger one (-c)'
expect 0 whit inspect s.ndf --json
python3 -c 'import json; f = json.load(open("out")); assert len(f["turns"]) == 3 and f["about"]["session.kv"] == "f16"' ||
    complain "inspect: $(cat out)"
expect 0 whit inspect s.ndf

# ---- an append costs what its bytes cost
rm -f s.ndf
expect 0 $say -p "a" -n 3 --session-kv none
before=$(stat -c %s s.ndf)
expect 0 $say -p "b" -n 100 --session-kv none
grown=$(($(stat -c %s s.ndf) - before))
[ $grown -lt 1500 ] || complain "a turn of 100 tokens took $grown bytes"

# ---- chat: undo, regenerate, clear, and an end in between
rm -f c.ndf whole.json parts.json
lines='the land\nand then\n/undo\nhe said\n/regen\nthe ice\n'
printf '%b/save whole.json\n' "$lines" | whit chat -m model.ndf -n 12 --seed 4 -sys 'be' >whole 2>err || complain "$(cat err)"
printf 'the land\nand then\n' | whit chat -m model.ndf -n 12 --seed 4 -sys 'be' --session c.ndf >parts 2>err || complain "$(cat err)"
printf '/undo\n' | whit chat -m model.ndf -n 12 --session c.ndf >>parts 2>err || complain "$(cat err)"
printf 'he said\n/regen\n' | whit chat -m model.ndf -n 12 --session c.ndf >>parts 2>err || complain "$(cat err)"
printf 'the ice\n/save parts.json\n' | whit chat -m model.ndf -n 12 --session c.ndf >>parts 2>err || complain "$(cat err)"
cmp -s whole parts || complain "a chat in four calls differs from one"
cmp -s whole.json parts.json || complain "its messages differ: $(cat parts.json)"
expect 0 whit verify c.ndf --replay -m model.ndf
printf '/clear\n' | whit chat -m model.ndf --session c.ndf >out 2>err || complain "$(cat err)"
printf '/save empty.json\n' | whit chat -m model.ndf --session c.ndf >out 2>err || complain "$(cat err)"
grep -q '"messages": \[{"role": "system"[^{]*\]' empty.json || complain "/clear was not kept: $(cat empty.json)"
# With packed caches a chat goes back to marks: the same answers in one call and in three.
for kv in bitmap k4v2 k2v2; do
    rm -f q.ndf
    chat="whit chat -m model.ndf -n 40 --temp 0 --kv $kv --kv-window 0 --spec 5"
    printf '%b' "$lines" | $chat >whole 2>err || complain "$(cat err)"
    printf 'the land\nand then\n' | $chat --session q.ndf >parts 2>err || complain "$(cat err)"
    printf '/undo\nhe said\n' | $chat --session q.ndf >>parts 2>err || complain "$(cat err)"
    printf '/regen\nthe ice\n' | $chat --session q.ndf >>parts 2>err || complain "$(cat err)"
    cmp -s whole parts || complain "a chat with $kv in three calls differs from one"
    expect 0 whit verify q.ndf --replay -m model.ndf
done
# Turns that the context leaves no room for are dropped in the file as in the chat.
rm -f d.ndf
for i in 1 2 3 4 5 6; do echo "the land of the ice $i"; done >lines
whit chat -m model.ndf -c 96 -n 10 --seed 2 <lines >whole 2>err || complain "$(cat err)"
: >parts
for i in 1 2 3 4 5 6; do
    sed -n ${i}p lines | whit chat -m model.ndf -c 96 -n 10 --seed $((i + 1)) --session d.ndf >>parts 2>err || complain "$(cat err)"
done
cmp -s whole parts || complain "dropped turns differ: $(cat err)"
expect 0 whit verify d.ndf --replay -m model.ndf

# ---- picks under a grammar are no forgery: the file says that it cannot be replayed
printf 'root ::= [a-z ]{2,30}\n' >letters.gbnf
expect 0 whit run -m model.ndf -p "the" -n 6 --session g.ndf --grammar letters.gbnf
expect 3 whit verify g.ndf --replay -m model.ndf
grep -q "turn 0 was picked under a grammar" err || complain "$(cat err)"
expect 0 whit verify g.ndf

# ---- several that begin one file at once: one does, the others say why not
for i in 1 2 3 4 5 6; do
    whit run -m model.ndf -p "the" -n 40 --session race.ndf >/dev/null 2>race.$i || grep -q "another program is writing the file" race.$i ||
        touch race.odd &
done
wait
[ ! -e race.odd ] || complain "$(cat race.?)"
expect 0 whit verify race.ndf --replay -m model.ndf

# ---- signatures, of a session and of a model
expect 0 whit sign --new-key key
[ "$(stat -c %a key)" = 600 ] || complain "the secret key is readable by others"
expect 5 whit sign --new-key key
expect 0 whit sign c.ndf --key key
expect 0 whit verify c.ndf --key key.pub
grep -q 'signed up to frame [0-9]*, all of it' out || complain "verify --key: $(cat out)"
expect 0 whit run -m model.ndf --chat -p more -n 3 --session c.ndf
expect 0 whit verify c.ndf --key key.pub
grep -q '1 later frames are not signed' out || complain "verify --key: $(cat out)"
cp model.ndf signed.ndf
expect 0 whit sign signed.ndf --key key
expect 0 whit verify signed.ndf --key key.pub
expect 0 whit run -m signed.ndf -p a -n 2
expect 3 whit verify model.ndf --key key.pub
one_line 'the file is not signed with this key'
expect 3 whit sign model.ndf --key key.pub
# ---- a signature beside any file
echo "sums of a release" >sums
expect 3 whit sign sums --key key
expect 0 whit sign sums --detached --key key
cp sums.sig first.sig
expect 0 whit sign sums --detached --key key
cmp -s sums.sig first.sig || complain "another signature of the same file"
expect 0 whit verify sums --detached --key key.pub
expect 2 whit verify sums --detached
echo more >>sums
expect 3 whit verify sums --detached --key key.pub
one_line 'the signature is not valid'
expect 0 whit sign --new-key other
expect 3 whit verify sums --detached --key other.pub
one_line 'with another key'
echo broken >sums.sig
expect 3 whit verify sums --detached --key key.pub
one_line 'not a signature'
expect 5 whit verify absent --detached --key key.pub
# A signature that is a pipe is refused, not waited for.
mkfifo piped.sig
echo text >piped
expect 5 whit verify piped --detached --key key.pub
one_line 'piped.sig: is not a regular file'

# ---- kills
# shellcheck disable=SC2086
python3 "$SOURCE/tests/cli/session_kill.py" $kills f16 ${EMULATOR:-} "$WHIT" || complain "kills"
# shellcheck disable=SC2086
python3 "$SOURCE/tests/cli/session_kill.py" $(((kills + 1) / 2)) k4v2 ${EMULATOR:-} "$WHIT" || complain "kills, k4v2"
# shellcheck disable=SC2086
python3 "$SOURCE/tests/cli/session_full.py" ${EMULATOR:-} "$WHIT" || complain "a full disk"
finish
