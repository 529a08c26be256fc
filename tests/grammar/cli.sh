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
printf '{"type": "object", "properties": {"a": {"not": {}}}}' >bad.json
whit run -p x --json-schema bad.json 2>err && complain "a schema that can't be enforced was taken"
grep -q 'bad.json: #/properties/a/not: ' err || complain "the place is not named: $(cat err)"
printf 'root ::= a\na ::= a "x" | "y"\n' >left.gbnf
whit run -p x --grammar left.gbnf 2>err && complain "left recursion was taken"
grep -q 'left.gbnf:1: rule a ' err || complain "the rule is not named: $(cat err)"
whit run -p x --grammar left.gbnf --json-schema pet.json 2>err && complain "both were taken"
exit $failed
