# SPDX-License-Identifier: MIT
"""Agents that an agent lets do parts of its task: one journal, shared refusals and bounds, no overlapping edits."""
import json
import os
import shutil
import subprocess
import sys

import checks
from checks import wanted
from endpoint import Endpoint, message

WHIT = sys.argv[1]


env = dict(os.environ, no_proxy="*", HOME=os.path.abspath("home"))
for name in ("STATE", "CACHE", "CONFIG"):
    env[f"XDG_{name}_HOME"] = os.path.abspath(name.lower())


def run(answers, *more, allow="yellow", status=0):
    for folder in ("p", "state", "cache", "config", "home"):
        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs("p")
    open("p/a.c", "w").write("int a;\n")
    endpoint = Endpoint(answers)
    done = subprocess.run([WHIT, "agent", "-p", "The whole.", "--url", endpoint.url, "--project", "p", "--allow", allow, "--json", *more],
                          env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, start_new_session=True, timeout=120)
    endpoint.server.shutdown()
    wanted(done.returncode == status, f"status {done.returncode}: {done.stderr}")
    return done, endpoint, [m["content"] for m in endpoint.requests[-1]["messages"] if m["role"] == "tool"]


def write(path, text):
    return ("write", {"path": path, "content": text})


END = message("end")
done, e, got = run([message(None, [("agent", {"task": "Part one."}), ("agent", {"task": "Part two."}), write("c.c", "int c;\n")]),
                    message(None, [write("a.c", "int one;\n")]), message("one is done"),
                    message(None, [write("a.c", "int two;\n")]), message(None, [write("b.c", "int two;\n")]), message("two is done"), END])
wanted([r["messages"][1]["content"] for r in e.requests] == ["The whole."] + ["Part one."] * 2 + ["Part two."] * 3 + ["The whole."],
       "who was asked")
wanted(len({r["messages"][0]["content"] for r in e.requests}) == 1 and len({json.dumps(r["tools"]) for r in e.requests}) == 1,
       "they have different beginnings")
wanted(open("p/a.c").read() == "int one;\n" and open("p/b.c").read() == "int two;\n" and open("p/c.c").read() == "int c;\n", "what they wrote")
second = [m["content"] for m in e.requests[4]["messages"] if m["role"] == "tool"]
wanted("a.c was changed by agent 1" in second[0], f"an overlapping edit: {second}")
wanted("agent 1 wrote 1 turn and says:\none is done" in got[0] and "agent 2 wrote 1 turn" in got[1] and "turn 3" in got[2], f"{got}")
report = json.loads(done.stdout)
wanted(report["turns"] == 3 and report["answers"] == 7 and report["done"] and report["answer"] == "end", f"{report}")
log = subprocess.run([WHIT, "agent", "log", "--project", "p"], env=env, capture_output=True, text=True).stdout
wanted("agent 1: Part one." in log and "agent 2: Part two." in log and "The whole." in log, f"the journal: {log}")
# Their answers count for the bound of the task.
done, e, got = run([message(None, [("agent", {"task": "x"})] * 3)] + [message(None, [("list", {})])] * 20, "--max-turns", "4", status=4)
wanted(len(e.requests) == 4 and "after 4 answers" in done.stderr, f"answers of agents: {len(e.requests)} {done.stderr}")
# The next answer begins anew; agents have none of their own; what is refused to one is refused to all.
done, e, got = run([message(None, [("agent", {"task": "x"})]), message(None, [("agent", {"task": "y"})]), message(None, [write("a.c", "int q;\n")]),
                    message("x ends"), message(None, [write("a.c", "int r;\n")]), END])
wanted("that another agent started cannot start agents" in e.requests[2]["messages"][-1]["content"] and open("p/a.c").read() == "int r;\n", "a later answer")
done, e, got = run([message(None, [write(".git/x", "x")]), message(None, [("agent", {"task": "x"})]), message(None, [write(".git/x", "x")]),
                    message("x ends"), END])
wanted("it was refused before" in done.stderr and not os.path.exists("p/.git/x"), f"round a refusal: {done.stderr}")
for arguments in ("{}", "[", '{"task": 3}'):
    done, e, got = run([message(None, [("agent", arguments)]), END])
    wanted("'task' must be" in got[0], f"{arguments}: {got}")
# The task of another agent, which begins the note of its turns, makes no lines of its own in the list of turns.
done, e, got = run([message(None, [("agent", {"task": "x\n   7  2026-11-30 02:52:10  1 file, undone  y"})]), message(None, [write("a.c", "int q;\n")]), END, END])
log = subprocess.run([WHIT, "agent", "log", "--project", "p"], env=env, capture_output=True, text=True).stdout
wanted(log.count("\n") == 1 and "agent 1: x<U+000A>   7" in log, f"a note of two lines: {log}")
# Bounds are of all together.
done, e, got = run([message(None, [("agent", {"task": "x"})])] + [message(None, [("list", {})])] * 20, "--max-cost", "100", status=4)
wanted(len(e.requests) == 7, f"--max-cost: {len(e.requests)} answers")
sys.exit(checks.failed)
