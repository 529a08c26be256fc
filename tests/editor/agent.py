# SPDX-License-Identifier: MIT
"""An endpoint for scenes: plays a script of answers, writes edit.conf with its address, ends with the scene's folder."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "agent"))
from endpoint import SEND_SERVER, Endpoint, message, streamed  # noqa: E402

PATCH = """*** Begin Patch
*** Update File: a.c
@@
-int one = 1;
+int one = 2;
@@
-int nine = 9;
+int nine = 10;
*** End Patch
"""
QUESTION = "Which files may go?\n" + "\n".join(f"  file number {i} of the project" for i in range(1, 13)) + "\nOr none?"
patch = streamed("I change two lines.", [("patch_file", {"patch": PATCH})])
MCP = """
import os, sys, time
if len(sys.argv) > 1 and not os.path.exists("begun"):
    open("begun", "w").close()
    time.sleep(60)
""" + SEND_SERVER
SCRIPTS = {
    "several": [message(None, [("patch_file", {"patch": PATCH}),
                               ("write", {"path": ".github/ci.yml", "content": "on: push\n"})]), streamed("Written.")],
    "wide": [message(None, [("write", {"path": "b.c", "content": "int b;" + " " * 60 + "int hidden;\n"})]),
             streamed("Then not.")],
    "server": [message(None, [("mcp__post__send", {"text": "word " * 60 + "the end"})]), streamed("It was sent.")],
    "begins": [message(None, [("mcp__post__send", {"text": "word"})]), streamed("It was sent.")],
    "patch": [patch, streamed("Both are greater now."), streamed("Nothing more.")],
    "ask": [message(None, [("ask", {"question": "Which one?"})]), streamed("As you say.")],
    "red": [message(None, [("write", {"path": ".github/ci.yml", "content": "on: push\n"})]), streamed("Then not.")],
    "unsaved": [message(None, [("read", {"path": "a.c"})]), patch, streamed("Done in the buffer.")],
    "delete": [message(None, [("patch_file", {"patch": "*** Begin Patch\n*** Delete File: a.c\n*** End Patch\n"})]),
               streamed("It is still open.")],
    "rewrite": [streamed("```c\nint one = 11;\n```")],
    "explain": [streamed("It sets one to 1.")],
    "ghost": [(200, json.dumps({"choices": [{"text": t}]}).encode(), {}) for t in ("n a + b;", "n\n\tand this;")],
    "edges": [(200, json.dumps({"choices": [{"text": t}]}).encode(), {})
              for t in ("1;" + " " * 60 + "hidden();", "\n" + "\n".join(f"line {i};" for i in range(1, 6)))],
    "alike": [(200, json.dumps({"choices": [{"text": t}]}).encode(), {})
              for t in ("min = is_\u0430dmin;", "\u0430dmin;", "x\u00a0y;", "\u0434\u0430;")],
    "large": [message(None, [("patch_file", {"patch": "*** Begin Patch\n" + "".join(
        f"*** Delete File: {name}.txt\n" for name in "pqr") + "*** End Patch\n"})]), streamed("Then not.")],
    "pause": [],
    "question": [],
    "slow": [],
    "never": [],
}

if sys.argv[1] in ("server", "begins"):  # the second begins slowly at its first start
    os.makedirs(os.environ["HOME"] + "/.config/whit")
    with open(os.environ["HOME"] + "/.config/whit/agent.json", "w", encoding="utf-8") as config:
        json.dump({"mcp": {"post": {"command": ["python3", "-c", MCP, *(["slow"] if sys.argv[1] == "begins" else [])]}}}, config)
if os.fork():  # the scene waits for the address, and for nothing more
    while not os.path.exists("edit.conf"):
        time.sleep(0.01)
    os._exit(0)
os.setsid()
null = os.open(os.devnull, os.O_RDWR)
for fd in range(3):
    os.dup2(null, fd)
endpoint = Endpoint(SCRIPTS[sys.argv[1]])
if sys.argv[1] in ("pause", "question"):  # between what it says and its change or its long question
    call = ("ask", {"question": QUESTION}) if sys.argv[1] == "question" else ("patch_file", {"patch": PATCH})

    def pause(self):
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        text = streamed("Two lines:\n  greater", [call], n=300)[1]
        if b"the answer" in asked:
            text = streamed("As you say.", n=300)[1]
        for event in text.split(b"\n\n"):
            self.wfile.write(event + b"\n\n")
            self.wfile.flush()
            while b"greater" in event and not os.path.exists("go"):
                time.sleep(0.01)
        self.close_connection = True

    endpoint.server.RequestHandlerClass.do_POST = pause
if sys.argv[1] == "slow":  # takes the question and says nothing
    endpoint.server.RequestHandlerClass.do_POST = lambda self: time.sleep(30)
if sys.argv[1] == "never":  # is not to be asked
    endpoint.server.RequestHandlerClass.do_POST = lambda self: open("asked", "w").close()
with open("edit.new", "w") as file:
    file.write(f"model_url = {endpoint.url}\nmodel_name = m\n" + "".join(x + "\n" for x in sys.argv[2:]))
os.rename("edit.new", "edit.conf")
here = os.stat("edit.conf").st_ino
for _ in range(6000):
    time.sleep(0.1)
    try:
        if os.stat("edit.conf").st_ino != here:
            break
    except OSError:
        break
