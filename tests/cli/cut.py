# SPDX-License-Identifier: MIT
# Trains in pieces (see train.sh): starts, cuts by Ctrl-C and kill -9 in turn, goes on, until the run ends
# with cut.ndf. A run that ends before all cuts, because this script was not scheduled, begins anew. The program and its
# arguments are in argv.
import os
import signal
import subprocess
import sys
import time

command = sys.argv[1:] + ["--checkpoint", "cut.run", "--checkpoint-seconds", "0", "-o", "cut.ndf"]
CUTS = [signal.SIGINT, signal.SIGKILL, signal.SIGINT, signal.SIGKILL]


def start(resume):
    return subprocess.Popen(command + (["--resume"] if resume else []), stderr=subprocess.PIPE,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def wait_for_change(process, before):
    """Waits until the checkpoint is another one: at least one step was done. The run may end before."""
    while True:
        has_ended = process.poll() is not None
        try:
            now = os.stat("cut.run").st_mtime_ns
        except FileNotFoundError:
            now = None
        if now != before or has_ended:
            return now
        time.sleep(0.005)


def cut_all():
    """Cuts a new run at all places; false if it ended by itself before."""
    if os.path.exists("cut.run"):
        os.remove("cut.run")
    seen = None
    for number in CUTS:
        process = start(seen is not None)
        for _ in range(2):
            seen = wait_for_change(process, seen)
        process.send_signal(number)
        err = process.communicate(timeout=300)[1]
        if process.returncode == 0:
            return False
        if process.returncode != (6 if number == signal.SIGINT else -signal.SIGKILL):
            sys.exit(f"FAILED: a signal {number} in train ended it with {process.returncode}: {err.decode()}")
        if seen is None:
            sys.exit("FAILED: no checkpoint is written")
    return True


if not any(cut_all() for _ in range(20)):
    sys.exit("FAILED: the run was over before it could be cut")
process = start(True)
err = process.communicate(timeout=120)[1]
if process.returncode != 0:
    sys.exit(f"FAILED: the last piece ended with {process.returncode}: {err.decode()}")
