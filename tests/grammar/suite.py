# SPDX-License-Identifier: MIT
"""The JSON Schema test suite: which of its schemas are taken, and whether an instance that is not valid may be written.

    suite.py ACCEPT FOLDER [-v] [--required]

FOLDER holds the tests of one draft; --required leaves out its optional ones. Members of an object are written in a schema's order, so that instances are tried in
every order of theirs. Prints counts: schemas, taken, unsound (invalid instances that may be written), instances that are
valid and may be written."""
import itertools
import json
import os
import sys

from accept import Grammars


def orders(value):
    """The value with its members in every order, also those of its members and elements, up to a bound."""
    if isinstance(value, list):
        return [list(c) for c in itertools.islice(itertools.product(*map(orders, value)), 24)]
    if not isinstance(value, dict):
        return [value]
    found = []
    for names in itertools.islice(itertools.permutations(value), 24):
        for values in itertools.islice(itertools.product(*(orders(value[name]) for name in names)), 24):
            found.append(dict(zip(names, values)))
    return found


def texts(value):
    return {json.dumps(v, ensure_ascii=plain, separators=(",", ":"))
            for v in itertools.islice(orders(value), 200) for plain in (False, True)}


def is_written(grammars, value):
    return any(grammars.takes(text) for text in texts(value) if "\\ud" not in text or text.isascii())


def run(program, folder, verbose, required):
    grammars, counts = Grammars(program), {"schemas": 0, "taken": 0, "unsound": 0, "valid": 0, "written": 0}
    for place, _, names in sorted(os.walk(folder)):
        if required and "optional" in place:
            continue
        for name in sorted(names):
            with open(os.path.join(place, name), encoding="utf-8") as file:
                groups = json.load(file)
            for group in groups:
                counts["schemas"] += 1
                refused = grammars.open(group["schema"])
                where = f"{os.path.relpath(os.path.join(place, name), folder)}: {group['description']}"
                if refused:
                    if verbose:
                        print("refused:", where, "|", refused)
                    continue
                counts["taken"] += 1
                for test in group["tests"]:
                    try:
                        written = is_written(grammars, test["data"])
                    except UnicodeEncodeError:  # a lone surrogate
                        continue
                    counts["valid"] += test["valid"]
                    counts["written"] += test["valid"] and written
                    if written and not test["valid"]:
                        counts["unsound"] += 1
                        print("UNSOUND:", where, "|", test["description"], "|", json.dumps(test["data"])[:200])
                    if verbose and test["valid"] and not written:
                        print("not written:", where, "|", test["description"], "|", json.dumps(test["data"])[:120])
    return counts


if __name__ == "__main__":
    result = run(sys.argv[1], sys.argv[2], "-v" in sys.argv, "--required" in sys.argv)
    print(json.dumps(result))
