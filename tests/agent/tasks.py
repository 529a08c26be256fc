# SPDX-License-Identifier: MIT
"""Forty-five tasks of `whit agent -p`, most against scripted endpoints, some against `whit serve`: each ends with the tree
as it should be, or with one clear line and the tree as it was."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys

from endpoint import Endpoint, message, streamed

WHIT = sys.argv[1]
SOURCE = "#include <stdio.h>\n\nint twice(int n)\n{\n    return n + n;\n}\n\nint main(void)\n{\n    printf(\"%d\\n\", twice(4));\n}\n"
LIST = "alpha\nbeta\ngamma\nbeta\n"
env = dict(os.environ, no_proxy="*", HOME=os.path.abspath("home"))
for name in ("STATE", "CACHE", "CONFIG"):
    env[f"XDG_{name}_HOME"] = os.path.abspath(name.lower())


def blocks(path, *pairs):
    return "".join(f"{path}\n<<<<<<< SEARCH\n{a}=======\n{b}>>>>>>> REPLACE\n" for a, b in pairs)


def patch(text, **more):
    return [("patch_file", dict(patch=text, **more))]


def write(path, text):
    return ("write", {"path": path, "content": text})


TWO = SOURCE.replace("n + n", "2 * n")
ONE_LINE = blocks("a.c", ("    return n + n;\n", "    return 2 * n;\n"))
BEGIN = "*** Begin Patch\n*** Update File: a.c\n@@\n-    return n + n;\n+    return 2 * n;\n*** End Patch\n"
UNIFIED = "--- a/a.c\n+++ b/a.c\n@@ -4,3 +4,3 @@\n {\n-    return n + n;\n+    return 2 * n;\n }\n"
END = message("done")
NO_TOOLS = (400, b'{"error":{"message":"m does not support tools"}}', {})


def calls(*all_calls):
    return message(None, list(all_calls))


# name: answers, files afterwards that differ from before, what the last result or the line says, further options, status
TASKS = {
    # What models write, in every notation, streamed or whole.
    "search and replace": ([calls(*patch(ONE_LINE)), END], {"a.c": TWO}, "turn 1"),
    "begin patch": ([calls(*patch(BEGIN)), END], {"a.c": TWO}, "turn 1"),
    "unified diff": ([calls(*patch(UNIFIED)), END], {"a.c": TWO}, "turn 1"),
    "a fenced patch without a call": ([message("So:\n\n```patch\n" + ONE_LINE + "```\n"), END], {"a.c": TWO}, "turn 1"),
    "a fenced diff without a call": ([message("```diff\n" + UNIFIED + "```\n"), END], {"a.c": TWO}, "turn 1"),
    "streamed in pieces": ([streamed("I see.", patch(ONE_LINE)), streamed("done")], {"a.c": TWO}, "turn 1"),
    "streamed a byte at a time": ([streamed("", patch(BEGIN), n=1, line="\r\n"), streamed("done", n=1)], {"a.c": TWO}, "turn 1"),
    "blanks at line ends": ([calls(*patch(ONE_LINE.replace("n + n;\n", "n + n;  \n"))), END], {"a.c": TWO}, "turn 1"),
    "another indentation": ([calls(*patch(blocks("a.c", ("return n + n;\n", "return 2 * n;\n")))), END], {"a.c": TWO}, "turn 1"),
    "a path beside the hunk": ([calls(*patch("@@\n-    return n + n;\n+    return 2 * n;\n", path="a.c")), END], None, None),
    "two files in one answer": ([calls(*patch(ONE_LINE), write("b.c", "int b;\n")), END], {"a.c": TWO, "b.c": "int b;\n"}, "2 files"),
    "two turns": ([calls(*patch(ONE_LINE)), calls(write("b.c", "int b;\n")), END], {"a.c": TWO, "b.c": "int b;\n"}, "turn 2"),
    "a folder that is not there yet": ([calls(write("x/y/z.c", "int z;\n")), END], {"x/y/z.c": "int z;\n"}, "turn 1"),
    "an edit of what the answer itself wrote": ([calls(write("b.c", "int b;\n"), *patch(blocks("b.c", ("int b;\n", "int c;\n")))), END],
                                                {"b.c": "int c;\n"}, "1 file"),
    # Reading before writing.
    "read, then change": ([calls(("read", {"path": "a.c"})), calls(*patch(ONE_LINE)), END], {"a.c": TWO}, "turn 1"),
    "grep, then change": ([calls(("grep", {"pattern": "n [+] n"})), calls(*patch(ONE_LINE)), END], {"a.c": TWO}, "turn 1"),
    "the graph, then change": ([calls(("graph", {"query": "def", "name": "twice"})), calls(*patch(ONE_LINE)), END], {"a.c": TWO}, "turn 1"),
    "run, then change": ([calls(("run", {"command": "cat a.c | wc -l"})), calls(*patch(ONE_LINE)), END], {"a.c": TWO}, "turn 1"),
    "eight reads in one answer": ([calls(*[("read", {"path": "a.c", "first": i, "last": i}) for i in range(1, 9)]), END], {}, None),
    # Mistakes that the model hears of, and mends.
    "stale, then right": ([calls(*patch(ONE_LINE.replace("n + n", "n * n"))), calls(*patch(ONE_LINE)), END], {"a.c": TWO}, "turn 1"),
    "ambiguous, then right": ([calls(*patch(blocks("list", ("beta\n", "delta\n")))), calls(*patch(blocks("list", ("gamma\nbeta\n", "gamma\ndelta\n")))), END],
                              {"list": LIST[:-5] + "delta\n"}, "turn 1"),
    "already applied": ([calls(*patch(UNIFIED)), calls(*patch(UNIFIED)), END], {"a.c": TWO}, "already have this content"),
    "a bracket too few, then right": ([calls(*patch(ONE_LINE.replace("2 * n;", "2 * (n;"))), calls(*patch(ONE_LINE)), END], {"a.c": TWO}, "turn 1"),
    "arguments that are no JSON, then right": ([calls(("patch_file", '{"patch": "')), calls(*patch(ONE_LINE)), END], {"a.c": TWO}, "turn 1"),
    "an invented tool, then right": ([calls(("edit_file", {"x": 1})), calls(*patch(ONE_LINE)), END], {"a.c": TWO}, "turn 1"),
    "a wrong type, then right": ([calls(("read", {"path": ["a.c"]})), calls(*patch(ONE_LINE)), END], {"a.c": TWO}, "turn 1"),
    "a file that is not there": ([calls(("read", {"path": "none.c"})), END], {}, "there is no such file"),
    # Endpoints that stumble.
    "429 first": ([(429, b"slow", {"Retry-After": "0"}), calls(*patch(ONE_LINE)), END], {"a.c": TWO}, "turn 1"),
    "503 and a cut connection first": ([(503, b"", {"Retry-After": "0"}), "cut", calls(*patch(ONE_LINE)), END], {"a.c": TWO}, "turn 1"),
    "a stream that breaks off once": ([streamed("", patch(ONE_LINE), cut=300), streamed("", patch(ONE_LINE)), END], {"a.c": TWO}, "turn 1"),
    "an answer of 1 MB": ([message("x" * (1 << 20))], {}, None),
    "an answer over 8 MB": ([(200, b" " * (9 << 20), {})], {}, "is larger than", 4),
    "JSON that is none": ([(200, b'{"choices": [', {})], {}, "is not JSON", 3),
    "a bad key": ([(401, b'{"error": "bad key"}', {})], {}, "401", 5),
    "calls without an end": ([calls(("list", {}))] * 9, {}, "not finished", 4),
    # Endpoints that take no tools hear of them in words.
    "no tools, a call in words": ([NO_TOOLS, message('{"tool":"read","arguments":{"path":"a.c"}}'),
                                   message("So:\n```json\n" + json.dumps({"tool": "patch_file", "arguments": {"patch": ONE_LINE}}) + "\n```\n"),
                                   message('{"answer":"done"}')], {"a.c": TWO}, "turn 1"),
    "no tools, two calls in one answer": ([NO_TOOLS, streamed('{"tool":"list","arguments":{}}\n' + json.dumps({"tool": "write", "arguments": {"path": "b.c", "content": "int b;\n"}})),
                                           message("done")], {"b.c": "int b;\n"}, "turn 1"),
    "no tools, a fenced patch": ([NO_TOOLS, message("```patch\n" + ONE_LINE + "```\n"), END], {"a.c": TWO}, "turn 1"),
    "no tools, and an answer without a message": ([NO_TOOLS, (200, b'{"choices":[7]}', {})], {}, "no choices[0].message", 3),
    "no tools, and then a bad key": ([NO_TOOLS, (401, b"bad key", {})], {}, "401", 5),
    # What is not allowed stays undone, however it is asked for.
    "out of the project": ([calls(write("../outside", "x")), END], {}, "error:"),
    "a test with fewer checks": ([calls(write("test_a.c", "int main(void) { return 0; }\n")), END], {}, "refused"),
    # whit serve: the built-in model takes no tools; a tiny one that does has nothing to say, and changes nothing.
    "whit serve, a model without tools": ("built-in", {}, None),
    "whit serve, a question": ("tiny", {}, None),
    "whit serve, another model's name": ("tiny", {}, None, 0, "--model", "gpt-nothing"),
}
BEFORE = {"a.c": SOURCE, "list": LIST, "test_a.c": "int main(void) { assert(1); assert(2); }\n"}
failed = 0
EXPECTED_ERRORS = {"a path beside the hunk"}


def complain(name, text):
    global failed
    failed = 1
    print(f"FAILED: {name}: {text}")


def tree():
    found = {}
    for folder, _, names in os.walk("p"):
        for one in names:
            path = os.path.join(folder, one)
            found[os.path.relpath(path, "p")] = open(path).read()
    return found


TEMPLATE = """{%- for tool in tools or [] %}{{- tool | tojson }}{%- endfor %}
{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') }}
{%- for call in message.tool_calls or [] %}{{- '<tool_call>' + ({'name': call.function.name, 'arguments': call.function.arguments} | tojson) + '</tool_call>' }}
{%- endfor %}{{- '<|im_end|>\\n' }}{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""


def start_server(*options):
    server = subprocess.Popen([WHIT, "serve", "--port", "0", "--parallel", "1", "-t", "1", *options], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    for line in server.stdout:
        where = re.search(r"http://[0-9.]+:\d+", line)
        if where:
            return server, where.group(0) + "/v1"
    sys.exit("FAILED: whit serve does not say where it listens")


open("tools.jinja", "w").write(TEMPLATE)
subprocess.run([os.environ["BUILD"] + "/tests/make_folder", "qwen3-0.6b", "tools_model", "--layers", "1", "--divide", "8", "--vocab", "300",
                "--template", "tools.jinja"], check=True, stdout=subprocess.DEVNULL)
servers = {"built-in": start_server(), "tiny": start_server("-m", "tools_model", "-c", "8192")}
try:
    ends = {"right": 0, "line": 0}
    for name, (answers, changed, words, *more) in TASKS.items():
        status, options = (more[0], more[1:]) if more else (0, [])
        for folder in ("p", "state", "cache", "config", "home"):
            shutil.rmtree(folder, ignore_errors=True)
        os.makedirs("p")
        for path, text in BEFORE.items():
            open("p/" + path, "w").write(text)
        endpoint = Endpoint(answers) if isinstance(answers, list) else None
        done = subprocess.run([WHIT, "agent", "-p", "Once upon a time", "--url", endpoint.url if endpoint else servers[answers][1], "--model", "m",
                               "--project", "p", "--allow", "yellow", "--max-turns", "8", *options],
                              env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, start_new_session=True, timeout=600)
        last = ""
        if endpoint:
            endpoint.server.shutdown()
            told = [m for m in endpoint.requests[-1]["messages"][2:] if m["role"] in ("tool", "user")]
            last = "\n".join(m["content"] for m in told[-8:])
        lines = [x for x in done.stderr.splitlines() if x.startswith("whit agent:")]
        if done.returncode != status:
            complain(name, f"status {done.returncode}, not {status}: {done.stderr}")
        if status and len(lines) != 1:
            complain(name, f"not one line: {done.stderr}")
        if words and words not in (lines[0] if status and lines else last):
            complain(name, f"'{words}' is not said: {lines} {last}")
        if name in EXPECTED_ERRORS:  # either it is written, or the model is told
            if tree() not in (BEFORE, dict(BEFORE, **{"a.c": TWO})) or not last:
                complain(name, f"{tree()}")
        elif tree() != dict(BEFORE, **changed):
            complain(name, f"the tree: {tree()}")
        ends["line" if status else "right"] += 1
        if os.path.exists("outside"):
            complain(name, "written outside")
    print(f"{len(TASKS)} tasks: {ends['right']} end right, {ends['line']} with one line")
    if len(TASKS) != 45:
        complain("all", f"there are {len(TASKS)}")
finally:
    for server, _ in servers.values():
        server.send_signal(signal.SIGTERM)
    for server, _ in servers.values():
        server.wait(timeout=600)
sys.exit(failed)
