# SPDX-License-Identifier: MIT
# Starts verbs, sends signals, looks at how they end (see signals.sh). The program is in argv.
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import checks
from checks import check

program = sys.argv[1:]
SESSION = ["-c", "60000", "-t", "3"]


def default_sigint():
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(*arguments, **more):
    return subprocess.Popen(program + list(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=default_sigint, **more)


def wait_for_handler(pid):
    """Until the program catches SIGINT: a busy machine may not have started it yet."""
    deadline = time.time() + 60
    while time.time() < deadline:
        with open("/proc/%d/status" % pid, encoding="ascii") as status:
            caught = [int(line.split()[1], 16) for line in status if line.startswith("SigCgt")]
        if not caught or caught[0] >> (signal.SIGINT - 1) & 1:
            return
        time.sleep(0.01)


def interrupted(name, signals, *arguments, stdin=subprocess.DEVNULL):
    process = start(*arguments, stdin=stdin)
    if arguments[0] == "run":
        process.stdout.read(12)  # it is at work
    else:
        wait_for_handler(process.pid)
        time.sleep(0.5)
    check(name, process.poll() is None, "ended before it was interrupted", process.poll())
    for number in signals:
        process.send_signal(number)
        time.sleep(0.05)
    try:
        out, err = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        check(name, False, "does not end")
    check(name, process.returncode == 6, "status", process.returncode, err)
    return out, err


def told_of_the_end():
    """A task that an editor gave, and whose model does not answer, hears of SIGTERM."""
    endpoint = socket.create_server(("127.0.0.1", 0))
    endpoint.settimeout(60)
    process = start("agent", "--acp", "--project", "project", "--url",
                    "http://127.0.0.1:%d/v1" % endpoint.getsockname()[1], stdin=subprocess.PIPE)

    def ask(number, method, **params):
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()

    ask(1, "session/new", cwd=os.path.abspath("project"), mcpServers=[])
    session = json.loads(process.stdout.readline())["result"]["sessionId"]
    ask(2, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Wait."}])
    connection, _ = endpoint.accept()
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
    out, err = process.communicate()
    check("SIGTERM in a task", process.returncode == 6, process.returncode, err)
    check("SIGTERM in a task", b'"cancelled"' in out, out, err)
    connection.close()
    endpoint.close()


run = ["run", "-m", "model.ndf", "-p", "the land", "-n", "-1", "--ignore-eos", "--temp", "0"] + SESSION
out, err = interrupted("Ctrl-C in run", [signal.SIGINT], *run)
check("Ctrl-C in run", out.endswith(b"\n") and b"generated" in err, out[-20:], err)
out.decode()  # whole characters only
interrupted("SIGTERM in run", [signal.SIGTERM], *run)
interrupted("Ctrl-C twice", [signal.SIGINT, signal.SIGINT], *run)
interrupted("Ctrl-C in perplexity", [signal.SIGINT], "perplexity", "-m", "model.ndf", "-f", "text", "-c", "8000")
interrupted("Ctrl-C in logits", [signal.SIGINT], "logits", "-m", "model.ndf", "--tokens", "many", "-o", "lost.f32")
check("Ctrl-C in logits", not any(name.startswith("lost.f32") for name in os.listdir(".")), "left its output")
# Before the first layer is finished there is nothing that --resume could continue.
_, err = interrupted("Ctrl-C in compress", [signal.SIGINT], "compress", "model.gguf", "--bits", "2.4", "--calib", "text",
                     "-c", "32", "-t", "1", "-o", "lost.ndf")
check("Ctrl-C in compress", b"no layer was finished" in err and not os.path.exists("lost.ndf.work"), err)
interrupted("Ctrl-C while reading stdin", [signal.SIGINT], "tokenize", "-m", "model.ndf", stdin=subprocess.PIPE)
interrupted("Ctrl-C between lines", [signal.SIGINT], "template", "--jsonl", stdin=subprocess.PIPE)

# Tasks from an editor, or line by line: a signal ends the wait for them, though the input stays open.
still, held = os.pipe()
agent = ["agent", "--project", "project", "--url"]
_, err = interrupted("SIGTERM in agent --acp", [signal.SIGTERM], *agent, "http://127.0.0.1:1/v1", "--acp",
                              stdin=still)
check("SIGTERM in agent --acp", not err, err)
with open(os.environ["BUILD"] + "/generated/whit_config.h", encoding="ascii") as config:
    has_curl = re.search("WHIT_HAVE_CURL *1", config.read())
if has_curl:
    for number in signal.SIGTERM, signal.SIGINT:
        interrupted("a signal in typed tasks", [number], *agent, "http://127.0.0.1:1/v1", stdin=still)
    told_of_the_end()
os.close(still)
os.close(held)

# A file that shrinks: the pages behind its end are gone for every thread that touches them.
for threads in "1", "3":
    shutil.copy("model.ndf", "short.ndf")
    process = start(*run[:2], "short.ndf", *run[3:], "-t", threads)
    process.stdout.read(12)
    os.truncate("short.ndf", 4096)
    out, err = process.communicate(timeout=120)
    check("cut short", process.returncode == 8 and b"short.ndf" in err.splitlines()[-1],
          process.returncode, err)

# A reader that goes away ends the run.
process = start(*run)
process.stdout.read(12)
process.stdout.close()
process.wait(timeout=120)
check("closed pipe", process.returncode == 5, process.returncode, process.stderr.read())
sys.exit(checks.failed)
