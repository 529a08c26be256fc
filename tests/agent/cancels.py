# SPDX-License-Identifier: MIT
"""A person ends a task: nothing that the same answer asks for later is done, whatever is allowed."""
import json
import os
import shutil
import sys

import acp
import checks
from checks import environment, wanted
from endpoint import Endpoint, at_terminal, message

WHIT = sys.argv[1]
SERVER = r'''
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize": r = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    elif m["method"] == "tools/list": r = {"tools": [{"name": "go", "description": "Goes.", "inputSchema": {"type": "object", "properties": {}}}]}
    else:
        open(sys.argv[1], "a").write("called\n")
        r = {"content": [{"type": "text", "text": "ok"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
'''


def project(servers=None):
    for folder in ("p", "state", "cache", "config", "home", "called"):
        shutil.rmtree(folder, ignore_errors=True)
    for folder in ("p", "home", "called", "config/whit"):
        os.makedirs(folder)
    json.dump({"mcp": servers or {}}, open("config/whit/agent.json", "w"))


def server(name, **more):
    return {"command": ["python3", os.path.abspath("server.py"), os.path.abspath(f"called/{name}")], **more}


def interrupted(calls, question):
    endpoint = Endpoint([message(None, calls), message("done")])
    status, seen = at_terminal([WHIT, "agent", "-p", "x", "--url", endpoint.url, "--project", "p", "--yes"],
                               [(question, "\x03"), (question, "y\n")], environment())
    endpoint.server.shutdown()
    wanted(status != 0 and "interrupted" in seen and len(endpoint.requests) == 1, f"Ctrl-C: {status}, {seen}")
    return seen


open("server.py", "w").write(SERVER)
WRITE = ("write", {"path": "new", "content": "x\n"})

# Ctrl-C at a question: a change before it and a change after it are not written.
for calls in ([("ask", {"question": "which one?"}), WRITE], [WRITE, ("ask", {"question": "which one?"})]):
    project()
    seen = interrupted(calls, "which one?")
    wanted(not os.path.exists("p/new") and "turn 1" not in seen, f"written after Ctrl-C: {seen}")

# A call that needs no question is not made after one that was ended, and nothing is asked again.
project({"red": server("red"), "green": server("green", allow="green")})
seen = interrupted([("mcp__red__go", {}), ("mcp__green__go", {}), ("mcp__red__go", {}), ("run", {"command": "true"})], "Do it?")
wanted(os.listdir("called") == [] and seen.count("Do it?") == 1, f"called after Ctrl-C: {os.listdir('called')}, {seen}")

# An editor cancels while it is asked.
project()
red = server("red")
editor = acp.Editor(WHIT, environment(), [message(None, [("mcp__red__go", {}), WRITE]), message("done")], "--yes")
editor.say_yes = None
editor.result("initialize", protocolVersion=1)
session = editor.result("session/new", cwd=os.path.abspath("p"), mcpServers=[
    {"name": "red", "command": red["command"][0], "args": red["command"][1:], "env": []}])["sessionId"]
number = editor.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "x"}])
wanted(editor.has_asked.wait(600), "the editor is not asked")
editor.send({"method": "session/cancel", "params": {"sessionId": session}})
answer = editor.answer()
wanted(answer["id"] == number and answer["result"]["stopReason"] == "cancelled", f"the end: {answer}")
wanted(not os.path.exists("p/new") and os.listdir("called") == [], "written after session/cancel")
editor.end()
sys.exit(checks.failed)
