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
head -c 100000 notes.mem >cut.mem
whit memory stats cut.mem >out 2>err
[ $? -lt 9 ] || complain "a cut store: $(cat err)"

finish
