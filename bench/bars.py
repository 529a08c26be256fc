# SPDX-License-Identifier: MIT
"""Every figure that the editor and the agent are held to, beside its bar, in one go: python3 bench/bars.py build [NAME...]

NAMEs choose among: start, edits, gigabyte, line, search, graph, help, undo. Takes some minutes, 3 GB below $TMPDIR and
the built bench_edit, bench_graph and test_agent_turns. Each figure is the best or the median of several runs, as its
line says; on a busy machine look at the processor time first."""
import fcntl
import os
import pty
import resource
import select
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

BUILD = os.path.abspath(sys.argv[1])
CHOSEN = sys.argv[2:]
WHIT = BUILD + "/whit"
HERE = os.path.dirname(os.path.abspath(__file__))
WORK = tempfile.mkdtemp(prefix="whit-bars-")
ENV = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "HOME": WORK + "/home", "PATH": os.environ["PATH"]}


def told(name, figure, bar):
    print(f"| {name} | {figure} | {bar} |", flush=True)


class Editor:
    """whit edit in a pseudo-terminal of 120x40."""

    def __init__(self, *arguments):
        self.begun = time.perf_counter()
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(WORK)
            os.execve(WHIT, [WHIT, "edit", "--no-journal", *arguments], ENV)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def until(self, wanted, seconds=120):
        """Milliseconds until these bytes come; None where they do not."""
        begun, seen = time.perf_counter(), b""
        while time.perf_counter() - begun < seconds:
            if select.select([self.terminal], [], [], 0.001)[0]:
                try:
                    seen += os.read(self.terminal, 1 << 16)
                except OSError:
                    return None
                if wanted and wanted in seen:
                    return (time.perf_counter() - begun) * 1000
        return None

    def send(self, keys):
        os.write(self.terminal, keys)

    def pss_mib(self):
        for line in open(f"/proc/{self.pid}/smaps_rollup"):
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)


def start():
    print(subprocess.run([sys.executable, HERE + "/editors.py", WHIT, "--idle", "60"], capture_output=True, text=True).stdout)
    print("bars: first paint 10 ms or 1.5x vis; 8 MiB of PSS (10 MiB with the agent); no wake-up in 60 s\n")


def edits():
    out = subprocess.run([BUILD + "/bench/bench_edit"], capture_output=True, text=True, check=True).stdout
    told("a million edits in 100 MB", out.strip(), "median 1 us, 99.9 % 10 us")


def big_file():
    path = WORK + "/big.txt"
    if not os.path.exists(path):
        block = b"".join(b"line %07d of a text that is long, with words\n" % i for i in range(22000))
        with open(path, "wb") as file:
            file.write(b"the first line\n")
            for _ in range((1 << 30) // len(block)):
                file.write(block)
            file.write(b"needle42 at the end\n")
        with open(path, "rb") as file:
            while file.read(1 << 24):
                pass
    return path


def gigabyte():
    path, best, memory = big_file(), 1e9, 0
    for run in range(6):
        e = Editor(path)
        e.until(b"0000030")
        best = min(best, (time.perf_counter() - e.begun) * 1000)
        if run == 5:
            e.until(None, 4)
            memory = e.pss_mib()
        e.end()
    told("1 GB: first paint, best of 6; PSS after 4 s", f"{best:.1f} ms, {memory:.1f} MiB", "50 ms, 20 MiB")


def line():
    path, took = WORK + "/line.txt", []
    with open(path, "wb") as file:
        for _ in range(100):
            file.write(b"one long line " * 74898 + b"xxxx")
    e = Editor(path)
    e.until(b"one long line")
    e.until(None, 2)
    for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ":
        begun = time.perf_counter()
        e.send(letter.encode())
        e.until(letter.encode(), 20)
        took.append((time.perf_counter() - begun) * 1000)
        e.until(None, 0.05)
    e.end()
    told("a key in a line of 100 MB: median, longest of 26", f"{statistics.median(took):.2f} ms, {max(took):.2f} ms", "5 ms")


def search():
    path, ours, theirs = big_file(), [], []
    pattern = b"n[e]+dle[0-9]+"
    for _ in range(3):
        begun = time.perf_counter()
        subprocess.run(["grep", "-cE", pattern.decode(), path], env=ENV, stdout=subprocess.DEVNULL, check=True)
        theirs.append(time.perf_counter() - begun)
        e = Editor(path)
        e.until(b"0000030")
        e.until(None, 4)
        e.send(b"\x06\x1br")  # find, a regular expression
        e.until(None, 0.5)
        begun = time.perf_counter()
        e.send(b"\x1b[200~" + pattern + b"\x1b[201~")
        e.until(b"needle42")
        ours.append(time.perf_counter() - begun)
        e.end()
    told("a regular expression in 1 GB, best of 3: whit edit, grep -E", f"{min(ours):.2f} s, {min(theirs):.2f} s", "twice grep's")


def graph():
    project, cache = WORK + "/project", WORK + "/cache"
    sources = [f for f in subprocess.run(["git", "-C", HERE + "/..", "ls-files", "src", "tests", "include"], capture_output=True,
                                         text=True, check=True).stdout.split() if f.endswith((".c", ".h", ".inc"))]
    texts = {f: open(HERE + "/../" + f, errors="replace").read() for f in sources}
    n_lines = sum(t.count("\n") for t in texts.values())
    for copy in range(1 + 1000000 // n_lines):  # the same code under other names
        for f, text in texts.items():
            os.makedirs(os.path.dirname(f"{project}/part{copy}/{f}"), exist_ok=True)
            with open(f"{project}/part{copy}/{f}", "w") as file:
                file.write(text.replace("whit_", f"w{copy}_"))
    os.makedirs(cache)
    for what in ("built", "opened"):
        out = subprocess.run([BUILD + "/bench/bench_graph", project, cache], capture_output=True, text=True, check=True).stdout
        told(f"graph, {what}", out.strip(), "1 M lines in 20 s and 150 MiB; definition 1 us; neighbour 5 ns; edit 2 ms")


def help():
    wall, cpu = [], []
    for _ in range(100):
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([WHIT, "agent", "--help"], stdout=subprocess.DEVNULL, check=True)
        wall.append((time.perf_counter() - begun) * 1000)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
    told("whit agent --help: best, median of 100; processor time, median",
         f"{min(wall):.1f} ms, {statistics.median(wall):.1f} ms; {statistics.median(cpu):.1f} ms", "5 ms")


def undo():
    test = BUILD + "/tests/test_agent_turns"
    in_memory = ["unshare", "-rm", "sh", "-c", f"mount -t tmpfs whit /tmp && exec {test}"]
    for where, command in (("on disk", [test]), ("in memory (tmpfs)", in_memory)):
        out = subprocess.run(command, capture_output=True, text=True)
        said = [x.strip() for x in (out.stdout + out.stderr).splitlines() if "100 files" in x]
        told(f"100 files rolled back {where}, best of 20", said[0] if said else "could not be run here", "5 ms")


print("| what | figure | bar |\n|---|---|---|")
try:
    os.makedirs(WORK + "/home")
    for part in (edits, gigabyte, line, search, graph, help, undo, start):
        if not CHOSEN or part.__name__ in CHOSEN:
            part()
    print(f"\nload {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
finally:
    shutil.rmtree(WORK)
