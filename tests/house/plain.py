# SPDX-License-Identifier: MIT
"""Counts what the house's language has left of its old dialect: marks in comments by room, long paragraphs in
documents, static functions whose name is one word and stands in over three files, headers with over 40 prototypes,
casts of a member `data` (base/items.h has typed views), statements with two or more conditional operators, deviations
from the error path (docs/dev/style.md), functions of headers that only tests call. plain.txt has the ceilings, which
may only fall; `plain.py --write` writes today's counts there."""
import collections
import functools
import os
import re
import subprocess
import sys

MARKS = [
    r"^\W*(of|what|those|that of|who|whose|nothing|nobody) (?!is\b|are\b)",
    r"\b(is|are|was|were|be|has) none\b",
    r"\b(go|goes|gone|going|went) on\b(?! to\b)",
    r"\bso (many|much) (rows|tokens|bytes|columns|lines|of|as)\b",
    r"\b(behind|in front of)\b",
    r"\b(the one|those|that) (that|which|of which|where|who)\b",
]
MARK = [re.compile(mark, re.I) for mark in MARKS]
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
STATIC = re.compile(r"^static [^=;{]*?\b([a-z][a-z0-9]*)\(", re.M)
CAST = re.compile(r"\((?:const )?(?:struct )?\w+(?: const)? \*+\)(?:\((?:const )?void \*\))?&?[\w.\->\[\]]*(?:\.|->)data\b")
LITERAL = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'")
PARAGRAPH = 500  # characters
PROTOTYPES = 40  # of a header


def tracked(*patterns):
    return subprocess.run(["git", "ls-files", *patterns], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]


@functools.cache
def code_of(path):
    """The file's text without comments."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return COMMENT.sub("", file.read())


def room_of(path):
    parts = path.split("/")
    return "/".join(parts[: 3 if parts[0] == "src" and len(parts) > 3 else 2 if len(parts) > 2 else 1])


def find_marks(counts):
    for path in tracked("src", "include", "bench", "tools", "examples"):
        if not path.endswith((".c", ".h", ".inc")):
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        for comment in COMMENT.findall(text):
            flat = re.sub(r"\s*\n\s*\*?\s*", " ", re.sub(r"^/\*+|\*/$|^//", "", comment)).strip()
            found = sum(len(mark.findall(flat)) for mark in MARK)
            if found:
                counts["marks " + room_of(path)] += found


def find_paragraphs(counts):
    for path in tracked("README.md", "docs"):
        if path.endswith(".md"):
            with open(path, encoding="utf-8") as file:
                counts["paragraphs " + path] += sum(
                    len(line) > PARAGRAPH for line in file.read().split("\n") if not line.startswith("|"))


def find_statics(counts):
    files = collections.defaultdict(set)
    for path in tracked("src"):
        if path.endswith((".c", ".inc")):
            with open(path, encoding="utf-8", errors="replace") as file:
                for name in STATIC.findall(file.read()):
                    files[name].add(path)
    for name, paths in files.items():
        if len(paths) > 3:
            counts["static " + name] = len(paths)


def count_conditionals(code):
    return sum(statement.count("?") > 1 for statement in re.split(r"[;{}]", code))


def find_shapes(counts):
    for path in tracked("src"):
        if path.endswith((".c", ".h", ".inc")):
            code = LITERAL.sub("0", code_of(path))
            counts["casts of data"] += len(CAST.findall(code))
            counts["conditionals"] += count_conditionals(code)


def count_prototypes(text):
    """Declared functions; names in an `extern NAME_fn a, b;` count, too. Bodies in braces are passed over."""
    text = re.sub(r"^\s*#(?:.*\\\n)*.*", "", COMMENT.sub("", text.replace('extern "C" {', "")), flags=re.M)
    flat = ""
    depth = 0
    for char in text:
        depth += (char == "{") - (char == "}")
        if not depth:
            flat += ";" if char == "}" else char
    n = 0
    for statement in flat.split(";"):
        statement = " ".join(statement.split())
        if re.match(r"extern \w+_fn ", statement):
            n += statement.count(",") + 1
        else:
            n += bool(re.match(r"(?!typedef\b)[\w\s*]*\w\(", statement))
    return n


def find_prototypes(counts):
    for path in tracked("src/*.h", "include/*.h"):
        with open(path, encoding="utf-8") as file:
            n = count_prototypes(file.read())
        if n > PROTOTYPES:
            counts["prototypes " + path] = n


ERRORS = {
    "gotos": re.compile(r"\bgoto \w+;"),
    "returns without WHIT_TRY": re.compile(r"if \(status != WHIT_OK\) return status;"),
    # Chained steps with nothing to release after them.
    "loose chains": re.compile(r"whit_status status = [^;{}]*;\n(?:    if \(status == WHIT_OK\)\s+status = [^;{}]*;\n)+"
                               r"    return status;\n"),
}
UNCHECKED = re.compile(r"^WHIT_API whit_status\b", re.M)


def find_errors(counts):
    for path in tracked("src", "include"):
        if path.endswith((".c", ".h", ".inc")):
            code = code_of(path)
            for name, pattern in ERRORS.items():
                counts[name] += len(pattern.findall(code))
            if path.startswith("include/"):
                counts["unchecked results"] += len(UNCHECKED.findall(code))


def find_tested_only(counts):
    """Prototypes of headers whose name occurs, outside tests, only there and at its definition, or in one file."""
    uses = collections.Counter()
    files = collections.defaultdict(set)
    tests = set()
    declared = set()
    for path in tracked("src", "include", "bench", "tools", "examples", "bindings", "tests"):
        if not path.endswith((".c", ".h", ".inc", ".py", ".js")):
            continue
        code = code_of(path)
        names = re.findall(r"\bwhit_\w+", code)
        if path.startswith("tests/"):
            tests.update(names)
            continue
        uses.update(names)
        # Embedders call the public interface, macros the functions for Windows.
        if path.endswith(".h") and not path.startswith(("include/", "src/base/windows/")):
            declared.update(re.findall(r"^(?!typedef|static)[\w \t*]*?\b(whit_\w+)\([^;{}]*\);", code, re.M))
        for name in names:
            files[name].add(path)
    for name in declared & tests:
        if uses[name] <= 2:
            counts["tested only " + name] = 1
    for name in declared - tests:
        counts["declared for one file"] += len(files[name]) == 2  # the header and that file: it could be static


def main():
    counts = collections.Counter()
    find_marks(counts)
    find_paragraphs(counts)
    find_statics(counts)
    find_prototypes(counts)
    find_shapes(counts)
    find_errors(counts)
    find_tested_only(counts)
    counts = {key: n for key, n in counts.items() if n}
    ceilings_path = "tests/house/plain.txt"
    if "--write" in sys.argv:
        with open(ceilings_path, "w", encoding="utf-8") as file:
            file.writelines(f"{n:4} {key}\n" for key, n in sorted(counts.items(), key=lambda item: item[0]))
        return 0
    with open(ceilings_path, encoding="utf-8") as file:
        ceilings = {line.split(None, 1)[1].strip(): int(line.split()[0]) for line in file}
    status = 0
    for key, n in sorted(counts.items()):
        if n > ceilings.get(key, 0):
            print(f"{key}: {n}, at most {ceilings.get(key, 0)} (tests/house/plain.txt)")
            status = 1
    with open("README.md", encoding="utf-8") as file:
        n_lines = len(file.readlines())
    if n_lines > 100:
        print(f"README.md has {n_lines} lines; at most 100")
        status = 1
    # The patterns find what they were written for.
    samples = ["Of a row", "there is none", "the walk goes on here", "so many rows", "behind it", "the one that fits"]
    if not all(any(mark.search(sample) for mark in MARK) for sample in samples):
        print("a pattern no longer finds its own sample")
        status = 1
    if count_conditionals("a = b ? c : d; e = f ? g : h ? i : j;") != 1 or not CAST.match("(const char *)text->data"):
        print("a shape is no longer counted")
        status = 1
    chain = "    whit_status status = a();\n    if (status == WHIT_OK) status = b();\n    return status;\n"
    if not ERRORS["loose chains"].search(chain) or ERRORS["loose chains"].search(chain.replace("    ret", "    f();\n ret")):
        print("a loose chain is no longer found")
        status = 1
    if count_prototypes("extern run_fn a, b;\nint f(int);\nstruct s { int x; };\nstatic inline int g(void)\n{\n}\n") != 4:
        print("prototypes are no longer counted")
        status = 1
    return status


if __name__ == "__main__":
    os.chdir(os.environ.get("SOURCE", "."))
    sys.exit(main())
