# SPDX-License-Identifier: MIT
# --program FILE: a program runs for every token, changes the logits, keeps a state, and ends one
# request where it fails.
. "$SOURCE/tests/cli/lib.sh"

expect 0 whit run -p "Once upon a time" -n 20 --temp 0 --no-stats
cp out plain
printf '# changes nothing\nlogits = logits * 1.0\n' >same.ndl
expect 0 whit run -p "Once upon a time" -n 20 --temp 0 --no-stats --program same.ndl
cmp -s out plain || complain "a program that changes nothing changed: $(cat out)"

# Only one token is left: the one that was best at first.
printf 'if step == 0 { state[0] = argmax(logits) }\nlet i = int(state[0])\nlet only = vec(len(logits), -1.0)\nonly[i] = 1\nlogits = cut(only, 0) \n' >only.ndl
expect 0 whit run -p "Once upon a time" -n 5 --temp 0 --no-stats --no-display-prompt --ignore-eos --program only.ndl
[ "$(tr -d '\n' <out | sed 's/^ *//' | tr -s ' ' '\n' | sort -u | wc -l)" -le 2 ] || complain "more than one token: $(cat out)"

# History and end: three tokens, then the end.
printf 'if step == 2 { end = 1 }\nif step > 0 and history[len(history) - 1] != token { logits = logits * 0 / 0 }\n' >three.ndl
expect 0 whit run -p "Once upon a time" -n 50 --temp 0 --json --program three.ndl
grep -q '"generated_tokens": 3' out || complain "three tokens: $(cat out)"

printf 'logits = logits + nothing\n' >wrong.ndl
expect 2 whit run -p "Once" --program wrong.ndl
one_line "wrong.ndl:1:19: 'nothing' is not defined"
printf 'if step == 3 { logits[len(logits)] = 0 }\n' >late.ndl
whit run -p "Once" -n 10 --no-stats --program late.ndl >out 2>err && complain "a mistake at run time should end the run"
grep -q 'late.ndl:1:22: index' err || complain "run time: $(cat err)"
printf 'logits = cut(logits, 1e30)\n' >none.ndl
whit run -p "Once" -n 10 --no-stats --program none.ndl >out 2>err && complain "every token is forbidden"
grep -q 'forbids every token' err || complain "forbidden: $(cat err)"
printf 'Tell me a tale\n' | whit chat --program same.ndl -n 5 --temp 0 >out 2>err || complain "chat: $(cat err)"
printf 'Tell me a tale\n' | whit chat --program late.ndl -n 50 --temp 0 >out 2>err
grep -q 'late.ndl:1:22: index' err || complain "chat at run time: $(cat err)"
finish
