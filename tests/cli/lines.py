# SPDX-License-Identifier: MIT
# Gives the shared cases of tokenizers and templates to the program, as a script would (lines.sh).
import json
import os
import subprocess
import sys

shared, program = sys.argv[1], sys.argv[2:]
failed = 0


def cases(path):
    with open(os.path.join(shared, path), encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file.read().split("\n") if line]


def answers(arguments, questions):
    text = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run(program + arguments, input=text.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.decode().split("\n") if line]


def compare(what, expected, got):
    global failed
    wrong = [i for i, (a, b) in enumerate(zip(expected, got)) if not a(b)]
    if wrong or len(expected) != len(got):
        failed = 1
        print(f"FAILED: {what}: {len(wrong)} of {len(expected)} differ, first {wrong[:3]}, {len(got)} answers")


for family in "llama-2", "tinystories-656k":
    folder = os.path.join(shared, "tokenizers", family)
    asked = cases(f"tokenizers/{family}/cases.jsonl")
    keys = "text", "add_special", "parse_special"
    got = answers(["tokenize", "--tokenizer", folder, "--jsonl"], [{k: c[k] for k in keys if k in c} for c in asked])
    compare(family, [lambda a, c=c: a["ids"] == c["ids"] for c in asked], got)
    asked = cases(f"tokenizers/{family}/decode.jsonl")
    got = answers(["tokenize", "--tokenizer", folder, "--jsonl"],
                  [{"ids": c["ids"], "skip_special": c["skip_special"]} for c in asked])
    compare(family + " back", [lambda a, c=c: a["text"] == c["text"] and
                               ("pieces" not in c or (a["pieces"] == c["pieces"] and a["tail"] == c["tail"]))
                               for c in asked], got)

asked = cases("templates/cases.jsonl")
for name in sorted({case["template"] for case in asked}):
    path = os.path.join(shared, "templates", name)
    path += "" if os.path.exists(path) else ".jinja"
    mine = [case for case in asked if case["template"] == name]
    got = answers(["template", "--template", path, "--now", "2026-01-02T03:04:05", "--jsonl"], mine)
    compare(name, [lambda a, c=c: a.get("text") == c["expected"] if "expected" in c
                   else "error" in a and c["error"] in a["error"] for c in mine], got)
asked = cases("templates/jinja-cases.jsonl")
got = answers(["template", "--jsonl", "--now", "2026-01-02T03:04:05"],
              [{"source": c["template"], "context": c["context"]} for c in asked])
compare("jinja", [lambda a, c=c: a.get("text") == c["expected"] if "expected" in c else "error" in a for c in asked], got)
sys.exit(failed)
