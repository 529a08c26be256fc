# SPDX-License-Identifier: MIT
"""Answers at random over the schemas of schemas.py are valid; what can't be enforced is refused by name.

    check.py SAMPLE TOKENIZER ANSWERS_PER_SCHEMA MOST_TOKENS"""
import json
import resource
import subprocess
import sys

import schemas

sample, tokenizer, n_answers, most = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4]
failed = 0


def run(items, n):
    with open("schemas.jsonl", "w", encoding="utf-8") as out:
        for item in items:
            out.write(json.dumps(item) + "\n")
    done = subprocess.run([sample, tokenizer, "schemas.jsonl", str(n), most, "1"], capture_output=True, check=True)
    print(done.stderr.decode("utf-8", "replace").strip())
    return [json.loads(line) for line in done.stdout.decode().split("\n") if line]


def complain(*what):
    global failed
    failed += 1
    print("FAILED:", *what)


ended = {"stop": 0, "length": 0}
for answer in run(schemas.SCHEMAS, n_answers):
    schema = schemas.SCHEMAS[answer["schema"]]
    shown = json.dumps(schema)[:100]
    if answer["finish"] not in ended:
        complain(shown, answer)
        continue
    ended[answer["finish"]] += 1
    if answer["finish"] != "stop":
        continue
    try:
        value = json.loads(answer["text"], parse_constant=lambda c: complain("constant", c))
    except ValueError as error:
        complain(shown, "no JSON:", error, answer["text"][:200])
        continue
    if not schemas.valid(value, schema, schema):
        complain(shown, "refuses", answer["text"][:300])
total = sum(ended.values())
print(f"{len(schemas.SCHEMAS)} schemas, {total} answers, {ended['stop']} ended with stop")
if ended["stop"] < 0.98 * total:
    complain("less than 98 % ended with stop")

for (schema, path), answer in zip(schemas.REFUSED, run([s for s, _ in schemas.REFUSED], 1)):
    if answer["finish"] != "refused" or not answer["error"].startswith(f"schema: {path}: "):
        complain(json.dumps(schema), "should be refused at", path, "but:", answer)
for schema, answer in zip(schemas.IMPOSSIBLE, run(schemas.IMPOSSIBLE, 1)):
    if answer["finish"] != "refused":
        complain(json.dumps(schema), "cannot be satisfied, but:", answer)

# Hostile ones: whatever the answer, it comes within a second of processor time and 64 MB.
NEST = 120
deep = {"type": "integer"}
for _ in range(NEST):
    deep = {"anyOf": [deep, {"type": "array", "items": deep}]} if _ < 12 else {"type": "array", "items": deep}
HOSTILE = [
    deep,
    {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(20000)}},
    {"enum": ["x" * 50 + str(i) for i in range(15000)]},
    {"type": "string", "pattern": "^" + "(a|aa|aaa)*" * 200 + "b$"},
    {"type": "string", "pattern": "^((((a{1,999}){1,999}){1,999}){1,999}){1,999}$"},
    {"type": "string", "pattern": "^" + "(" * 5000 + "a" + ")" * 5000 + "$"},
    {"type": "string", "pattern": "^(a?){60}{60}$"},
    {"type": "string", "pattern": "^" + "[\\u0080-\\uffff]?" * 3000 + "$"},
    {"type": "array", "minItems": 4000000000, "maxItems": 4100000000, "items": {"type": "boolean"}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}},
    {"allOf": [{"anyOf": [{"type": "object", "properties": {f"k{i}{j}": {}}} for j in range(8)]} for i in range(12)]},
    {"oneOf": [{"type": "object", "properties": {"k": {"const": i}}, "required": ["k"]} for i in range(2000)]},
    {"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "c": {"$ref": "#"}}},
    {"anyOf": [{"type": "string", "pattern": f"^.{{0,{i}}}x.*y.*z.*$"} for i in range(400)]},
    {"type": "array", "prefixItems": [{"type": "integer"}] * 5000},
    {"$defs": {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{(i * 7 + k) % 500}"} for k in range(20)]} for i in range(500)},
     "$ref": "#/$defs/d0"},
    {"allOf": [{"not": {"const": i}} for i in range(3000)]},
    {"type": "string", "allOf": [{"not": {"pattern": f"a{{{i}}}b"}} for i in range(200)]},
    {"oneOf": [{"type": "object", "properties": {f"k{i}": {"type": "integer"}}} for i in range(300)]},
    {"allOf": [{"if": {"properties": {f"k{i}": {"const": 1}}}, "then": {"required": [f"r{i}"]}} for i in range(40)]},
    {"type": "object", "patternProperties": {"^" + "(a|aa|aaa)*" * 30 + f"{i}$": {} for i in range(6)},
     "additionalProperties": {}},
    {"type": "object", "propertyNames": {"pattern": "^.*a.{12}$", "not": {"pattern": "b.{10}"}}, "additionalProperties": {}},
    {"type": "string", "pattern": "^(ab|a|b)*$", "minLength": 900000, "maxLength": 1000000},
    {"type": "object", "properties": {f"p{i}": {"type": "number", "minimum": -i - 0.5, "maximum": i * 1.25 + 1}
                                      for i in range(3000)}},
    {"type": "object", "properties": {f"p{i}": {"type": "integer", "multipleOf": 4000 + i} for i in range(90)}},
    {"enum": [f"w{i}" * 4 for i in range(50000)], "pattern": "^w.*[0-9]$"},
    {"allOf": [{"anyOf": [{"type": "object", "properties": {f"k{i}{j}": {}}} for j in range(6)]} for i in range(6)],
     "unevaluatedProperties": False},
    {"items": {"enum": list(range(900))}, "uniqueItems": True},
    {"type": "string", "pattern": "^" + "\\p{L}" * 100 + "$"},
    {"anyOf": [{"type": "string", "pattern": f"^\\p{{L}}{i}$"} for i in range(500)]},
]


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))


peak = 0
for i, schema in enumerate(HOSTILE):
    with open("hostile.jsonl", "w", encoding="utf-8") as out:
        out.write(json.dumps(schema) + "\n")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sample, tokenizer, "hostile.jsonl", "1", "50", "1"], capture_output=True,
                          preexec_fn=limits, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = max(peak, after.ru_maxrss)
    if done.returncode != 0:
        complain("hostile schema", i, "ended with", done.returncode, done.stderr.decode("utf-8", "replace")[-300:])
        continue
    print(i, done.stdout.decode()[:160].strip(), done.stderr.decode("utf-8", "replace").strip()[:120])
print(f"most resident memory of a process: {peak // 1024} MB, the vocabulary included")
sys.exit(1 if failed else 0)
