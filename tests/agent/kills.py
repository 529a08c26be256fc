# SPDX-License-Identifier: MIT
"""Kills at random moments of staging, gate, commit, undo and redo: the tree is as before or as after, byte for byte,
with modes, links and line ends. usage: kills.py WHIT KILLS"""
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import checks
from checks import wanted
from endpoint import Endpoint, message

WHIT, KILLS = sys.argv[1], int(sys.argv[2])


env = dict(os.environ, no_proxy="*", HOME=os.path.abspath("home"))
for name in ("STATE", "CACHE", "CONFIG"):
    env[f"XDG_{name}_HOME"] = os.path.abspath(name.lower())
for folder in ("p", "state", "cache", "config", "home"):
    shutil.rmtree(folder, ignore_errors=True)
os.makedirs("p/deep/er")
os.makedirs("home")
os.makedirs("p/.whit")
open("p/.whit/agent.json", "w").write('{"check": ["test -e f0 && sleep 0.02"]}')
NAMES = [f"f{i}" for i in range(6)] + [f"deep/er/g{i}" for i in range(6)]


def content(name, version):
    end = "\r\n" if name.endswith("3") else "\n"
    return end.join(f"{name} {version} {i}" for i in range(200)) + ("" if name.endswith("4") else end)


for name in NAMES[:-1]: # the last one is made by the first turn
    open(f"p/{name}", "w", newline="").write(content(name, 0))
os.chmod("p/f1", 0o755)
os.chmod("p/f2", 0o600)
os.symlink("f0", "p/link")
# A file of two names: a write to it would need a person.
open("p/twice", "w").write("x\n")
os.link("p/twice", "p/hard")


def tree():
    found = {}
    for at, folders, files in os.walk("p"):
        for name in files:
            path = os.path.join(at, name)
            info = os.lstat(path)
            data = os.readlink(path).encode() if os.path.islink(path) else open(path, "rb").read()
            found[path] = (info.st_mode, hashlib.sha256(data).hexdigest())
    return found


def processes():
    """Of agents and what they run, that work in this folder or below."""
    here, found = os.getcwd(), []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = open(f"/proc/{number}/cmdline", "rb").read().split(b"\0")
            if words[1:2] == [b"agent"] and os.readlink(f"/proc/{number}/cwd").startswith(here):
                found.append(int(number))
        except OSError:
            pass
    return found


def wait_for_none(why):
    deadline = time.time() + 120
    while time.time() < deadline:
        if not processes():
            return
        time.sleep(0.01)
    wanted(False, f"{why}: processes are left: {processes()}")
    for number in processes():
        os.kill(number, signal.SIGKILL)


def whit(*words):
    done = subprocess.run([WHIT, "agent", *words, "--project", "p"], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    wanted(done.returncode == 0, f"{words}: {done.stderr}")
    return done


def recover():
    """A call that may write takes an interrupted turn back, also if there is nothing that it can do then."""
    done = subprocess.run([WHIT, "agent", "undo", "1000000", "--project", "p"], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    wanted(done.returncode == 2 and "there is no turn 1000000" in done.stderr, f"recovery: {done}")


def turn(version):
    calls = [("write", {"path": n, "content": content(n, version)}) for n in NAMES]
    endpoint = Endpoint([message(None, calls), message("done")])
    return endpoint, ["-p", "x", "--url", endpoint.url, "--allow", "yellow"]


rng = random.Random(5)
n_before = n_after = n_done = 0
# The first turn ends, so that its time tells when to kill the others on this machine.
begun = time.time()
version, undone = 1, None
endpoint, words = turn(version)
whit(*words)
endpoint.server.shutdown()
whole = time.time() - begun
moments = {"turn": 1.2 * whole, "undo": 0.4 * whole, "redo": 0.4 * whole}
for i in range(KILLS):
    before = tree()
    endpoint = None
    kind = rng.choice(["turn", "turn", "undo" if undone is None else "redo"])
    if kind == "turn":
        version += 1
        endpoint, words = turn(version)
    else:
        words = [kind]
    process = subprocess.Popen([WHIT, "agent", *words, "--project", "p"], env=env, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True)
    begun = time.time()
    try:
        process.wait(timeout=rng.random() * moments[kind])
        moments[kind] = max(0.02, 1.3 * (time.time() - begun))  # it was done sooner: kill earlier
        n_done += 1
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        moments[kind] = min(4 * whole, 1.2 * moments[kind])
    wait_for_none(f"kill {i}")
    if endpoint:
        endpoint.server.shutdown()
    cut_off = tree()
    whit("log")
    wanted(tree() == cut_off, f"kill {i}: the log writes")
    recover()
    now = tree()
    if now == before:
        n_before += 1
    else:
        n_after += 1
        if kind == "turn":
            undone = None
            for n in NAMES:
                wanted(open(f"p/{n}", newline="").read() == content(n, version), f"kill {i}: {n} is neither before nor after")
        else:
            undone = True if kind == "undo" else None
        same = {p: now[p] for p in before if p.endswith(("link", "hard", "agent.json"))}
        wanted(all(before[p] == same[p] for p in same), f"kill {i}: a file that no turn writes")
        wanted(all(now[p][0] == before[p][0] for p in before if p in now), f"kill {i}: modes")
    if checks.failed:
        break
# A whole turn and its undo work after all that.
before = tree()
endpoint, words = turn(version + 1)
whit(*words)
wanted(tree() != before, "the last turn")
whit("undo")
wanted(tree() == before, "the last undo")
left = [f for _, _, files in os.walk("p") for f in files if ".tmp-" in f or f.startswith(".whit-turn")]
wanted(not left, f"files are left: {left}")
wanted(min(n_before, n_after) > KILLS // 20, f"kills at one side alone: {n_before} before, {n_after} after")
print(f"{KILLS} kills: {n_before} before, {n_after} after, {n_done} of them were done already")
sys.exit(checks.failed)
