# SPDX-License-Identifier: MIT
"""Replays answers of a model to `whit agent -p` and looks at the tree, the requests and the messages."""
import json
import os
import shutil
import subprocess
import sys

from endpoint import Endpoint, message

WHIT = sys.argv[1]
failed = 0
PATCH = "src/a.c\n<<<<<<< SEARCH\n    return 0;\n=======\n    return 1;\n>>>>>>> REPLACE\n"
SOURCE = "int main(void)\n{\n    return 0;\n}\n"


def complain(text):
    global failed
    failed = 1
    print("FAILED:", text)


def run(answers, *more, allow="yellow", status=0, key="sk-test", rules="Indent by four.\n"):
    shutil.rmtree("p", ignore_errors=True)
    shutil.rmtree("state", ignore_errors=True)
    os.makedirs("p/src")
    os.makedirs("p/.git")
    open("p/src/a.c", "w").write(SOURCE)
    open("p/AGENTS.md", "w").write(rules)
    open("p/.env", "w").write("SECRET=hidden-words\n")
    open("outside", "w").write("outside-words\n")
    os.makedirs("beside/a", exist_ok=True)
    os.symlink("../../outside", "p/src/link")
    os.symlink("../../beside", "p/src/away")
    os.symlink("../.git", "p/src/g")
    open("p/src/two\nlines", "w").write("")
    endpoint = Endpoint(answers)
    env = dict(os.environ, XDG_STATE_HOME=os.path.abspath("state"), WHIT_API_KEY=key, no_proxy="*")
    # A session of its own: nobody is at a terminal.
    done = subprocess.run([WHIT, "agent", "-p", "Return one.", "--url", endpoint.url, "--model", "m", "--project", "p",
                           "--allow", allow, *more], env=env, capture_output=True, start_new_session=True,
                          stdin=subprocess.DEVNULL, timeout=600, text=True)
    endpoint.server.shutdown()
    if done.returncode != status:
        complain(f"status {done.returncode}, not {status}: {done.stderr}")
    return done, endpoint


def source():
    return open("p/src/a.c").read()


def result(endpoint, at=-1):
    return endpoint.requests[at]["messages"][-1]["content"]


def wanted(condition, text):
    if not condition:
        complain(text)


ONE = SOURCE.replace("0", "1")

# A file where a folder would have to be is told before anything is staged, and the task goes on.
done, endpoint = run([message(None, [("write", {"path": "src/a.c/b.c", "content": "x"})]),
                      message(None, [("list", {"path": "src"})]), message("done")])
wanted("src/a.c is a file, not a folder" in result(endpoint, -2), "a file in the place of a folder")
wanted(source() == SOURCE, "nothing is written below a file")
wanted('"src/two\\nlines"\n' in result(endpoint), "a name with a line end is one line of a list")

patch = message(None, [("patch_file", {"patch": PATCH})])

done, e = run([message(None, [("read", {"path": "src/a.c", "first": 3, "last": 3})]), patch, message("done")])
wanted(source() == ONE, "a patch by tool call is not written")
wanted(result(e, 1) == "    return 0;\n", f"read with lines: {result(e, 1)!r}")
wanted("turn 1" in result(e), f"the model is not told: {result(e)}")
wanted("+    return 1;" in done.stdout and "done" in done.stdout, f"shown: {done.stdout}")
first = e.requests[0]
wanted("Indent by four." in first["messages"][0]["content"], "AGENTS.md is not in the system message")
wanted(first["model"] == "m" and first["messages"][1]["content"] == "Return one.", "the request")
wanted(e.headers[0].get("Authorization") == "Bearer sk-test", "the key")
undo = subprocess.run([WHIT, "agent", "undo", "--project", "p"], capture_output=True,
                      env=dict(os.environ, XDG_STATE_HOME=os.path.abspath("state")))
wanted(undo.returncode == 0 and source() == SOURCE, "undo after the loop")

done, e = run([message("Here:\n\n```patch\n" + PATCH + "```\n"), message("done")], "--json")
wanted(source() == ONE, "a fenced patch is not written")
wanted(json.loads(done.stdout)["turns"] == 1 and json.loads(done.stdout)["tokens_in"] == 20, f"JSON: {done.stdout}")

done, e = run([patch, message("done")], allow="green")
wanted(source() == SOURCE and "refused" in result(e), f"written without being agreed to: {result(e)}")

done, e = run([message(None, [("patch_file", '{"patch": ')]), message(None, [("fly", {})]),
               message(None, [("read", {"path": 3})]), message("sorry")])
wanted("not a JSON object" in result(e, 1), f"malformed arguments: {result(e, 1)}")
wanted("there is no tool 'fly'" in result(e, 2), f"an invented tool: {result(e, 2)}")
wanted("'path' must be a string" in result(e, 3), f"a wrong type: {result(e, 3)}")

done, e = run([(429, b"slow down", {"Retry-After": "1"}), (503, b"", {}), "cut", patch, message("done")])
wanted(source() == ONE and len(e.requests) == 5, "429, 503, a cut connection, then success")
wanted("trying again in 1.0 s" in done.stderr, f"Retry-After: {done.stderr}")

for answers, status, words in [
        (["cut"] * 5, 5, "tried 5 times"),
        ([(401, b'{"error": "bad key"}', {})], 5, "401"),
        ([(200, b'{"choices": [', {})], 3, "is not JSON"),
        ([(200, b'{"error": "x"}', {})], 3, "choices[0].message"),
        ([(200, b" " * (9 << 20), {})], 4, "is larger than"),
        ([(302, b"", {"Location": "http://127.0.0.1:1/"})], 5, "302"),
        ([message(None, [("list", {})])] * 3, 4, "not finished")]:
    done, e = run(answers, "--max-turns", "3", status=status)
    lines = [x for x in done.stderr.splitlines() if x.startswith("whit agent:")]
    wanted(len(lines) == 1 and words in lines[0], f"one line with '{words}': {done.stderr}")
    wanted(source() == SOURCE, "a failure changes the tree")

# A text that is cut at its length is no end.
def cut(content):
    status, body, headers = message(content)
    body = json.loads(body)
    body["choices"][0]["finish_reason"] = "length"
    return status, json.dumps(body).encode(), headers


done, e = run([cut("one, "), message("two")], "--json")
wanted(len(e.requests) == 2 and "cut" in result(e) and json.loads(done.stdout)["answer"] == "one, two", f"a cut text: {done.stdout}")
done, e = run([cut("one, ")] * 2, "--json", "--max-turns", "2", status=4)
wanted(not json.loads(done.stdout)["done"], f"cut to the end: {done.stdout}")
for part in ('{"tool":"wri', "I change it:\n```pat"):
    done, e = run([cut(part), message("done")], "--json")
    wanted("in smaller pieces" in e.requests[-1]["messages"][-1]["content"] and json.loads(done.stdout)["answer"] == "done",
           f"a cut part of a call: {done.stdout}")
done, e = run([cut("")], status=4)
wanted(len(e.requests) == 1 and "ended before its first word" in done.stderr, f"cut at once: {done.stderr}")

# Calls of a stream that all have index 0, or none; the second in pieces.
for index in ({"index": 0}, {}):
    pieces = [{"id": "a", "function": {"name": "read", "arguments": '{"path": "src/a.c"}'}},
              {"id": "b", "function": {"name": "list", "arguments": ""}},
              {"function": {"arguments": '{"path": '}}, {"id": "x", "function": {"arguments": '"src"}'}}]
    events = [{"choices": [{"delta": {"tool_calls": [{**index, **piece}]}}]} for piece in pieces]
    events.append({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    done, e = run([(200, body.encode(), {"Content-Type": "text/event-stream"}), message("done")])
    got = {m["tool_call_id"]: m["content"] for m in e.requests[-1]["messages"] if m["role"] == "tool"}
    wanted(sorted(got) == ["a", "b"] and "int main" in got["a"] and "src/a.c" in got["b"], f"calls without an index: {got}")

# A session holds an answer to each call, however the task ends.
done, e = run([message(None, [("list", {})] * 33)], "--session", "s.json", status=4)
kept = json.load(open("s.json"))["messages"]
wanted([m.get("tool_call_id") for m in kept if m["role"] == "tool"] == [f"c{i}" for i in range(33)], f"unanswered calls: {kept[-1]}")
os.unlink("s.json")

done, e = run([message("x" * (1 << 20))])
wanted(len(done.stdout) >= 1 << 20, "an answer of 1 MB")

# Long rules are cut between characters.
done, e = run([message("done")], rules="x" + "é" * 20000)
got = e.requests[0]["messages"][0]["content"]
wanted("xéé" in got and got.endswith("é\n[cut]"), f"cut rules: {got[-20:]}")

# Rules behind a link are read where it stays in the project, and no others.
def linked(target):
    shutil.rmtree("q", ignore_errors=True)
    os.makedirs("q")
    open("q/CLAUDE.md", "w").write("inside-words\n")
    open("q/.env", "w").write("SECRET=hidden-words\n")
    os.symlink(target, "q/AGENTS.md")
    e = Endpoint([message("done")])
    done = subprocess.run([WHIT, "agent", "-p", "x", "--url", e.url, "--project", "q"], capture_output=True, text=True, timeout=600,
                          env=dict(os.environ, XDG_STATE_HOME=os.path.abspath("state")), stdin=subprocess.DEVNULL)
    wanted(done.returncode == 0 and e.requests, f"AGENTS.md to {target}: {done.stderr}")
    return e.requests[0]["messages"][0]["content"] if e.requests else ""


wanted("inside-words" in linked("CLAUDE.md"), "rules behind a link")
for target in ("../outside", ".env", "nowhere", "."):
    got = linked(target)
    wanted(got and "-words" not in got, f"rules by a link to {target}: {got[-80:]}")

# Texts are cut between characters: the note of a turn, the lines of grep.
task = "漢" * 60
done, e = run([message(None, [("write", {"path": "long.txt", "content": "x" + "漢" * 200 + "\n"})]),
               message(None, [("grep", {"pattern": "x", "path": "long.txt"})]), message("done")], "-p", task)
log = subprocess.run([WHIT, "agent", "log", "--project", "p", "--json"], capture_output=True, text=True,
                     env=dict(os.environ, XDG_STATE_HOME=os.path.abspath("state")))
turns = json.loads(log.stdout)
wanted(len(turns) == 1 and turns[0]["note"] == "漢" * 39, f"a long note: {log.stdout}")
wanted(result(e) == "long.txt:1:x" + "漢" * 99 + "\n", f"a long line of grep: {result(e)}")

# Reading stays inside, and away from secrets; what is red stays unwritten however it is asked for.
done, e = run([message(None, [("read", {"path": p}) for p in ("../outside", "src/link", ".env", "/etc/passwd", "src/g/config")]
                       + [("grep", {"pattern": "words"}), ("list", {"path": ".."}), ("list", {"path": "src/g"})]
                       # Folders outside that hold one of the name that is looked for.
                       + [("list", {"path": p}) for p in ("../beside", "src/away", "src/away/.", "src/away/a/..", "src/../../beside")]),
               message("done")])
got = [m["content"] for m in e.requests[-1]["messages"] if m["role"] == "tool"]
wanted(len(got) == 13 and all(g.startswith("error:") for g in got[:5] + got[6:]), f"reads: {got}")
wanted(got[5] == "(no match)", f"grep: {got[5]}")
# Models write a folder's name with a slash after it and "./" before it.
done, e = run([message(None, [("list", {"path": p}) for p in ("src", "src/", "./src//", "", "./", "/", "src/away/")]), message("done")])
got = [m["content"] for m in e.requests[-1]["messages"] if m["role"] == "tool"]
wanted(got[0] == got[1] == got[2] and got[3] == got[4] and not any(g.startswith("error:") for g in got[:5]), f"folders: {got}")
wanted(got[5].startswith("error:") and got[6].startswith("error:"), f"folders outside: {got[5:]}")
for path in (".git/config", "src/g/config", "src/../.git/x", "../outside", "src/link", ".env"):
    before = open("outside").read()
    done, e = run([message(None, [("write", {"path": path, "content": "x"})]), message("done")])
    wanted("error:" in result(e) or "refused" in result(e), f"{path}: {result(e)}")
    wanted(os.listdir("p/.git") == [] and open("outside").read() == before, f"{path} was written")
    wanted("hidden-words" in open("p/.env").read(), ".env was written")
# A patch that does not fit a secret file tells nothing of it.
done, e = run([message(None, [("patch_file", {"patch": ".env\n<<<<<<< SEARCH\nSECRET=hidden-words\nx\n=======\ny\n>>>>>>> REPLACE\n"}),
                              ("patch_file", {"patch": ".env\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n"})]), message("done")])
got = [m["content"] for m in e.requests[-1]["messages"] if m["role"] == "tool"]
wanted(all("does not match the file, whose text is not shown because it may contain keys" in g and "hidden-words" not in g and "(file " not in g for g in got), f"a secret told by a patch: {got}")
# Two edits of one file in one answer are one turn; a failing one beside it is only told.
done, e = run([message(None, [("write", {"path": "src/b.c", "content": "int b;\n"}),
                              ("patch_file", {"patch": "*** Begin Patch\n*** Update File: src/b.c\n@@\n-int b;\n+int c;\n*** End Patch\n"}),
                              ("patch_file", {"patch": PATCH.replace("return 0", "return 7")})]), message("done")], "--json")
wanted(open("p/src/b.c").read() == "int c;\n" and source() == SOURCE, "staged edits")
wanted(json.loads(done.stdout)["turns"] == 1, f"one turn: {done.stdout}")

# A path that would command the terminal of the question is shown without its controls.
import pty  # noqa: E402

pid, terminal = pty.fork()
if pid == 0:
    e = Endpoint([message(None, [("write", {"path": ".git/\x1b[2Kx", "content": "x"})]), message("done")])
    os.environ["XDG_STATE_HOME"] = os.path.abspath("state")
    os._exit(subprocess.run([WHIT, "agent", "-p", "x", "--url", e.url, "--project", "p", "--allow", "yellow"]).returncode)
os.write(terminal, b"y\n")  # typed before the question: no answer to it
seen, answered = b"", False
try:
    while piece := os.read(terminal, 4096):
        seen += piece
        if b"[y/N" in seen and not answered:
            answered = True
            os.write(terminal, b"n\n")
except OSError:
    pass
wanted(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, f"a task at a terminal: {seen!r}")
wanted(b"[y/N" in seen and b"\x1b[2Kx" not in seen, f"controls at the terminal: {seen!r}")
wanted(os.listdir("p/.git") == [], "refused at the terminal, and written")

# Keys: not from a file that others read, not in the open.
open("key", "w").write("sk-file\n")
os.chmod("key", 0o644)
run([message("done")], "--key-file", "key", status=2)
os.chmod("key", 0o600)
done, e = run([message("done")], "--key-file", "key")
wanted(e.headers[0].get("Authorization") == "Bearer sk-file", "--key-file")
# A command that ended without a word gives no key, and no request goes out without one.
open("key", "w").write("\n")
done, e = run([message("done")], "--key-file", "key", status=2)
wanted("key: contains no key" in done.stderr and e.requests == [], f"an empty key: {done.stderr}")
# An empty variable, also one with blanks alone, is as if it were not set.
for given in ("", " \n"):
    done, e = run([message("done")], key=given)
    wanted("Authorization" not in e.headers[0], f"a key of blanks: {e.headers[0]}")
# What goes to this machine goes through no proxy.
proxy = Endpoint([])
e = Endpoint([message("done")])
env = {k: v for k, v in os.environ.items() if k.lower() != "no_proxy"}
env.update(XDG_STATE_HOME=os.path.abspath("state"), WHIT_API_KEY="sk-test", http_proxy=proxy.url, all_proxy=proxy.url)
direct = subprocess.run([WHIT, "agent", "-p", "x", "--url", e.url, "--project", "p"], env=env, capture_output=True,
                        text=True, timeout=600, start_new_session=True, stdin=subprocess.DEVNULL)
wanted(direct.returncode == 0 and len(e.requests) == 1 and not proxy.requests, f"by a proxy: {direct.stderr}")

open_key = subprocess.run([WHIT, "agent", "-p", "x", "--url", "http://example.invalid/v1", "--project", "p"],
                          env=dict(os.environ, WHIT_API_KEY="k"), capture_output=True, text=True)
wanted(open_key.returncode == 2 and "unencrypted" in open_key.stderr, f"a key in the open: {open_key.stderr}")
sys.exit(failed)
