# SPDX-License-Identifier: MIT
"""A grammar's language by whole texts: the driver of grammar_accept, and tables of texts that are taken and refused.

    accept.py ACCEPT FILE.jsonl...

Each line of a file: {"schema" or "schema_text", "accept": [text...], "refuse": [text...]}, or where the schema is to be
refused {"schema", "path": the place that is named}. FILE.json is a recorded request: its schemas are taken."""
import json
import subprocess
import sys


class Grammars:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().decode("utf-8", "replace").rstrip("\n")

    def open(self, schema):
        """None where the schema is taken, else the reason."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        answer = self.ask("S " + text.replace("\n", " "))
        return None if answer == "OK" else answer.removeprefix("REFUSED ")

    def takes(self, text):
        return self.ask("A " + text) == "1"

    def answers(self, n, seed):
        first = self.ask(f"R {n} {seed}")
        lines = []
        while first != ".":
            lines.append(first)
            first = self.process.stdout.readline().decode("utf-8", "replace").rstrip("\n")
        return lines


def check_table(grammars, rows):
    """Compares every row; returns the number of differences."""
    wrong = 0
    for row in rows:
        schema = row.get("schema_text", row.get("schema"))
        refused = grammars.open(schema)
        if "path" in row:
            if not (refused or "").startswith(f"schema: {row['path']}: "):
                print("FAILED:", schema, "should be refused at", row["path"], "but:", refused)
                wrong += 1
            continue
        if refused:
            print("FAILED:", schema, "is refused:", refused)
            wrong += 1
            continue
        for text, wanted in [(t, True) for t in row["accept"]] + [(t, False) for t in row["refuse"]]:
            if grammars.takes(text) != wanted:
                print("FAILED:", schema, "must", "take" if wanted else "not take", text)
                wrong += 1
    return wrong


def schemas_of(value):
    """The schemas within a recorded request."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("schema", "input_schema", "parameters"):
                yield inner
            else:
                yield from schemas_of(inner)
    if isinstance(value, list):
        for inner in value:
            yield from schemas_of(inner)


if __name__ == "__main__":
    driver, failed = Grammars(sys.argv[1]), 0
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            if path.endswith(".json"):
                requested = list(schemas_of(json.load(file)))
                failed += not requested or check_table(driver, [{"schema": s, "accept": [], "refuse": []} for s in requested])
                print(path, len(requested), "schemas")
                continue
            table = [json.loads(line) for line in file if line.strip()]
        failed += check_table(driver, table)
        print(path, len(table), "schemas")
    sys.exit(1 if failed else 0)
