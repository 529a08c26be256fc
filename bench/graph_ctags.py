# SPDX-License-Identifier: MIT
"""How many of ctags' functions and types of C and Python the code graph knows, by name and file:

    python3 bench/graph_ctags.py build/bench/bench_graph_edges FOLDER [-v]

ctags is universal-ctags; counted are functions, structs, unions, enums and typedefs of C, classes, functions and
methods of Python. -v lists some that only one side has."""
import collections
import json
import os
import subprocess
import sys

EDGES, FOLDER = os.path.abspath(sys.argv[1]), os.path.realpath(sys.argv[2])
ours = set()
for line in subprocess.run([EDGES, FOLDER], capture_output=True, check=True).stdout.decode(errors="replace").splitlines():
    kind, *words = line.split(" ")
    if kind == "D":
        ours.add((words[0], words[1]))
theirs = collections.defaultdict(set)
out = subprocess.run(["ctags", "-R", "--languages=C,Python", "--map-C=+.h", "--map-C++=-.h", "--kinds-C=fsugt", "--kinds-Python=cfm",
                      "--output-format=json", "--fields=+l", "-f", "-", "."], cwd=FOLDER, capture_output=True, check=True).stdout
for line in out.decode(errors="replace").splitlines():
    tag = json.loads(line)
    if tag.get("_type") == "tag" and not tag["name"].startswith("__anon"):
        theirs[tag["language"]].add((tag["name"], os.path.normpath(tag["path"])))
for language, tags in sorted(theirs.items()):
    missing = sorted(tags - ours)
    print(f"{language}: {len(tags)} of ctags, {len(tags) - len(missing)} are known: {100 - 100 * len(missing) / len(tags):.2f} %")
    if "-v" in sys.argv:
        for name, path in missing[:: max(1, len(missing) // 60)]:
            print("  ", name, path)
