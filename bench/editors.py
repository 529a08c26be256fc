# SPDX-License-Identifier: MIT
"""How fast terminal editors paint a file, and what they keep in memory: python3 bench/editors.py build/whit

A pseudo-terminal of 120x40, a C file of 400 lines in a project of 10,000, the best of 12 warm starts: from fork to the
last of the file's lines that fit, on the terminal's side; then PSS of all its processes 2 s later, and wake-ups in
--idle seconds (0: not measured). Editors that are not installed are left out."""
import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

WHIT = os.path.abspath(sys.argv[1])
IDLE = float(sys.argv[sys.argv.index("--idle") + 1]) if "--idle" in sys.argv else 0
RUNS, LINES, PROJECT_FILES = 12, 400, 25
EDITORS = [("whit edit", [WHIT, "edit"]), ("whit edit --url (agent attached)", [WHIT, "edit", "--url", "http://127.0.0.1:9/v1"]),
           ("vis", ["vis"]), ("kak -n", ["kak", "-n"]), ("vim -u NONE", ["vim", "-u", "NONE"]), ("nano", ["nano"]),
           ("nvim -u NONE", ["nvim", "-u", "NONE"]), ("nvim --clean", ["nvim", "--clean"]), ("micro", ["micro"])]


def start(command, folder):
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        env = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "HOME": folder + "/home", "PATH": os.environ["PATH"]}
        os.execvpe(command[0], [*command, "main.c"], env)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    return pid, terminal


def read(terminal, until, seconds):
    seen, end = b"", time.perf_counter() + seconds
    while time.perf_counter() < end:
        if not select.select([terminal], [], [], 0.0005)[0]:
            continue
        try:
            seen += os.read(terminal, 65536)
        except OSError:
            return False
        if b"\x1b[c" in seen or b"\x1b[>c" in seen:  # an editor that asks what the terminal is
            os.write(terminal, b"\x1b[?62;c")
            seen = seen.replace(b"\x1b[c", b"").replace(b"\x1b[>c", b"")
        if until and until in seen:
            return True
    return False


def family(pid):
    children = open(f"/proc/{pid}/task/{pid}/children").read().split()
    return [pid] + [p for child in children for p in family(int(child))]


def pss_kb(pid):
    total = 0
    for one in family(pid):
        for line in open(f"/proc/{one}/smaps_rollup"):
            total += int(line.split()[1]) if line.startswith("Pss:") else 0
    return total


def wakeups(pid):
    total = 0
    for one in family(pid):
        for task in os.listdir(f"/proc/{one}/task"):
            for line in open(f"/proc/{one}/task/{task}/status"):
                total += int(line.split()[1]) if line.startswith("voluntary") else 0
    return total


def stop(pid, terminal):
    for one in reversed(family(pid)):
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            pass
    os.waitpid(pid, 0)
    os.close(terminal)


folder = tempfile.mkdtemp()
try:
    os.makedirs(folder + "/home")
    for i in range(PROJECT_FILES):
        with open(f"{folder}/{'main' if i == 0 else f'part{i}'}.c", "w") as file:
            for k in range(LINES):
                file.write(f"static int value_{i}_{k}(int n) {{ return n * {k} + 0x{k:x}; }} /* line {k} */\n")
    if shutil.which("git"):
        for command in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
            subprocess.run(["git", "-C", folder, *command], check=True)
    print("| editor | first paint ms | PSS MiB |" + (f" wake-ups in {IDLE:g} s |" if IDLE else ""))
    print("|---|---|---|" + ("---|" if IDLE else ""))
    for name, command in EDITORS:
        if not shutil.which(command[0]):
            print(f"| {name} | not installed | |" + (" |" if IDLE else ""))
            continue
        best, memory, woken = None, 0, 0
        for run in range(RUNS):
            begun = time.perf_counter()
            pid, terminal = start(command, folder)
            painted = read(terminal, b"value_0_30", 5)
            took = (time.perf_counter() - begun) * 1000
            if painted:
                best = took if best is None else min(best, took)
            if run == RUNS - 1:
                read(terminal, None, 2)
                memory = pss_kb(pid) / 1024
                if IDLE:
                    before = wakeups(pid)
                    read(terminal, None, IDLE)
                    woken = wakeups(pid) - before
            stop(pid, terminal)
        shown = f"{best:.1f}" if best is not None else "not seen"
        print(f"| {name} | {shown} | {memory:.1f} |" + (f" {woken} |" if IDLE else ""), flush=True)
    print(f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
finally:
    shutil.rmtree(folder)
