# SPDX-License-Identifier: MIT
"""Each check of the driver catches a planted fault, and finds none in a program that does nothing."""
import os
import sys

from foreign import play_project

# Every fault of stub.py, the words by which it is told, and a seed with a project in which it can be planted.
FAULTS = {"program": "program: ran .canary/tool", "server": "program: started clangd", "link": "linked.txt", "mode": "notes.txt",
          "beside": "new' appeared outside", "tree": "'plain/a.c' changed in the project", "rewritten": "'plain/a.c' changed in the project",
          "sent": "sent: a secret of", "shown": "shown: a secret of", "kept": "kept: a secret of", "object": "kept: a secret of",
          "hang": "hang: ", "endless": "hang: ", "terminal": "terminal: mode 1049", "echo": "terminal: its settings", "escape": "escape: ", "hidden": "escape: ",
          "crash": "crash: it ended by signal 11"}
SEED = 4
tiny = os.path.abspath("empty.gguf")
open(tiny, "w").close()
stub = os.path.abspath("stub")
with open(stub, "w", encoding="utf-8") as script:
    script.write(f"#!/bin/sh\nexec '{sys.executable}' -I -S -E '{os.path.dirname(os.path.abspath(__file__))}/stub.py' \"$@\"\n")
os.chmod(stub, 0o755)
failed = 0


def play(faults, kinds, bound_s=60):
    """The lines by which the driver tells each of the faults of the stub."""
    _, found = play_project(SEED, stub, tiny, kinds, bound_s, [{"STUB": fault} for fault in faults])
    return [[line for number, _, line in found if number == i] for i in range(len(faults))]


def check_seen(faults, bound_s=60):
    global failed
    for fault, lines in zip(faults, play(faults, ["agent"] * len(faults), bound_s)):
        if not any(FAULTS[fault] in line for line in lines):
            print(f"FAILED: the planted fault '{fault}' is not seen: {lines}")
            failed = 1


HANGS = ["hang", "endless"]
check_seen([fault for fault in FAULTS if fault not in HANGS])
check_seen(HANGS, 0.5)
for names, kinds in ((["", "", "", ""], ["agent", "piped", "json", "turns"]), (["obeyed"] * 4 + ["ordinary"] * 4, ["agent"] * 8)):
    for fault, lines in zip(names, play(names, kinds)):
        if lines:
            print(f"FAILED: a program without a fault ({fault}) has one: {lines}")
            failed = 1
sys.exit(failed)
