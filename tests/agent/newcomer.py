# SPDX-License-Identifier: MIT
"""The first hour with an agent: it finds a model, says what it does, and takes every answer to its questions."""
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time

import checks
from acp import Editor
from checks import wanted
from endpoint import Endpoint, Withheld, at_terminal, message, streamed

WHIT = sys.argv[1]


def environment(**more):
    env = dict(os.environ, no_proxy="*", HOME=os.path.abspath("home"), WHIT_PORT="1", OLLAMA_HOST="127.0.0.1:1",
               **{"TERM": "xterm", "LC_ALL": "C.UTF-8", **more})
    for name in ("STATE", "CACHE", "CONFIG"):
        env[f"XDG_{name}_HOME"] = os.path.abspath(name.lower())
    return env


def project():
    for folder in ("p", "state", "cache", "config", "home"):
        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs("p/src")
    os.makedirs("home")
    open("p/src/a.c", "w").write("int a;\n")


def read(name="src/a.c"):
    return open(f"p/{name}").read()


def write(text, path="src/a.c"):
    return message(None, [("write", {"path": path, "content": text})])


def results(endpoint, i=-1):
    return [m["content"] for m in endpoint.requests[i]["messages"] if m["role"] == "tool"]


def at(answers, keys, *more, **variables):
    endpoint = Endpoint(answers)
    status, seen = at_terminal([WHIT, "agent", "--url", endpoint.url, "--project", "p", *more], keys, environment(**variables))
    endpoint.server.shutdown()
    return status, seen, endpoint


def script(answers, lines, *more, url=True, **variables):
    endpoint = Endpoint(answers)
    where = ["--url", endpoint.url] if url else []
    done = subprocess.run([WHIT, "agent", "--project", "p", *where, *more], input=lines, env=environment(**variables),
                          capture_output=True, text=True, start_new_session=True, timeout=600)
    endpoint.server.shutdown()
    return done, endpoint


END = message("done")

# ---- a task stands alone, and a server of this machine is found
for variable, form in (("WHIT_PORT", "{}"), ("OLLAMA_HOST", "127.0.0.1:{}"), ("OLLAMA_HOST", "http://localhost:{}")):
    project()
    endpoint = Endpoint([END])
    port = str(endpoint.server.server_port)
    env = dict(environment(), **{variable: form.format(port)})
    done = subprocess.run([WHIT, "agent", "fix the bug", "--project", "p"], env=env, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, start_new_session=True, timeout=600)
    wanted(done.returncode == 0 and done.stdout == "done\n", f"{variable}: {done}")
    wanted(f"the model is first at http://127.0.0.1:{port}/v1" in done.stderr and "--model NAME" in done.stderr, f"{variable}: {done.stderr}")
    wanted(endpoint.requests[0]["model"] == "first" and endpoint.requests[0]["messages"][-1]["content"] == "fix the bug", "the task")
    endpoint.server.shutdown()
# The name of a model is text of the server: it makes no lines and colours of its own.
project()
endpoint = Endpoint([END])
endpoint.models = ["\x1b[2Ja\nwhit: agreed\u202e"]
done = subprocess.run([WHIT, "agent", "-p", "x", "--project", "p"], env=dict(environment(), WHIT_PORT=str(endpoint.server.server_port)),
                      capture_output=True, text=True, stdin=subprocess.DEVNULL, start_new_session=True, timeout=600)
wanted("the model is <U+001B>[2Ja<U+000A>whit: agreed<U+202E> at" in done.stderr, f"a model's name: {done.stderr}")
endpoint.server.shutdown()
# The person's key goes to the person's own server alone; another user's server is not asked.
if os.getuid() == 0 and os.path.exists("/proc/net/tcp"):
    for uid, status, key in ((0, 0, "Bearer sk-mine"), (123, 0, None), (54321, 2, None)):
        project()
        os.seteuid(uid)  # a socket belongs to the user who makes it
        endpoint = Endpoint([END])
        os.seteuid(0)
        env = dict(environment(WHIT_API_KEY="sk-mine"), WHIT_PORT=str(endpoint.server.server_port))
        done = subprocess.run([WHIT, "agent", "fix the bug", "--project", "p"], env=env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, start_new_session=True, timeout=600)
        wanted(done.returncode == status and len(endpoint.requests) == (status == 0), f"a server of user {uid}: {done}")
        wanted([h.get("Authorization") for h in endpoint.headers] == [key] * (status == 0), f"user {uid}: {endpoint.headers}")
        wanted(("another user of this machine" in done.stderr) == (status == 2), f"user {uid}: {done.stderr}")
        endpoint.server.shutdown()


class Turned(Endpoint):
    """The person's own server; then, at the same port, a server of another user."""

    def turn(self):
        port = self.server.server_port
        self.server.shutdown()
        self.server.server_close()
        handler = self.server.RequestHandlerClass
        os.seteuid(54321)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
        os.seteuid(0)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


class Turning(list):
    """Answers, of which each comes when another user's server is at the port already."""

    def __init__(self, endpoint, answers):
        super().__init__(answers)
        self.endpoint = endpoint

    def pop(self, i):
        self.endpoint.turn()
        return super().pop(i)


# That is looked at before each request: the server may have been replaced since it was found.
if os.getuid() == 0 and os.path.exists("/proc/net/tcp"):
    project()
    endpoint = Turned([END, END, END])
    env = dict(environment(WHIT_API_KEY="sk-mine"), WHIT_PORT=str(endpoint.server.server_port))
    status, seen = at_terminal([WHIT, "agent", "--project", "p"],
                               [("agent>", "one\n"), ("agent>", "two\n", endpoint.turn), ("agent>", "/bye\n")], env)
    wanted(len(endpoint.requests) == 1 and "another user of this machine" in seen, f"a server that was replaced: {seen}")
    endpoint.server.shutdown()
    project()
    endpoint = Turned([END, END, END])
    env["WHIT_PORT"] = str(endpoint.server.server_port)
    editor = Editor(WHIT, env, None)
    session = editor.result("session/new", cwd=os.path.abspath("p"), mcpServers=[])["sessionId"]
    editor.task(session, "one")
    endpoint.turn()
    said = editor.refusal("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "two"}])
    wanted(len(endpoint.requests) == 1 and "another user of this machine" in said, f"a replaced server in an editor: {said}")
    said = editor.refusal("session/new", cwd=os.path.abspath("p"), mcpServers=[])
    wanted(len(endpoint.requests) == 1 and "no server answers" in said, f"a session after that: {said}")
    editor.end()
    endpoint.server.shutdown()
    # A task of -j looks, too, before it goes on.
    project()
    endpoint = Turned([])
    endpoint.answers = Turning(endpoint, [message(None, [("read", {"path": "src/a.c"})]), END])
    env["WHIT_PORT"] = str(endpoint.server.server_port)
    done = subprocess.run([WHIT, "agent", "-j", "1", "--project", "p", "do it"], env=env, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, start_new_session=True, timeout=600)
    wanted(len(endpoint.requests) == 1 and "another user of this machine" in done.stderr, f"a task after that: {done}")
    endpoint.server.shutdown()
project()
for words in (["fix", "the", "bug"], ["fix the bug"]):
    done, e = script([END], "", *words)
    wanted(e.requests[0]["messages"][-1]["content"] == "fix the bug", f"{words}: {done.stderr}")
done, e = script([], "", "dance")
wanted(done.returncode == 2 and "-p dance" in done.stderr and not e.requests, f"one word: {done.stderr}")
done, e = script([], "", "fix it", url=False)
wanted(done.returncode == 2 and "-m MODEL" in done.stderr and "docs/use/agent.md" in done.stderr, f"no server: {done.stderr}")
done = subprocess.run([WHIT, "agent", "log", "--project", "p"], env=environment(), capture_output=True, text=True)
wanted(done.returncode == 0 and "no turns yet" in done.stderr, f"an empty log: {done.stderr}")

# ---- the editor finds the same server, writes after the answer, takes it back, and says where keys go in its panel
project()
os.makedirs("config/whit")
open("config/whit/edit.conf", "w").write("find_servers = no\n")
endpoint = Endpoint([write("int b;\n"), streamed("Renamed.")])
env = dict(environment(), WHIT_PORT=str(endpoint.server.server_port))
os.chdir("p")


def later():
    time.sleep(0.4)  # a key right after a question is not taken for the answer


def unchanged():
    later()
    wanted(open("src/a.c").read() == "int b;\n", "the editor's agent wrote another text")


status, seen = at_terminal([WHIT, "edit", "src/a.c"], [("1:1  0%", "\x1b[20~"), ("Task:", "rename it\r"), ("y yes, n no", "y", later),
                                                       ("done: 1 turn", "x", later), ("M-w goes to the text", "\x1b[21~", unchanged),
                                                       ("turn 1 is undone", "\x11", later)], env)
os.chdir("..")
wanted(status == 0 and "the model is first at http://127.0.0.1:" in seen and read() == "int a;\n", f"the editor: {status} {seen!r}")
wanted(len(endpoint.requests) == 2 and endpoint.requests[0]["model"] == "first", f"the editor's model: {endpoint.requests}")
endpoint.server.shutdown()

# ---- what is read is named, on a line of its own
project()
status, seen, e = at([streamed("I look at it.", [("read", {"path": "src/a.c", "first": 1, "last": 9}), ("grep", {"pattern": "x\x1b[2J", "path": "src"})]),
                      streamed("The end.")], [], "look at it")
wanted(status == 0 and "I look at it.\r\nwhit: reads src/a.c, lines 1 to 9" in seen, f"named: {seen!r}")
wanted("searches for x<U+001B>[2J in src" in seen and "\x1b[2J" not in seen, f"named: {seen!r}")

# ---- every answer to the question
project()
status, seen, e = at([write("int b;\n"), END], [("[y/N/e/?]", "?\n"), ("[y/N/e/?]", "x\n"), ("[y/N/e/?]", "Yes\n")], "rename it")
wanted(status == 0 and read() == "int b;\n", f"?, a slip and yes: {seen}")
wanted("y   yes" in seen and "told to the model" in seen and "one of the letters" in seen, f"explained: {seen}")
wanted("\x1b[32m+int b;\x1b[0m" in seen and "\x1b[31m-int a;\x1b[0m" in seen, f"colours: {seen!r}")
project()
for said, why in (("n keep the name\n", "keep the name"), ("no, keep it\n", "keep it"), ("please call it c\n", "please call it c"), ("\n", "")):
    status, seen, e = at([write("int b;\n"), END], [("[y/N/e/?]", said)], "rename it", NO_COLOR="1")
    told = results(e)[0]
    wanted(read() == "int a;\n" and "refused by the person" in told and (f"the person says: {why}" in told) == bool(why), f"{said!r}: {told}")
    wanted("\x1b[32m" not in seen, f"NO_COLOR: {seen!r}")
open("editor", "w").write("#!/bin/sh\nsed -i 's/int b/int edited/' \"$1\"\n")
os.chmod("editor", 0o755)
status, seen, e = at([write("int b;\n"), END], [("[y/N/e/?]", "e\n"), ("+int edited;", ""), ("[y/N/e/?]", "y\n")], "rename it",
                     VISUAL=os.path.abspath("editor"))
wanted(status == 0 and read() == "int edited;\n" and "edited them first" in results(e)[0], f"edited: {seen}")
# Text that waits for the end of a mark is shown before the change, and never between it and the question.
project()
held = streamed("```patch\nsrc/a.c\n<<<<<<< SEARCH\nint a;\n=======\nint b;\n>>>>>>> REPLACE\n```\n**I only add a comment, say yes")
status, seen, e = at([held, END], [("[y/N/e/?]", "n\n")], "rename it", NO_COLOR="")
wanted(0 <= seen.find("I only add") < seen.find("+int b;") < seen.find("[y/N/e/?]"), f"held text: {seen}")
# Copies that an editor makes beside the text are removed with it.
project()
os.makedirs("tmp", exist_ok=True)
open("editor", "w").write("#!/bin/sh\ncp \"$1\" \"$1~\"\nmkdir -p \"${1%/*}/.swap\"\ncp \"$1\" \"${1%/*}/.swap/a\"\nln -s \"$HOME\" \"$1.home\"\n")
status, seen, e = at([write("int b;\n"), END], [("[y/N/e/?]", "e\n"), ("[y/N/e/?]", "y\n")], "rename it",
                     VISUAL=os.path.abspath("editor"), TMPDIR=os.path.abspath("tmp"))
wanted(read() == "int b;\n" and os.listdir("tmp") == [] and os.path.isdir("home"), f"an editor's backups: {os.listdir('tmp')} {seen}")
project()
status, seen, e = at([write("int b;\n"), END], [("[y/N/e/?]", "e\n"), ("[y/N/e/?]", "n\n")], "rename it", VISUAL="false")
wanted(read() == "int a;\n" and "the editor failed" in seen, f"an editor that fails: {seen}")
# Ctrl-C at a question is its answer at once: no, to all of its hunks; the next task begins on a line of its own.
project()
open("p/src/a.c", "w").write("int a;\n" + "int x;\n" * 9 + "int c;\n")
both = write("int b;\n" + "int x;\n" * 9 + "int d;\n")
status, seen, e = at([both, both], [("agent>", "one\n"), ("[y/N/h/e/?]", "\x03"), ("interrupted", ""), ("agent>", "\x03"), ("/bye leaves)", ""),
                                    ("agent>", "two\n"), ("[y/N/h/e/?]", "h\n"), ("[y/N/?]", "y\n"), ("2 of 2", "\x03"),
                                    ("interrupted", ""), ("agent>", "\x04")])
wanted(status == 0 and read().startswith("int a;") and read().endswith("int c;\n") and seen.endswith("\n"), f"Ctrl-C at a question: {seen!r}")
# The model's own question, too.
project()
status, seen, e = at([message(None, [("ask", {"question": "which?"})]), END], [("agent>", "one\n"), ("> ", "\x03"), ("interrupted", ""), ("agent>", "exit\n")])
wanted(status == 0 and len(e.requests) == 1, f"Ctrl-C at the model's question: {seen!r}")
# The same change is asked about again in the next task, and not in the same one.
project()
status, seen, e = at([write("int b;\n"), write("int b;\n"), END, write("int b;\n"), END],
                     [("agent>", "one\n"), ("[y/N/e/?]", "n\n"), ("the person refused it before", ""), ("agent>", "two\n"), ("[y/N/e/?]", "y\n"),
                      ("agent>", ":q\n")])
wanted(status == 0 and read() == "int b;\n" and seen.count("[y/N/e/?]") == 2, f"a new task: {seen}")

# ---- commands beside tasks
project()
done, e = script([write("int b;\n"), message("planned"), END, END, END],
                 "/plan rename it\n/help\n/add src/a.c nothing.c\nthen\nsee @src/a.c, and @nobody\nafter\n"
                 "/model secnod\n/model third\n/model second\nexit\nnever\n", "--yes")
wanted(done.returncode == 0 and read() == "int a;\n" and "a plan only" in results(e, 1)[0], f"/plan: {done.stderr}")
asked = [r["messages"][-1]["content"] for r in e.requests]
wanted(asked[0].startswith("Make a plan") and asked[0].endswith("rename it"), f"/plan: {asked[0]}")
wanted("The file src/a.c:\n```\nint a;\n" in asked[2] and "nothing.c: there is no such file" in done.stderr, f"/add: {asked[2]}")
wanted("The file src/a.c:" in asked[3] and "nobody: there is no such file" in done.stderr, f"@file: {asked[3]}")
wanted("the model is second at" in done.stderr and "/undo" in done.stdout and len(e.requests) == 5, f"/model, /help, exit: {done}")
wanted("no model secnod; did you mean second\n" in done.stderr and "no model third; it has first, second\n" in done.stderr and
       done.stderr.count("the model is the one that the server has open at") == 2, f"/model of a name that the server lacks: {done.stderr}")
done, e = script([END], "", "see @src/a.c, and @nobody")
wanted("The file src/a.c:\n```\nint a;\n" in e.requests[0]["messages"][-1]["content"] and done.returncode == 0 and
       "nobody: there is no such file" in done.stderr, f"@file of a task in the command: {done.stderr}")
# A command is run for a person at a terminal. A piped text, which may be anybody's, runs none.
project()
status, seen, e = at([END, END], [("agent>", "!printf 'ran \\033[2J\\000\\377 on'; exit 3\n"), ("exit status 3", ""), ("agent>", "after\n"),
                                  ("agent>", "/add src/a.c\n"), ("agent>", "!head -c 500000 /dev/zero | tr '\\0' x\n"), ("exit status 0", ""),
                                  ("agent>", "then\n"), ("agent>", "exit\n")])
asked = [r["messages"][-1]["content"] for r in e.requests]
wanted("(exit status 3), which printed:\n```\nran ?[2J?? on\n```\n" in asked[0], f"!: {asked} {seen}")
wanted("int a;" in asked[1] and "xxx" in asked[1] and len(asked[1]) < 20000, f"a long output: {len(asked[1])}")
# The model is shown the end of an output, however long it is.
project()
endpoint = Endpoint([END])
status, seen = at_terminal(["sh", "-c", f"{WHIT} agent --url {endpoint.url} --project p > log"],
                           [("agent>", "!seq 1700000\n"), ("Do it?", "y\n"), ("exit status 0", ""), ("agent>", "then\n"),
                            ("agent>", "exit\n")], dict(environment(), TERM="dumb"))
endpoint.server.shutdown()
asked = endpoint.requests[0]["messages"][-1]["content"]
wanted("which printed:\n```\n...\n" in asked and asked.endswith("\n1699999\n1700000\n\n```\n"), f"the end of an output: {asked[:200]!r} {asked[-60:]!r} {seen!r}")
# A line of a pasted text is asked about: one that came while a task ran, and one where no line editor tells a paste.
busy = (503, b"", {"Retry-After": "1"})
for answer, keys, terminal in (("n", [("agent>", "wait\n"), ("trying again", "!touch ran\nend\n")], "xterm"), ("n", [("agent>", "see\n!touch ran\nend\n")], "dumb"),
                               ("y", [("agent>", "!touch ran\nend\n")], "dumb")):
    project()
    answers = Withheld([busy, END, END]) if terminal == "xterm" else [END, END]
    typed = [("", "", answers.typed.set)] if terminal == "xterm" else []
    status, seen, e = at(answers, [*keys, *typed, ("!touch ran. Do it? [y/N", answer + "\n"), ("agent>", "/bye\n")], TERM=terminal)
    wanted(os.path.exists("p/ran") == (answer == "y") and "may have been pasted" in seen and "end\n" not in [r["messages"][-1]["content"] for r in e.requests],
           f"a pasted command ({terminal}): {seen}")
# And one that does not look as it is: the line editor leaves its invisible characters, and those that reorder it, to the terminal.
for answer in ("n", "y"):
    project()
    status, seen, e = at([END], [("agent>", "!echo \u202ea\u200b\u01c3; touch ran\n"), ("Do it? [y/N", answer + "\n"), ("agent>", "/bye\n")], TERM="xterm")
    wanted(os.path.exists("p/ran") == (answer == "y") and "!echo <U+202E>a<U+200B><U+01C3>; touch ran. Do it?" in seen, f"a disguised command: {ascii(seen)}")
# And one of several lines that were pasted as one message: the second looks like a row of the first.
project()
status, seen, e = at([END], [("agent>", "\x1b[200~!# a note\rtouch ran\x1b[201~\n"), ("Do it? [y/N", "n\n"), ("agent>", "/bye\n")], TERM="xterm")
wanted(not os.path.exists("p/ran") and "!# a note<U+000A>touch ran. Do it?" in seen, f"a command of two lines: {ascii(seen)}")
# So is a task, and every other line, of a text that was pasted at a question or while a task ran: its first line answers.
for answer, terminal in (("n", "xterm"), ("n", "dumb"), ("y", "xterm")):
    project()
    status, seen, e = at([write("int b;\n"), END, END], [("agent>", "one\n"), ("[y/N", "y\nsecond task\n/plan third\nfourth\n"),
                                                        ("second task. Do it? [y/N", answer + "\n"), ("agent>", "/bye\n")], TERM=terminal)
    tasks = [m["content"] for m in e.requests[-1]["messages"] if m["role"] == "user"]
    wanted(status == 0 and read() == "int b;\n" and tasks == ["one"] + ["second task"] * (answer == "y"), f"a pasted task ({terminal}): {tasks} {seen}")
project()
answers = Withheld([busy, END, END])
status, seen, e = at(answers, [("agent>", "wait\n"), ("trying again", "x" * 5000 + "\n"), ("", "", answers.typed.set),
                               ("too long to be asked about", ""), ("agent>", "/bye\n")])
wanted(status == 0 and len(e.requests) == 2, f"a pasted line that is too long: {seen}")
project()
status, seen, e = at([message(None, [("write", {"path": "src/a.c", "content": "int b;\n"})]), END, END],
                     [("agent>", "write\n"), ("[y/N", "y\n"), ("agent>", "see\n/undo\nend\n"), ("/undo. Do it? [y/N", "n\n"), ("agent>", "/bye\n")], TERM="dumb")
wanted(open("p/src/a.c").read() == "int b;\n", f"a pasted /undo: {seen}")
# Nor does any line of a text that is larger than the terminal's queue, however late the terminal takes it.
project()
status, seen, e = at([write("int b;\n"), write("int c;\n"), END],
                     [("[y/N/e/?]", "n\n" + ("x" * 70 + "\n") * 3000 + "y\n" * 3000), ("int c;", ""), ("[y/N/e/?]", "n\n")], "rename it", NO_COLOR="1")
wanted(status == 0 and read() == "int a;\n" and len(e.requests) == 3 and "one of the letters" not in seen, f"a long paste at a question: {seen}")
project()
done, e = script([END], "fix this:\n!touch ran\nend\n")
wanted(done.returncode == 2 and "at a terminal" in done.stderr and not os.path.exists("p/ran"), f"a piped command: {done}")
# What goes with a task is bounded, the text around files included.
open("p/full.txt", "w").write("a" * (256 << 10))
open("p/more.txt", "w").write("b" * (1 << 20))
done, e = script([END], "/add full.txt more.txt\ntask\n")
wanted("too many in addition" in done.stderr and "bbb" not in e.requests[0]["messages"][-1]["content"], f"bound: {done.stderr}")
project()
open("p/.env", "w").write("TOKEN=ghp_0123456789abcdefghijklmnopqrstuvwxyz\n")
open("p/paper.pdf", "w").write("%PDF-1.7 x\n")
done, e = script([END], "/add paper.pdf\nsee @paper.pdf\n/bye\n")
wanted("%PDF" not in json.dumps(e.requests) and done.stderr.count("paper.pdf: is a PDF ('pdftotext FILE'") == 2, f"a PDF: {done.stderr}")
done, e = script([END], "/add .env ../endpoint.py\nsee @.env\n/bye\n")
wanted("ghp_" not in json.dumps(e.requests) and "is not read" in done.stderr, f"a secret: {done.stderr}")
done, e = script([write("int b;\n"), END, END], "rename it\n/diff\n/clear\nanew\n/model\n/bye\n", "--allow", "write")
wanted("+int b;" in done.stdout.split("done")[1] and "turn 1" in done.stderr, f"/diff: {done}")
wanted([m["role"] for m in e.requests[-1]["messages"]] == ["system", "user"], "/clear")
wanted("first\nsecond\n" in done.stdout, f"/model: {done.stdout}")

# ---- the last conversation is there
done, e = script([message("one")], "", "-p", "first")
done, e = script([message("two")], "", "-p", "second", "--resume")
wanted([m["content"] for m in e.requests[0]["messages"][-3:]] == ["first", "one", "second"] and "resumed after" in done.stderr, f"--resume: {done.stderr}")
done, e = script([message("two")], "", "-p", "third")
wanted(len(e.requests[0]["messages"]) == 2, "a new conversation")
project()
done, e = script([message("two")], "", "-p", "second", "--resume")
wanted(done.returncode == 0 and "no earlier conversation" in done.stderr, f"--resume of nothing: {done.stderr}")
done, e = script([], "", "-p", "x", "--resume", "--session", "s.json")
wanted(done.returncode == 2 and not e.requests, f"--resume --session: {done.stderr}")

# Two agents in one project keep their conversations apart.
project()
endpoint = Endpoint([message("one"), message("three")])
one = subprocess.Popen([WHIT, "agent", "--project", "p", "--url", endpoint.url], env=environment(), stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
one.stdin.write("first\n")
one.stdin.flush()
wanted(one.stdout.readline() == "one\n", "the first agent's answer")
kept = []
while not kept and one.poll() is None:  # it is kept after the answer is shown
    kept = [f"state/whit/{name}" for name in os.listdir("state/whit") if name.endswith(".talk.json")]
for more in (("--resume",), ("--session", *kept)):
    done, e = script([message("two")], "", "-p", "second", *more)
    wanted(done.returncode != 0 and "another agent that is still running" in done.stderr and not e.requests, f"{more}: {done.stderr}")
done, e = script([message("two")], "", "-p", "second")
wanted(done.returncode == 0 and "another agent works in this project" in done.stderr, f"the second agent: {done.stderr}")
beside = re.search(r"kept in (\S+) ", done.stderr)
out, err = one.communicate("third\n", timeout=600)
endpoint.server.shutdown()
wanted(out == "three\n", f"the first agent: {out} {err}")
done, e = script([message("four")], "", "-p", "fourth", "--resume")
wanted([m["content"] for m in e.requests[0]["messages"][1:]] == ["first", "one", "third", "three", "fourth"], "the first's conversation")
done, e = script([message("five")], "", "-p", "fifth", "--session", beside[1] if beside else "none")
wanted([m["content"] for m in e.requests[0]["messages"][1:]] == ["second", "two", "fifth"], "the second's conversation")

# ---- errors are sentences, and a server that is not there is said at once
for body in ({"error": {"message": "the model is\nasleep", "type": "x"}}, {"error": "the model is asleep"}, {"message": "the model is asleep"}):
    done, e = script([(400, json.dumps(body).encode(), {})], "", "-p", "x")
    wanted(done.returncode == 5 and "{" not in done.stderr and re.search(r"400: the model is.asleep", done.stderr), f"{body}: {done.stderr}")
done = subprocess.run([WHIT, "agent", "-p", "x", "--url", "http://127.0.0.1:1/v1", "--project", "p"], env=environment(), capture_output=True,
                      text=True, stdin=subprocess.DEVNULL, start_new_session=True, timeout=600)
wanted(done.returncode == 5 and done.stderr.count("\n") == 1 and "is the server running?" in done.stderr, f"no server: {done.stderr}")
sys.exit(checks.failed)
