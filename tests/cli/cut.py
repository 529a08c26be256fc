# SPDX-License-Identifier: MIT
# Trains in pieces (see train.sh): starts, cuts by Ctrl-C and kill -9 in turn, goes on, until the run ends
# with cut.ndf. The program and its arguments are in argv.
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


def wait_for_change(before):
    """Waits until the checkpoint is another one: at least one step was done."""
    for _ in range(2000):
        try:
            now = os.stat("cut.run").st_mtime_ns
        except FileNotFoundError:
            now = None
        if now != before:
            return now
        time.sleep(0.005)
    sys.exit("FAILED: no checkpoint is written")


seen, cut = None, 0
for number in CUTS:
    process = start(seen is not None)
    seen = wait_for_change(wait_for_change(seen))
    if process.poll() is None:
        process.send_signal(number)
        cut += 1
    err = process.communicate(timeout=300)[1]
    if number == signal.SIGINT and process.returncode != 6:
        sys.exit(f"FAILED: Ctrl-C in train ended with {process.returncode}: {err.decode()}")
if cut < 3:
    sys.exit("FAILED: the run was over before it could be cut")
process = start(True)
err = process.communicate(timeout=120)[1]
if process.returncode != 0:
    sys.exit(f"FAILED: the last piece ended with {process.returncode}: {err.decode()}")
