#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Verbs of the program for Windows, under wine, beside those of the native program: equal lines and files.

Training and compression multiply with other loops here than on Linux (no OpenBLAS), so their files may differ in the
last bits; for these the reported cross-entropy is compared, and both programs go on with the native file.

    windows_verbs.py WINE WHIT.EXE WHIT TALES TINY_MODEL SCRATCH
"""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

wine, program, native, tales, tiny_model, scratch = sys.argv[1:]
folders = {"native": pathlib.Path(scratch) / "native", "windows": pathlib.Path(scratch) / "windows"}
CLOSE = 0.02  # of a cross-entropy of 5.8 after a few steps; a step changes it by 0.05


def run(kind, words, text, status):
    command = ([native] if kind == "native" else [wine, program]) + words
    environment = {**os.environ, "XDG_CACHE_HOME": str(folders[kind].resolve() / "cache")}
    done = subprocess.run(
        command, capture_output=True, text=True, input=text, timeout=300, cwd=folders[kind], env=environment
    )
    if done.returncode != status:
        sys.exit(
            "FAILED: %s: %s: exit status %d\n%s%s" % (kind, " ".join(words), done.returncode, done.stdout, done.stderr)
        )
    return done.stdout.replace("\r\n", "\n"), done.stderr.replace("\r\n", "\n")


def both(line, *, text="", equal=(), close="", status=0, shared=()):
    """Runs a command by both programs. Equal: "out", "err" and names of files; close: a pattern whose number on stderr
    is near; shared: files that the native program made, which both use from here on."""
    words = line.split() if isinstance(line, str) else line
    found = {kind: run(kind, words, text, status) for kind in folders}
    for what in equal:
        one, other = (
            [found[kind][what == "err"] for kind in folders]
            if what in ("out", "err")
            else [(folders[kind] / what).read_bytes() for kind in folders]
        )
        if one != other or not one:
            sys.exit("FAILED: %s: %s differs:\n%s\n%s" % (" ".join(words), what, one[:2000], other[:2000]))
    if close:
        numbers = [float(re.findall(close, found[kind][1])[-1]) for kind in folders]
        if not abs(numbers[0] - numbers[1]) < CLOSE:
            sys.exit("FAILED: %s: %r" % (line, numbers))
    for name in shared:
        shutil.copy(folders["native"] / name, folders["windows"] / name)
    print("ok   %s" % " ".join(words))
    return found


random.seed(1)
story = "the fox and the owl went to the old mill by the river and there they saw a boat with a red sail".split()
for folder in folders.values():
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "src").mkdir(parents=True)
lines = [" ".join(random.choice(story) for _ in range(12)).capitalize() + "." for _ in range(60)]
questions = [
    {"context": "The fox went to the", "choices": [" mill", " zebra"], "answer": 0},
    {"context": "A boat with a red", "choices": [" sail", " idea"], "answer": 0},
]
for folder in folders.values():
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    (folder / "lines.txt").write_text("a fox\nan owl\n", encoding="utf-8", newline="\n")
    (folder / "questions.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions), newline="\n")
    (folder / "src" / "a.c").write_text(
        "int add(int a) { return sub(a); }\nint sub(int b) { return b; }\n", newline="\n"
    )
    shutil.copy(tales, folder / "tales.ndf")

CE = r"(?:CE|cross-entropy) ([0-9.]+)"
both("embed tales.ndf -f lines.txt", equal=("out",))
both("embed tales.ndf -f lines.txt -o vectors.npy", equal=("vectors.npy",))
both("rerank tales.ndf fox -f lines.txt", equal=("err",), status=3)
both(
    "train --text text.txt --vocab 300 --layers 1 --width 64 --context 64 --codec f16 --steps 6 -o float.ndf",
    close=CE,
    shared=("float.ndf",),
)
both("distill --teacher float.ndf --text text.txt --codec t --steps 4 -o t.ndf", close=CE, shared=("t.ndf",))
both("tune -m t.ndf --text text.txt --steps 4 -o tuned.ndf", close=CE, shared=("tuned.ndf",))
both("merge -m t.ndf --adapter tuned.ndf --codec f16 -o merged.ndf", equal=("merged.ndf",))
both("run -m t.ndf --adapter tuned.ndf --raw --temp 0 -n 20 -p fox", equal=("out",))
both("compress float.ndf --codec q2 --method gptq --calib text.txt -o q2.ndf", shared=("q2.ndf",))
both("compare float.ndf t.ndf q2.ndf -f text.txt -c 64", equal=("out",))
both("eval -m float.ndf --task questions.jsonl", equal=("out",))
both("perplexity -m q2.ndf -f text.txt -c 64", equal=("out",))
both("export float.ndf --type Q4_0 -o q4.gguf", equal=("q4.gguf",))
both("refine q4.gguf --original float.ndf --calib text.txt -o refined.gguf", shared=("refined.gguf",))
both("compare float.ndf q4.gguf refined.gguf -f text.txt -c 64", equal=("out",))
run("native", ["sign", "--new-key", "mine"], "", 0)
for name in ("mine", "mine.pub"):
    shutil.copy(folders["native"] / name, folders["windows"] / name)
both("sign t.ndf --key mine", equal=("t.ndf",))
both("verify t.ndf --key mine.pub", equal=("out",))
for folder in folders.values():
    damaged = bytearray((folder / "t.ndf").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (folder / "damaged.ndf").write_bytes(damaged)
both("verify damaged.ndf", status=3, equal=("err",))
both("repl", text="let x = 1 + 2 * [1, 2]\nx * x\n", equal=("out",))
both("memory import notes.mem text.txt", equal=("out",))
both(["memory", "query", "notes.mem", "a fox with a red sail", "-k", "3"], equal=("out",))
both("graph src callers sub", equal=("out",))
both("graph src map", equal=("out",))
found = both("list")
if "q4.gguf" not in found["windows"][0]:
    sys.exit("FAILED: list does not name the converted copy: %r" % (found["windows"],))
both("rm q4.gguf")
if "q4.gguf" in both("list")["windows"][0]:
    sys.exit("FAILED: a removed copy is listed")

# A tool of a chat is a command, which gets the arguments of the call as its input; a grammar makes the answer a call.
subprocess.run([tiny_model, folders["native"] / "chat.gguf", "1", "chat"], check=True)
shutil.copy(folders["native"] / "chat.gguf", folders["windows"])
call = '<tool_call>\\n{\\"name\\": \\"weather\\", \\"arguments\\": {\\"city\\": \\"Bern\\"}}\\n</tool_call>'
programs = {"native": native, "windows": "Z:" + os.path.abspath(program).replace("/", "\\")}
for kind, folder in folders.items():
    (folder / "weather.gbnf").write_text('root ::= "%s"\n' % call)
    command = [programs[kind], "memory", "import", "asked.mem", "-"]
    tool = {"type": "function", "function": {"name": "weather"}, "command": command}
    (folder / "tools.json").write_text(json.dumps([tool]))
found = both("chat -m chat.gguf -c 4096 -s 1 -n 200 --tools tools.json --grammar weather.gbnf", text="How is it?\ny\n")
for kind in folders:
    if '{"committed": 1}' not in found[kind][0].splitlines():
        sys.exit("FAILED: the command's output: %s: %r" % (kind, found[kind]))
both("memory query asked.mem Bern", equal=("out",))
