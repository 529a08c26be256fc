# SPDX-License-Identifier: MIT
"""Calls and includes of C as the code graph and as clangd see them: precision and recall.

    python3 bench/graph_clangd.py build/bench/graph_edges FOLDER [FLAG...]

clangd opens every C file at the top of FOLDER with the flags, and is asked for the callers of each function that
one of them defines, and for what each includes. Edges are (callee, calling function, its file). The graph
reads both sides of an #if: "seen by both" leaves out its edges from functions, and includes from lines, that clangd does not
see with these flags; the first line counts them against it."""
import json
import os
import subprocess
import sys
import tempfile

EDGES, FOLDER, FLAGS = os.path.abspath(sys.argv[1]), os.path.realpath(sys.argv[2]), sys.argv[3:]
files = sorted(f for f in os.listdir(FOLDER) if f.endswith(".c") and not f.startswith("test"))
commands = tempfile.mkdtemp()
with open(commands + "/compile_commands.json", "w") as out:
    json.dump([{"directory": FOLDER, "file": f, "arguments": ["clang", *FLAGS, "-c", f]} for f in files], out)
server = subprocess.Popen(["clangd", "--background-index=false", f"--compile-commands-dir={commands}", "-j=2", "--log=error", "--limit-results=0"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
number, diagnosed, texts = 0, {}, {}


def send(method, params, wanted=True):
    global number
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    if wanted:
        number += 1
        message["id"] = number
    body = json.dumps(message).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    server.stdin.flush()
    return receive(number) if wanted else None


def receive(wanted):
    while True:
        size = 0
        while (line := server.stdout.readline().strip()):
            if line.lower().startswith(b"content-length:"):
                size = int(line[15:])
        message = json.loads(server.stdout.read(size))
        if message.get("method") == "textDocument/publishDiagnostics":
            errors = [d["message"] for d in message["params"]["diagnostics"] if d.get("severity") == 1]
            diagnosed[message["params"]["uri"]] = errors
            if wanted is None:
                return None
        if wanted is not None and message.get("id") == wanted and "method" not in message:
            return message.get("result")


def uri(name):
    return "file://" + os.path.join(FOLDER, name)


def functions(symbols):
    for s in symbols or []:
        if s["kind"] == 12 and s["range"]["end"]["line"] >= s["range"]["start"]["line"]:
            yield s
        yield from functions(s.get("children"))


def is_call(callee, name, r):
    """clangd tells every reference, also by macros: a call is one that is written there, with a bracket behind it. (In
    the graph, what a macro calls is the macro's.)"""
    if name not in texts:
        texts[name] = open(os.path.join(FOLDER, name), errors="replace").read().split("\n")
    if texts[name][r["start"]["line"]][r["start"]["character"]:r["end"]["character"]] != callee:
        return False
    rest = texts[name][r["end"]["line"]][r["end"]["character"]:].lstrip()
    return rest.startswith("(") or (not rest and texts[name][r["end"]["line"] + 1].lstrip().startswith("("))


def relative(path):
    path = os.path.realpath(path)
    return os.path.relpath(path, FOLDER) if path.startswith(FOLDER + "/") else None


send("initialize", {"processId": os.getpid(), "rootUri": "file://" + FOLDER,
                    "capabilities": {"textDocument": {"documentSymbol": {"hierarchicalDocumentSymbolSupport": True}}}})
send("initialized", {}, False)
for f in files:
    text = open(os.path.join(FOLDER, f), errors="replace").read()
    send("textDocument/didOpen", {"textDocument": {"uri": uri(f), "languageId": "c", "version": 1, "text": text}}, False)
    while uri(f) not in diagnosed:
        receive(None)
broken = {f for f in files if diagnosed[uri(f)]}
print(f"{len(files)} files, {len(broken)} that clangd cannot parse whole are left out: {sorted(broken)}", file=sys.stderr)
files = [f for f in files if f not in broken]
theirs, callees, includes, callers = set(), set(), set(), set()
for f in files:
    for link in send("textDocument/documentLink", {"textDocument": {"uri": uri(f)}}) or []:
        target = relative(link["target"].removeprefix("file://"))
        if target:
            includes.add((f, target))
    for s in functions(send("textDocument/documentSymbol", {"textDocument": {"uri": uri(f)}})):
        callers.add((s["name"], f))
        at = {"textDocument": {"uri": uri(f)}, "position": s["selectionRange"]["start"]}
        for item in send("textDocument/prepareCallHierarchy", at) or []:
            callees.add(item["name"])
            for call in send("callHierarchy/incomingCalls", {"item": item}) or []:
                where = relative(call["from"]["uri"].removeprefix("file://"))
                if where in files and any(is_call(item["name"], where, r) for r in call["fromRanges"]):
                    theirs.add((item["name"], call["from"]["name"], where))
server.kill()
ours, our_includes = set(), set()
for line in subprocess.run([EDGES, FOLDER], capture_output=True, text=True, check=True).stdout.splitlines():
    kind, *words = line.split(" ")
    if kind == "C" and words[0] in callees and words[2] in files:
        ours.add(tuple(words))
    if kind == "I" and words[0] in files:
        our_includes.add(tuple(words))
seen = {e for e in ours if (e[1], e[2]) in callers}
for name, a, b in (("calls", ours, theirs), ("calls, seen by both", seen, theirs), ("includes", our_includes, includes)):
    both = len(a & b)
    print(f"{name}: clangd {len(b)}, graph {len(a)}, both {both}: precision {100 * both / max(1, len(a)):.2f} %, recall {100 * both / max(1, len(b)):.2f} %")
if "-v" in os.environ.get("GRAPH_CLANGD", ""):
    for title, edges in (("only the graph", seen - theirs), ("only clangd", theirs - ours)):
        for edge in sorted(edges)[::10][:80]:
            print(title, *edge)
