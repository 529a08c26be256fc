# SPDX-License-Identifier: MIT
"""What `whit` finds in the golden files of the format: golden.py write|check golden.json, beside copies of them.

Logits are told by their hash: they are the same bits on every machine."""
import hashlib
import json
import os
import subprocess
import sys

IDS = "1 7 30 41 12 99 250 3 3 58 299 0 17 64 128 5"
MODELS = {  # arguments of `whit logits` beside the file
    "b1": [], "t": [], "t2": [], "ternary-q2": ["--act", "q2"], "q2": [], "appended": ["--adapter", "tuned"],
}
SESSIONS = {"session-" + kv: kv for kv in ("f16", "i8", "k4v2", "k2v2", "bitmap")}


def whit(*arguments, text=""):
    found = subprocess.run([*os.environ["WHIT"].split(), *arguments], input=text.encode(), capture_output=True)
    if found.returncode != 0:
        sys.exit("whit %s: %s" % (" ".join(arguments), found.stderr.decode(errors="replace")))
    return found.stdout.decode()


def logits_hash(name, arguments):
    whit("logits", "-m", name + ".ndf", "--tokens", "ids", "-o", "out.f32", "--kv", "f32", *arguments)
    return hashlib.blake2b(open("out.f32", "rb").read(), digest_size=16).hexdigest()


def look():
    with open("ids", "w", encoding="ascii") as out:
        out.write(IDS)
    found = {}
    for name, arguments in MODELS.items():
        whit("verify", name + ".ndf")
        found[name] = {"identity": json.loads(whit("inspect", name + ".ndf", "--json"))["identity"],
                       "logits": logits_hash(name, arguments)}
    found["adapter"] = logits_hash("appended", ["--adapter", "adapter.ndf"])
    whit("verify", "appended.ndf", "--key", "appended.pub")
    for name, kv in SESSIONS.items():
        whit("verify", name + ".ndf", "--replay", "-m", "t.ndf")
        told = whit("run", "-m", "t.ndf", "--session", name + ".ndf", "--kv", kv, "-n", "5", "--ignore-eos",
                    "--no-display-prompt")  # a turn more, of this copy
        ids = json.loads(whit("inspect", name + ".ndf", "--json"))["ids"]
        found[name] = {"ids": " ".join(map(str, ids)), "said": told}
    found["program"] = whit("exec", "program.ndf")
    found["memory"] = [json.loads(line)["text"] for line in whit("memory", "query", "memory.mem", "tomatos").splitlines()]
    return found


if sys.argv[1] == "write":
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(look(), file, indent=1, sort_keys=True)
        file.write("\n")
else:
    wanted, found = json.load(open(sys.argv[2], encoding="utf-8")), look()
    for name in sorted(wanted.keys() | found.keys()):
        if wanted.get(name) != found.get(name):
            print("FAILED: %s: %s, not %s" % (name, found.get(name), wanted.get(name)))
    sys.exit(wanted != found)
