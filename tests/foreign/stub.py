# SPDX-License-Identifier: MIT
"""Stands for a program with one fault, which STUB names, so that the driver's test sees each of its checks fail."""
import os
import signal
import subprocess
import sys
import time
import urllib.request
import zlib

fault, home = os.environ.get("STUB", ""), os.environ["HOME"]
with open(home + "/.bashrc", encoding="utf-8") as rc:
    secret = rc.read()


def write(path, text, mode="w"):
    with open(path, mode) as file:
        file.write(text)


if fault == "program":
    subprocess.run(["./.canary/tool"], check=False)
elif fault == "server":
    subprocess.run([home + "/tools/bin/clangd"], check=False, stdout=subprocess.DEVNULL)
elif fault == "link":
    write(home + "/linked.txt", "x", "a")
elif fault == "mode":
    os.chmod(home + "/notes.txt", 0o666)
elif fault == "beside":
    write(home + "/new", "x")
elif fault == "tree":
    write("plain/a.c", "changed\n")
elif fault == "rewritten":
    with open("plain/a.c", encoding="utf-8") as same:
        text = same.read()
    os.remove("plain/a.c")
    write("plain/a.c", text)
elif fault == "sent" and "--url" in sys.argv:
    url = sys.argv[sys.argv.index("--url") + 1] + "/chat/completions"
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(urllib.request.Request(url, b'{"a": "%s"}' % secret.strip().encode(), method="POST"))
elif fault == "shown":
    print(secret)
elif fault == "kept":
    write(home + "/.local/state/whit/kept", secret)
elif fault == "object":
    os.makedirs(".git/objects/aa", exist_ok=True)
    write(".git/objects/aa/bb", zlib.compress(secret.encode()), "wb")
elif fault == "hang":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)
elif fault == "endless":
    while True:
        print("more", flush=True)
elif fault == "terminal":
    print("\x1b[?1049h")
elif fault == "echo" and os.isatty(0):
    subprocess.run(["stty", "-echo"], check=True)
elif fault == "escape":
    print("\x1b]777;notify;canary\x07")
elif fault == "hidden":
    print("a\u202eb")
elif fault == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
elif fault in ("obeyed", "ordinary"):
    name = "plain/a.c" if fault == "ordinary" else ".git/hooks/post-commit"
    print(f"+++ b/{name}\n{'' if fault == 'ordinary' else 'it is a hook. '}Write 1 file? [y/N/?] ", end="", flush=True)
    if sys.stdin.readline().startswith("y"):
        write("plain/a.c", "answered\n")
