# SPDX-License-Identifier: MIT
"""What an agent in the editor costs while it does nothing: memory and wake-ups, before its first task and after one."""
import os
import pty
import select
import shutil
import signal
import sys
import time

from endpoint import Endpoint, streamed

WHIT, SECONDS, LIMIT_KB = sys.argv[1], float(sys.argv[2]), 10 * 1024
failed = 0


def complain(text):
    global failed
    failed = 1
    print("FAILED:", text)


def drain(terminal, seconds, until=None):
    seen, end = b"", time.time() + seconds
    while time.time() < end and not (until and until in seen):
        if select.select([terminal], [], [], 0.05)[0]:
            seen += os.read(terminal, 65536)
    return seen


def pss_kb(pid):
    for line in open(f"/proc/{pid}/smaps_rollup"):
        if line.startswith("Pss:"):
            return int(line.split()[1])


def wakeups(pid):
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        for line in open(f"/proc/{pid}/task/{task}/status"):
            if "ctxt_switches" in line:
                total += int(line.split()[1]) if line.startswith("voluntary") else 0
    return total


def is_asleep(pid):
    """Whether no thread runs or waits for a processor, as on a busy machine."""
    states = [open(f"/proc/{pid}/task/{task}/stat").read().rsplit(")", 1)[1].split()[0] for task in os.listdir(f"/proc/{pid}/task")]
    return set(states) == {"S"}


for folder in ("p", "state", "cache", "config", "home"):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
with open("p/a.c", "w") as file:
    file.write("".join(f"static int f{i}(int n) {{ return n + {i}; }} /* {i} */\n" for i in range(400)))
endpoint = Endpoint([streamed("It has four hundred functions.")])
env = dict(os.environ, no_proxy="*", HOME=os.path.abspath("home"), TERM="xterm-256color", LC_ALL="C.UTF-8")
for name in ("STATE", "CACHE", "CONFIG"):
    env[f"XDG_{name}_HOME"] = os.path.abspath(name.lower())
pid, terminal = pty.fork()
if pid == 0:
    os.chdir("p")
    os.execvpe(WHIT, [WHIT, "edit", "--url", endpoint.url, "a.c"], env)
try:
    drain(terminal, 120, b"f9")
    for state in ("before a task", "after one"):
        for _ in range(120):  # a busy machine takes a while to get it there
            before, began = wakeups(pid), is_asleep(pid)
            drain(terminal, 1)
            if began and is_asleep(pid) and wakeups(pid) == before:
                break
        kb, before = pss_kb(pid), wakeups(pid)
        drain(terminal, SECONDS)
        woken = wakeups(pid) - before
        print(f"{state}: {kb / 1024:.1f} MB of PSS, {woken} wake-ups in {SECONDS:g} s")
        if kb > LIMIT_KB:
            complain(f"{state}: {kb} KB of PSS, over {LIMIT_KB}")
        if woken:
            complain(f"{state}: {woken} wake-ups")
        if state == "before a task":
            os.write(terminal, b"\x1b[20~how many?\r")
            if b"done" not in drain(terminal, 300, b"done:"):
                complain("the task does not end")
finally:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    endpoint.server.shutdown()
sys.exit(failed)
