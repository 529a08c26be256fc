# SPDX-License-Identifier: MIT
"""An editor's conversations (ACP): kept while a task runs, brought back in another process, kept apart by folder."""
import glob
import json
import os
import shutil
import subprocess
import sys
import time

import checks
from acp import Editor
from checks import wanted
from endpoint import SEND_SERVER, Endpoint, message, streamed

WHIT = sys.argv[1]


def environment(**more):
    env = dict(os.environ, no_proxy="*", HOME=os.path.abspath("home"), **more)
    for name in ("STATE", "CACHE", "CONFIG"):
        env[f"XDG_{name}_HOME"] = os.path.abspath(name.lower())
    return env


def project():
    for folder in ("p", "q", "state", "cache", "config", "home"):
        shutil.rmtree(folder, ignore_errors=True)
    for folder in ("p", "q", "home"):
        os.makedirs(folder)
    open("p/a.c", "w").write("int a;\n")


def editor(answers, *more, **env):
    e = Editor(WHIT, environment(**env), answers, *more)
    e.offers = e.result("initialize", protocolVersion=1, clientCapabilities={})["agentCapabilities"]
    return e


def said(e, kind="agent_message_chunk"):
    return [u["content"]["text"] for u in e.updates if u["sessionUpdate"] == kind]


def begin(e, folder="p"):
    return e.result("session/new", cwd=os.path.abspath(folder), mcpServers=[])["sessionId"]


def load(e, session, folder="p"):
    return {"sessionId": session, "cwd": os.path.abspath(folder), "mcpServers": []}


def words(endpoint):
    return [m["content"] for m in endpoint.requests[-1]["messages"][1:]]


def write(text):
    return message("I write.", [("write", {"path": "b.c", "content": text})])


# An endpoint that is busy for a minute: the agent waits.
BUSY = (503, b"", {"Retry-After": "60"})

# ---- killed while the second answer is awaited: what was agreed to is written, and the conversation is there
project()
a = editor([write("int b;\n"), BUSY])
wanted(a.offers["loadSession"] is True, f"capabilities: {a.offers}")
session = begin(a)
a.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Write b."}, {"type": "resource_link", "name": "a.c", "uri": "file://" + os.path.abspath("p/a.c")}])
while len(a.endpoint.requests) < 2:
    time.sleep(0.01)
a.kill()
wanted(open("p/b.c").read() == "int b;\n" and len(a.asked) == 1, f"what was agreed to: {a.asked}")
a = editor([message("Go on.")])
wanted(a.result("session/load", **load(a, session)) == {}, "session/load")
notes = [u["title"] for u in a.updates if u["sessionUpdate"] == "tool_call"]
wanted(said(a, "user_message_chunk") == ["Write b.\n[a.c]\n"] and said(a) == ["I write."] and "b.c" in notes[0], f"replayed: {a.updates}")
wanted(a.task(session, "And now?") == {"stopReason": "end_turn"}, "a task after session/load")
got = words(a.endpoint)
wanted(got[:2] == ["Write b.\n[a.c]\n", "I write."] and "turn 1" in got[2] and got[3] == "And now?", f"the conversation: {got}")

# ---- another folder's session, and names that are not sessions, are refused; the open session stays
for kept in (load(a, session, "q"), load(a, "whit-0"), load(a, "../../p/a.c"), load(a, "whit-" + "0" * 99), load(a, 3), {"cwd": os.path.abspath("p")}):
    wanted("no conversation" in a.refusal("session/load", **kept), f"loaded: {kept}")
wanted("cwd" in a.refusal("session/load", **load(a, session, "none")), "a folder that is absent")
a.endpoint.answers = [message("Here.")]
wanted(a.task(session, "Still there?") == {"stopReason": "end_turn"} and len(words(a.endpoint)) == 6, f"the open session: {words(a.endpoint)}")

# ---- two processes do not write one file
b = editor([])
wanted("stderr" in b.refusal("session/load", **load(b, session)), "a session that another process has")
b.end()
wanted("another agent that is still running" in b.errors, f"the reason: {b.errors}")
a.end()

# ---- a resource whose text may contain keys comes without it, as a file does that the tools would not read
project()
SECRET, TOKEN = "hunter2\n", "t = 'ghp_" + 6 * "aB3456" + "'\n"
open("p/.env", "w").write(SECRET)
os.symlink(".env", "p/plain.txt")
os.makedirs("q/conf")
open("q/conf/dev", "w").write(SECRET)
os.symlink("conf/dev", "q/.env")
os.symlink("../q", "p/other")
path = os.path.abspath("p")
here = "file://" + path
embedded = [(f"{here}/{name}", SECRET) for name in (".env", ".e%6Ev", ".env#L1:2", "plain.txt", "../home/.ssh/id_rsa", "x" * 5000)]
embedded += [("zed:///agent/file?path=/srv/u/.ssh/id_rsa", SECRET), (f"{here}/k.py", TOKEN)]
# editors name a link to such a file in several ways, and a file to which .env of its own project is a link
embedded += [(uri, SECRET) for uri in (f"FILE://{path}/plain.txt", f"vscode://file{path}/plain.txt", f"{path}/plain.txt", "plain.txt",
                                       f"zed:///agent/symbol/x?path={path.replace('/', '%2F')}%2Fplain.txt&line=3", f"{here}/plain.txt%00",
                                       f"{here}/other/conf/dev", f"file://{os.path.abspath('q')}/conf/dev", "x?" + 40 * "a&")]
# schemes whose names follow without a slash, and a place in the text after the name
embedded += [(uri, SECRET) for uri in ("untitled:.env", "HEAD:.env", "git://HEAD:.env:7", "diff:a.c|.env", "untitled:plain.txt")]
a = editor([message("Seen.")] * len(embedded) + [message("Seen.")])
session = begin(a)
for uri, text in embedded:
    del a.updates[:]
    prompt = [{"type": "text", "text": "Look."}, {"type": "resource", "resource": {"uri": uri, "text": text}}]
    wanted(a.result("session/prompt", sessionId=session, prompt=prompt) == {"stopReason": "end_turn"}, f"embedded: {uri[:80]}")
    told = [u["title"] for u in a.updates if u["sessionUpdate"] == "tool_call"]
    wanted("may contain keys" in words(a.endpoint)[-1] and any("may contain keys" in line for line in told), f"told: {uri[:80]} {told}")
# a text beside the URI of a link, where the protocol has none
linked = {"type": "resource_link", "name": ".env", "uri": f"{here}/.env", "text": SECRET}
a.endpoint.answers.insert(0, message("Seen."))
a.result("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Look."}, linked])
sent = json.dumps(a.endpoint.requests)
wanted(SECRET.strip() not in sent and "ghp_" not in sent, f"keys of embedded texts: {words(a.endpoint)}")
prompt = [{"type": "resource", "resource": {"uri": f"{here}/a.c", "text": "int a;\n"}}]
wanted(a.result("session/prompt", sessionId=session, prompt=prompt) == {"stopReason": "end_turn"} and words(a.endpoint)[-1] == "[a.c]\nint a;\n",
       f"an embedded text: {words(a.endpoint)[-1]}")
a.end()

# ---- what an editor would hide of an answer is marked, also when the session is loaded
project()
a = editor([streamed("a\u202eb\u001b[2J\u200bc \u00e9\n\tz", n=1)])
session = begin(a)
a.task(session, "Say it.")
shown = "a<U+202E>b?[2J<U+200B>c \u00e9\n\tz"
wanted("".join(said(a)) == shown, f"an answer: {said(a)}")
a.end()
b = editor([])
b.result("session/load", **load(b, session))
wanted(said(b)[-1:] == [shown], f"a loaded answer: {said(b)}")
b.end()

# ---- a question keeps its order beside letters that an editor orders from right to left
# A server that begins once a file is there, if one is named.
SERVER = """import os, sys, time
while len(sys.argv) > 1 and not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
""" + SEND_SERVER


def with_server(e, *more, folder="p"):
    named = {"name": "post", "command": sys.executable, "args": ["-c", SERVER, *more], "env": []}
    return e.result("session/new", cwd=os.path.abspath(folder), mcpServers=[named])["sessionId"]


project()
send = message(None, [("mcp__post__send", {"\u05d0": "5", "7": "\u05d1"})])
a = editor([send, message("Sent."), message(None, [("write", {"path": "\u05d0.env", "content": "x\n"})]), message("Written.")])
session = with_server(a)
a.task(session, "Send it.")
title = a.asked[-1]["toolCall"]["title"]
wanted(title.endswith(' {"\u200e\u05d0\u200e":"5","7":"\u05d1\u200e"}'), f"the order of a call: {ascii(title)}")
a.task(session, "Write it.")
asked = a.asked[-1]["toolCall"]
wanted("\u05d0\u200e.env: it may contain keys" in asked["title"], f"the order of a reason: {ascii(asked)}")
a.end()

# ---- a task that is cancelled while a server begins leaves the server to the next task, and the tokens as they were
project()
a = editor([message("One."), send, message("Sent."), message("No.")], "--max-cost", "60")
may_begin = os.path.abspath("may-begin")
open(may_begin, "w").close()
session, other = with_server(a, may_begin), begin(a, "q")
a.task(session, "First.")
a.task(other, "Elsewhere.")
a.endpoint.answers = [send, message("Sent."), message("No.")]
os.unlink(may_begin)
a.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Wait."}])
time.sleep(0.4)
a.send({"method": "session/cancel", "params": {"sessionId": session}})
wanted(a.answer()["result"] == {"stopReason": "cancelled"}, "cancelled while a server begins")
open(may_begin, "w").close()
wanted(a.task(session, "Send it.") == {"stopReason": "end_turn"} and len(a.asked) == 1 and words(a.endpoint)[-1] == "sent",
       f"the server of the next task: {words(a.endpoint)}")
a.task(other, "Elsewhere.")
wanted(a.result("session/load", **load(a, session)) == {}, "a session of this process is loaded")
a.endpoint.answers = [message(None, [("list", {})])] * 9
wanted(a.task(session, "Go on.") == {"stopReason": "max_tokens"} and len(a.endpoint.answers) == 8, f"tokens of a loaded session: {a.endpoint.answers}")
a.end()

# ---- the agent's own messages to the model are not shown as the person's when a session is loaded
project()
block = "```patch\nyes: delete all of it\n<<<<<<< SEARCH\nno\n=======\nyes\n>>>>>>> REPLACE\n```\n"
cut = (200, json.dumps({"choices": [{"message": {"role": "assistant", "content": "A part,"}, "finish_reason": "length"}]}).encode(), {})
a = editor([message(block), message("Not done."), cut, message(" and the rest.")])
session = begin(a)
for text in ("First.", "Second."):
    a.task(session, text)
wanted(any("yes: delete" in m["content"] for m in a.endpoint.requests[1]["messages"] if m["role"] == "user"), "the result of a fenced patch")
a.end()
b = editor([])
b.result("session/load", **load(b, session))
wanted(said(b, "user_message_chunk") == ["First.", "Second."], f"what the person said: {said(b, 'user_message_chunk')}")
b.end()

# ---- two sessions of one process: each has its conversation, and a cancel is for its own
project()
a = editor([message("one"), message("two"), message("three"), message("four")])
first, second = begin(a), begin(a, "q")
for session, text in ((first, "1"), (second, "2"), (first, "3")):
    a.task(session, text)
wanted(words(a.endpoint) == ["1", "one", "3"], f"the first session: {words(a.endpoint)}")
a.send({"method": "session/cancel", "params": {"sessionId": first}})
a.send({"method": "session/cancel", "params": {}})
wanted(a.task(second, "4") == {"stopReason": "end_turn"} and words(a.endpoint) == ["2", "two", "4"], f"the second session: {words(a.endpoint)}")
a.endpoint.answers = [BUSY]
running = a.ask("session/prompt", sessionId=first, prompt=[{"type": "text", "text": "wait"}])
waiting = a.ask("session/prompt", sessionId=second, prompt=[{"type": "text", "text": "never"}])
while len(a.endpoint.requests) < 5:
    time.sleep(0.01)
a.send({"method": "session/cancel", "params": {"sessionId": second}})
a.send({"method": "session/cancel", "params": {"sessionId": first}})
ends = [a.answer(), a.answer()]
wanted([(m["id"], m["result"]["stopReason"]) for m in ends] == [(running, "cancelled"), (waiting, "cancelled")], f"cancelled: {ends}")
wanted(not any("never" in json.dumps(r) for r in a.endpoint.requests), "a prompt that was cancelled before it began")

# ---- the editor is killed, or cancels, while it is asked: nothing is written
for ending in ("cancel", "kill"):
    a.endpoint.answers = [write("int late;\n")] * 2
    a.say_yes = None
    a.has_asked.clear()
    a.ask("session/prompt", sessionId=first, prompt=[{"type": "text", "text": "Write."}])
    wanted(a.has_asked.wait(60), "the question")
    if ending == "cancel":
        a.send({"method": "session/cancel", "params": {"sessionId": first}})
        wanted(a.answer()["result"] == {"stopReason": "cancelled"}, "cancelled at the question")
    else:
        a.process.stdin.close()
        wanted(a.process.wait(timeout=60) == 0, "the editor is gone")
    wanted(not os.path.exists("p/b.c"), f"{ending}: written without an answer")
a.endpoint.server.shutdown()

# ---- a damaged record is left as it is, and the reason is told
[path] = glob.glob(f"state/whit/agent-*-{first}.talk.json")
record = open(path).read()
for damaged in (record[:len(record) // 2], "", "[]", record.replace('"user"', "7")):
    open(path, "w").write(damaged)
    a = editor([])
    reason = a.refusal("session/load", **load(a, first))
    wanted("move the file away" in reason or "name another file" in reason, f"damaged: {reason}")
    wanted(begin(a).startswith("whit-"), "a new session after that")
    a.end()
    wanted(open(path).read() == damaged, "a damaged record is replaced")
os.remove(path)
a = editor([])
wanted("no conversation" in a.refusal("session/load", **load(a, first)), "a record that was removed")
a.end()

# ---- without --url the server is found when a session begins; until then the reason is told
project()
a = editor(None, WHIT_PORT="1", OLLAMA_HOST="127.0.0.1:1")
reason = a.refusal("session/new", cwd=os.path.abspath("p"), mcpServers=[])
wanted("whit serve" in reason, f"no server: {reason}")
a.end()
e = Endpoint([message("found")])
a = editor(None, WHIT_PORT=str(e.server.server_port))
wanted(a.task(begin(a), "x") == {"stopReason": "end_turn"} and e.requests[0]["model"] == "first", "a server that is found")
a.end()

# ---- at a terminal, too: killed in a task, the conversation holds what was done so far; elsewhere there is none
project()
e = Endpoint([write("int b;\n"), BUSY])
agent = [WHIT, "agent", "--url", e.url, "--allow", "write"]
run = {"env": environment(), "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
killed = subprocess.Popen([*agent, "--project", "p", "-p", "Write b."], **run)
while len(e.requests) < 2:
    time.sleep(0.01)
killed.kill()
killed.wait()
e.answers = [message("done"), message("none")]
for folder, told, n in (("p", "resumed after 3 messages", 5), ("q", "no earlier conversation", 2)):
    done = subprocess.Popen([*agent, "--project", folder, "-p", "Go on.", "--resume"], **run)
    _, err = done.communicate(timeout=60)
    wanted(done.returncode == 0 and told in err and len(e.requests[-1]["messages"]) == n, f"{folder}: {err}")
wanted(open("p/b.c").read() == "int b;\n" and not os.listdir("q"), "the files")
[path] = [p for p in glob.glob("state/whit/agent-*.talk.json") if "Write b." in open(p).read()]
record = open(path).read()[:99]
open(path, "w").write(record)
done = subprocess.Popen([*agent, "--project", "p", "-p", "Go on.", "--resume"], **run)
_, err = done.communicate(timeout=60)
wanted(done.returncode == 3 and "move the file away" in err and open(path).read() == record, f"damaged: {err}")
sys.exit(checks.failed)
