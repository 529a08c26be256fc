# SPDX-License-Identifier: MIT
# whit run and whit chat under a grammar and a schema, with the built-in model.
. "$SOURCE/tests/cli/lib.sh"
printf 'root ::= "The " ("cat" | "dog") " sat" [.!]\n' >pet.gbnf
for seed in 1 2 3; do
    text=$(whit run -p "Once" --no-display-prompt --grammar pet.gbnf --temp 1.5 -s $seed 2>/dev/null)
    case $text in "The cat sat"[.!] | "The dog sat"[.!]) ;; *) complain "not the grammar: $text" ;; esac
done
printf '{"type": "object", "properties": {"ok": {"type": "boolean"}, "pet": {"enum": ["cat", "dog"]}}, "required": ["ok", "pet"], "additionalProperties": false}' >pet.json
text=$(printf 'a pet?\n' | whit chat --json-schema pet.json --temp 1.5 -s 3 2>/dev/null)
printf '%s' "$text" | grep -qE '^\{"ok": ?(true|false), ?"pet": ?"(cat|dog)"\}$' || complain "not the schema: $text"
printf '{"type": "object", "properties": {"a": {"not": {"uniqueItems": true}}}}' >bad.json
whit run -p x --json-schema bad.json 2>err && complain "a schema that can't be enforced was taken"
grep -q 'bad.json: #/properties/a/not: ' err || complain "the place is not named: $(cat err)"
printf 'root ::= a\na ::= a "x" | "y"\n' >left.gbnf
whit run -p x --grammar left.gbnf 2>err && complain "left recursion was taken"
grep -q 'left.gbnf:1: rule a ' err || complain "the rule is not named: $(cat err)"
whit run -p x --grammar left.gbnf --json-schema pet.json 2>err && complain "both were taken"
# A byte order mark, which editors on Windows write, is left out.
printf '\357\273\277{"enum": ["cat"]}\n' >mark.json
text=$(whit run -p Once --no-display-prompt --json-schema mark.json 2>err) || complain "a byte order mark: $(cat err)"
[ "$text" = '"cat"' ] || complain "not the schema: $text"
printf '\357\273\277root ::= "cat"\n' >mark.gbnf
whit run -p Once --grammar mark.gbnf >out 2>err || complain "a byte order mark: $(cat err)"
# Rules that name one another without writing anything take no depth; rules within rules do, and the limit is named.
{ echo 'root ::= r0'; for i in $(seq 0 999); do echo "r$i ::= r$((i + 1))"; done; echo 'r1000 ::= "a"'; } >chain.gbnf
text=$(whit run -p Once --no-display-prompt --grammar chain.gbnf 2>err) || complain "a chain of rules: $(cat err)"
[ "$text" = a ] || complain "not the chain: $text"
{ echo 'root ::= r0'; for i in $(seq 0 999); do echo "r$i ::= \"(\" r$((i + 1)) \")\""; done; echo 'r1000 ::= "a"'; } >deep.gbnf
whit run -p Once --grammar deep.gbnf 2>err && complain "rules too deep were taken"
grep -q 'nests rules more than 600 deep' err || complain "the limit is not named: $(cat err)"
exit $failed
