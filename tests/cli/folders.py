# SPDX-License-Identifier: MIT
# Checks a chat of folders.sh: exact prompt ids, and that the second turn computed what was new and
# nothing else. Arguments: the model, the program.
import json
import re
import subprocess
import sys

model, program = sys.argv[1], sys.argv[2:]


def ask(verb, line):
    answer = subprocess.run(program + [verb, "-m", model, "--jsonl"], input=json.dumps(line) + "\n", text=True,
                            stdout=subprocess.PIPE, check=True).stdout
    return json.loads(answer)


def prompt_ids(n_messages):
    """The prompt of the first messages: its text by `whit template`, its ids by `whit tokenize`."""
    messages = json.load(open("2.json"))["messages"][:n_messages]
    special = {"bos_token": None, "eos_token": None}
    config = json.load(open("model/tokenizer_config.json"))
    for key in special:
        value = config.get(key)
        special[key] = value["content"] if isinstance(value, dict) else value
    line = {"messages": messages, "add_generation_prompt": True}
    line.update({key: value for key, value in special.items() if value})
    text = ask("template", line)["text"]
    return text, ask("tokenize", {"text": text, "add_special": False, "parse_special": True})["ids"]


def same(a, b):
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


out = open("out", encoding="utf-8", errors="surrogateescape").read()
held = [list(map(int, line.split())) for line in re.findall(r"^tokens: ([0-9 ]+)$", out, re.M)]
stats = [(int(a), int(b), int(c)) for a, b, c in
         re.findall(r"prompt (\d+) tokens in .*?, (\d+) kept; generated (\d+)", open("err").read())]
text, first = prompt_ids(2)
assert held[0][:len(first)] == first, (held[0], first)
assert stats[0][:2] == (len(first), 0), stats
text, second = prompt_ids(4)
# A random model says anything; what could command a terminal is shown as something else.
pattern = "".join(re.escape(c) if c.isprintable() or c in "\n\t" else ".{1,10}" for c in text)
assert re.search(pattern, out, re.S), (text, out)
assert held[1][:len(second)] == second, (held[1], second)
# All that the first turn left, as far as the second prompt says the same; at least its question.
kept = same(held[0], second)
assert stats[1][:2] == (len(second) - kept, kept), (stats, kept, len(second))
assert kept >= len(first) - 4, (kept, len(first))
assert stats[2][1] == len(second) - 1, stats
