# SPDX-License-Identifier: MIT
# whit memory: texts and triples in, the nearest out; what was committed survives kills.
. "$SOURCE/tests/cli/lib.sh"
rm -f notes.mem kills.mem

printf 'tomatoes want sun and water\nthe engine needs oil\nrivers run to the sea\n' >lines
expect 0 whit memory import notes.mem lines
grep -q '"committed": 3' out || complain "import says: $(cat out)"
expect 0 whit memory add notes.mem "candles burn in winter"
expect 0 whit memory query notes.mem "tomatos wnat sun" -k 2
[ "$(wc -l <out)" = 2 ] || complain "query prints: $(cat out)"
head -n 1 out | grep -q '"text":"tomatoes want sun and water"' || complain "query finds: $(cat out)"
printf '{"subject": "whit", "predicate": "is written in", "object": "C11"}\n{"subject": "the sea", "predicate": "is", "object": "salty"}\n' >triples
whit memory import notes.mem --jsonl triples >out 2>err || complain "triples: $(cat err)"
expect 0 whit memory query notes.mem --jsonl '{"subject": "whit", "predicate": "is written in"}' -k 1
grep -q 'C11' out || complain "the triple is not found: $(cat out)"
expect 0 whit memory stats notes.mem
python3 - out <<'END' || complain "stats: $(cat out)"
import json, sys
stats = json.load(open(sys.argv[1]))
assert stats["records"] == 6 and stats["commits"] == 3 and stats["bits"] == 8192, stats
END
expect 0 whit verify notes.mem
grep -q 'every hash matches, .* memory of 3 commits$' out || complain "verify of a memory: $(cat out)"
expect 3 whit inspect notes.mem
one_line "notes.mem: the file is a memory" "whit memory stats notes.mem"
expect 2 whit memory forget notes.mem
one_line forget
expect 3 whit memory import notes.mem --jsonl lines
one_line "line 1"
expect 5 whit memory stats absent.mem
one_line absent.mem
tiny model.gguf
expect 0 whit convert model.gguf -o model.ndf
whit memory add model.ndf "text" >out 2>err && complain "a model is no memory"
one_line model.ndf
# What is typed by mistake: a file's name as a text, nothing at all, lines in which something is wrong.
printf 'one\n' >more-lines
expect 2 whit memory add notes.mem more-lines
one_line "'whit memory import notes.mem more-lines' keeps its lines"
expect 2 whit memory add notes.mem "  "
one_line "an empty text"
expect 2 whit memory query notes.mem ""
one_line "the query is empty"
printf 'two\n\n  \nthree\377\n' >broken-lines
expect 3 whit memory import notes.mem more-lines broken-lines
one_line "broken-lines: line 4: is not UTF-8"
printf '{"text": "a"}\n{"text\n' >broken.jsonl
expect 3 whit memory import notes.mem --jsonl broken.jsonl
one_line "broken.jsonl: line 2: is not JSON"
expect 0 whit memory stats notes.mem
grep -q '"records": 6' out || complain "something of that was kept: $(cat out)"

# Two writers begin the same store: both end, and all that they said is there.
rm -f both.mem
for k in 1 2; do (seq 1 20 | sed "s/^/writer $k says /" | whit memory add both.mem --batch 1 >said-$k 2>said-$k.err || echo failed >>said-$k.err) & done
wait
[ -s said-1.err ] || [ -s said-2.err ] && complain "two writers: $(cat said-1.err said-2.err)"
expect 0 whit memory stats both.mem
grep -q '"records": 40' out || complain "two writers: $(cat out)"
head -c 100000 notes.mem >cut.mem
whit memory stats cut.mem >out 2>err
[ $? -lt 9 ] || complain "a cut store: $(cat err)"

# A line is bounded, whether its end comes or not; Ctrl-C ends a wait for lines at once.
for end in '' '\n'; do
    (printf 'first\n'; head -c 600000 /dev/zero | tr '\0' a; printf "$end") >long-line
    expect 4 whit memory import notes.mem long-line
    one_line 'long-line: line 2 has more than 519999 bytes'
done
expect 5 whit memory import notes.mem .
one_line 'Is a directory'
python3 - $EMULATOR "$WHIT" <<'END' || complain "Ctrl-C while lines are awaited"
import signal, subprocess, sys, time
for action in (["add", "waits.mem", "--batch", "1"], ["query", "notes.mem"]):
    memory = subprocess.Popen(sys.argv[1:] + ["memory", *action], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    memory.stdin.write(b"tomatoes\n")
    memory.stdin.flush()
    if action[0] == "add":
        assert memory.stdout.readline() == b'{"committed": 1}\n'
    else:
        time.sleep(0.5) # answers stay in the buffer of a pipe
    memory.send_signal(signal.SIGINT)
    try:
        memory.wait(120)
    finally:
        memory.kill()
    said = memory.stderr.read()
    assert memory.returncode == 6 and said.startswith(b"whit memory: interrupted"), (memory.returncode, said)
END
finish
