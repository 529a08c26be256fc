# SPDX-License-Identifier: MIT
"""What an agent waits for can be interrupted, and is told."""
import fcntl
import glob
import os
import shutil
import signal
import subprocess
import sys
import time

import checks
from checks import environment, wanted
from endpoint import Endpoint, message

WHIT = sys.argv[1]


def start(answers):
    endpoint = Endpoint(answers)
    agent = subprocess.Popen([WHIT, "agent", "-p", "x", "--url", endpoint.url, "--model", "m", "--project", "p", "--allow", "yellow"],
                             env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, start_new_session=True)
    return endpoint, agent


def told(endpoint):
    return [m["content"] for m in endpoint.requests[-1]["messages"] if m["role"] == "tool"]


END = message("done")
for folder in ("p", "state", "cache", "config", "home"):
    shutil.rmtree(folder, ignore_errors=True)
os.makedirs("p")
open("p/a", "w").write("x")
command = message(None, [("run", {"command": "echo ran"})])

# Another process has the scratch copy: the person is told, and Ctrl-C ends the wait.
endpoint, agent = start([command, END])
out, said = agent.communicate(timeout=300)
if "not run" in told(endpoint)[0]:
    print("[ SKIPPED ] this machine cannot hold commands")
    sys.exit(77)
wanted("ran" in told(endpoint)[0] and "waiting" not in said, f"alone: {told(endpoint)}, {said}")
(lock,) = glob.glob("cache/whit/*run*/lock")
with open(lock) as held:
    fcntl.flock(held, fcntl.LOCK_EX)
    endpoint, agent = start([command, END])
    for line in agent.stderr:
        if "waiting" in line:
            break
    else:
        wanted(False, "nothing is said about the wait")
    agent.send_signal(signal.SIGINT)
    agent.communicate(timeout=300)
    wanted(agent.returncode != 0, f"status {agent.returncode} after Ctrl-C")
    endpoint, agent = start([command, END])
    for line in agent.stderr:
        if "waiting" in line:
            break
agent.communicate(timeout=300)
wanted("ran" in told(endpoint)[0] and agent.returncode == 0, f"after the wait: {told(endpoint)}")

# Another program has the journal for a moment: the turn is written after it.
found = glob.glob("state/whit/agent-*.ndf")
journal = found[0] if found else None
if not journal:
    endpoint, agent = start([message(None, [("write", {"path": "first", "content": "1"})]), END])
    agent.communicate(timeout=300)
    (journal,) = glob.glob("state/whit/agent-*.ndf")
with open(journal) as held:
    fcntl.flock(held, fcntl.LOCK_EX)
    endpoint, agent = start([message(None, [("write", {"path": "second", "content": "2"})]), END])
    for line in agent.stderr:
        if "writes" in line:
            break
    time.sleep(1)
    wanted(agent.poll() is None and not os.path.exists("p/second"), "a turn beside another program's")
agent.communicate(timeout=300)
wanted(open("p/second").read() == "2" and agent.returncode == 0, f"a turn after another program's: {told(endpoint)}")
sys.exit(checks.failed)
