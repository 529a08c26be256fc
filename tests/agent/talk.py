# SPDX-License-Identifier: MIT
"""Streams, sessions, bounds of cost, tasks that are typed, and a model in the same process."""
import json
import os
import shutil
import stat
import subprocess
import sys

import checks
from checks import environment, wanted
from endpoint import Endpoint, at_terminal, message, streamed

WHIT = sys.argv[1]
SOURCE = "int a;\n"


def agent(answers, *more, status=0, stdin=None, new=True, prompt=("-p", "Do it.")):
    if new:
        for folder in ("p", "state", "cache", "config", "home"):
            shutil.rmtree(folder, ignore_errors=True)
        os.makedirs("p")
        os.makedirs("home")
        open("p/a.c", "w").write(SOURCE)
    where = []
    endpoint = Endpoint(answers)
    if answers is not None:
        where = ["--url", endpoint.url]
    done = subprocess.run([WHIT, "agent", *prompt, *where, "--project", "p", "--allow", "yellow", *more],
                          env=environment(), capture_output=True, text=True, start_new_session=True, input=stdin or "",
                          timeout=300)
    endpoint.server.shutdown()
    wanted(done.returncode == status, f"status {done.returncode}, not {status}: {done.stderr}")
    return done, endpoint


def contents(endpoint, role="tool"):
    return [m["content"] for m in endpoint.requests[-1]["messages"] if m["role"] == role]


WRITE = ("write", {"path": "b.c", "content": "int b; /* \u00e9 */\n"})
# ---- streams: in pieces of any size, with either line end, with and without a last word
for pieces in (1, 3, 7, 100000):
    for line in ("\n", "\r\n"):
        done, e = agent([streamed("thinking", [WRITE, ("read", {"path": "a.c"})], pieces, line=line), streamed("The end.", n=pieces)],
                        "--json")
        report = json.loads(done.stdout)
        wanted(report["answer"] == "The end." and report["calls"] == 2 and report["tokens_in"] == 20, f"{pieces}: {report}")
        wanted(open("p/b.c").read() == WRITE[1]["content"], "a streamed write")
        wanted(contents(e)[1] == SOURCE, f"a streamed call: {contents(e)}")
        calls = [m for m in e.requests[-1]["messages"] if m.get("tool_calls")][0]["tool_calls"]
        wanted([c["id"] for c in calls] == ["s0", "s1"], f"ids: {calls}")
done, e = agent([streamed("a", end=""), ], "--json")
wanted(json.loads(done.stdout)["answer"] == "a", "no [DONE]")
for broken in (streamed("x" * 50, cut=200), streamed("x", [WRITE], cut=420)):
    done, e = agent([broken, broken, streamed("whole")])
    wanted(done.stdout == "whole\n" and len(e.requests) == 3 and "was cut off" in done.stderr, f"a cut stream: {done.stderr}")
# Behind [DONE] an answer is whole, however its connection ends; a stream may begin with any field.
status, body, headers = streamed("whole")
done, e = agent([(status, body, {**headers, "Content-Length": str(len(body) + 9)})])
wanted(done.stdout == "whole\n" and len(e.requests) == 1, f"cut behind [DONE]: {done.stderr}")
done, e = agent([(status, body + b"data: x\n\n", headers)])
wanted(done.stdout == "whole\n", f"behind [DONE]: {done.stderr}")
done, e = agent([(status, body.replace(b": a comment", b"id: 7", 1), headers)])
wanted(done.stdout == "whole\n", f"a stream that begins with an id: {done.stderr}")
for bad, words in ((streamed("x", end="data: {broken\n\n", extra=()), "is not JSON"),
                   (streamed("x", end='data: {"error": {"message": "over\\u001b[2Jloaded"}}\n\n'), "loaded"),
                   (streamed("x", [("read", {"path": "a.c"})], extra=[{"choices": [{"delta": {"tool_calls": [{"index": 9999}]}}]}]), "too many calls"),
                   (streamed("x" * (9 << 20), n=1 << 16), "is larger than")):
    done, e = agent([bad], status=4 if words == "is larger than" else 3)
    lines = [x for x in done.stderr.splitlines() if x.startswith("whit agent:")]
    wanted(len(lines) == 1 and words in lines[0] and "\x1b" not in lines[0], f"{words}: {done.stderr}")
wanted(agent([streamed("y" * (1 << 20), n=4096)])[0].stdout == "y" * (1 << 20) + "\n", "an answer of 1 MB")
wanted(e.requests[0]["stream"] is True, "a stream is asked for")

# ---- cost is bounded, and said
done, e = agent([message(None, [("list", {})])] * 9, "--max-cost", "40", status=4)
wanted(len(e.requests) == 3 and "--max-cost" in done.stderr and "30 tokens in" in done.stderr, f"cost: {done.stderr}")
done, e = agent([(200, json.dumps({"choices": [{"message": {"content": "z" * 400}}]}).encode(), {})])
wanted("about" in done.stderr and "100 out" in done.stderr, f"guessed cost: {done.stderr}")

# ---- a session goes on
if os.path.exists("s.json"):
    os.remove("s.json")
agent([message(None, [WRITE]), message("one")], "--session", "s.json")
wanted(stat.S_IMODE(os.stat("s.json").st_mode) == 0o600, "the session's mode")
done, e = agent([message("two")], "--session", "s.json", new=False)
roles = [m["role"] for m in e.requests[0]["messages"]]
wanted(roles == ["system", "user", "assistant", "tool", "assistant", "user"], f"the session: {roles}")
wanted(len(json.load(open("s.json"))["messages"]) == 7, "the session is kept")
for text in ("{", "[]", '{"whit_session": 1, "messages": [3]}', '{"whit_session": 2, "messages": []}',
             '{"whit_session": 1, "messages": [{"role": "user", "content": "", "tool_calls": [{}]}]}',
             '{"whit_session": 1, "messages": [], "notes": "would be lost"}'):
    open("bad.json", "w").write(text)
    done, e = agent([message("x")], "--session", "bad.json", status=3)
    wanted("bad.json" in done.stderr and not e.requests and open("bad.json").read() == text, f"{text}: {done.stderr}")
    os.remove("bad.json")

# ---- old results become lines, what was said stays
big = "".join(f"{i:07}\n" for i in range(3000))
done, e = agent([message(None, [("write", {"path": "big.txt", "content": big})])]
                + [message(f"note {i}", [("read", {"path": "big.txt", "first": i})]) for i in range(1, 40)] + [message("end")])
got = contents(e)
short = [g for g in got if "left out" in g]
wanted(short and "read {" in short[0] and "0000000" in short[0] and "\n" not in short[0], f"summaries: {short[:1]}")
wanted(sum(map(len, got)) < 420000 and "[cut:" in got[-1], "the context is bounded")
wanted([m["content"] for m in e.requests[-1]["messages"] if m["role"] == "user"] == ["Do it."], "the task stays")

# ---- tasks that are typed
done, e = agent([message("first answer"), message(None, [WRITE]), message("second answer")], prompt=(),
                stdin="say something\n/cost\n/nothing\nwrite it\n/undo\n/log\n/bye\nnever\n")
wanted("first answer" in done.stdout and "second answer" in done.stdout and not os.path.exists("p/b.c"), f"typed: {done}")
wanted(len(e.requests) == 3 and [m["role"] for m in e.requests[1]["messages"]] == ["system", "user", "assistant", "user"],
       "a typed task goes on behind the one before")
wanted("undo of turn 1" in done.stdout and "is not a command" in done.stderr, f"commands: {done.stdout} {done.stderr}")
e = Endpoint([streamed("A streamed answer.", n=4), streamed("Another.")])
status, seen = at_terminal([WHIT, "agent", "--url", e.url, "--project", "p"],
                           [("agent>", "hello\n"), ("streamed answer.", ""), ("agent>", "more\n"), ("Another.", ""), ("agent>", "/bye\n")], environment())
wanted(status == 0 and len(e.requests) == 2, f"at a terminal: {seen}")
# The line that the person ran goes with the next task, without a key in it.
TOKEN = "ghp_" + 6 * "aB3456"
e = Endpoint([message("done")])
status, seen = at_terminal([WHIT, "agent", "--url", e.url, "--project", "p"],
                           [("agent>", f"!echo {TOKEN} | wc -c\n"), ("agent>", "go on\n"), ("agent>", "/bye\n")], environment())
asked = json.dumps(e.requests)
wanted(TOKEN not in asked and "The person ran `echo [a key or token, which is not shown] | wc -c`" in asked, f"a key in a command: {seen}")
# Nor is a key in what it printed, of which another program has coloured a part.
open("p/rest.txt", "w").write(TOKEN[4:] + "\n")
e = Endpoint([message("done")])
status, seen = at_terminal([WHIT, "agent", "--url", e.url, "--project", "p"],
                           [("agent>", "!printf '\\033[01;31mghp_\\033[m'; cat rest.txt\n"), ("agent>", "go on\n"), ("agent>", "/bye\n")], environment())
asked = json.dumps(e.requests)
wanted(TOKEN[4:] not in asked and "[a key or token" in asked, f"a key with colours: {seen}")
os.remove("p/rest.txt")
# Nor in UTF-16, in which programs of Windows write files.
for form in ("utf-16-le", "utf-16-be", "utf-16"):
    open("p/wide.txt", "wb").write(f"the token is {TOKEN} here\n".encode(form))
    e = Endpoint([message("done")])
    status, seen = at_terminal([WHIT, "agent", "--url", e.url, "--project", "p"],
                               [("agent>", "!cat wide.txt\n"), ("agent>", "go on\n"), ("agent>", "/bye\n")], environment())
    asked = json.dumps(e.requests)
    wanted("?".join(TOKEN[4:]) not in asked and "a text in UTF-16 with a key" in asked, f"a key in {form}: {asked[-600:]}")
os.remove("p/wide.txt")

# ---- a model in this process
for seed in range(4):
    run = subprocess.run([WHIT, "agent", "-p", "Read a.c.", "-m", "tales", "-c", "1024", "--max-turns", "2", "--json", "--temp",
                          "1", "--seed", str(seed), "--project", "p"], env=environment(), capture_output=True, text=True,
                         stdin=subprocess.DEVNULL, start_new_session=True, timeout=300)
    wanted(run.returncode in (0, 4) and json.loads(run.stdout)["answers"] >= 1, f"tales: {run.stderr}")
run = subprocess.run([WHIT, "agent", "-p", "x", "--project", "p"], capture_output=True, text=True,
                     env=dict(environment(), WHIT_PORT="1", OLLAMA_HOST="127.0.0.1:1"))
wanted(run.returncode == 2 and "-m MODEL" in run.stderr, f"no model: {run.stderr}")
sys.exit(checks.failed)
