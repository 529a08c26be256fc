#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""whit bench and whit doctor of the program for Windows, under wine: every test is measured, in one process.

    windows_bench.py WINE WHIT.EXE MODEL
"""
import json
import subprocess
import sys

wine, program, model = sys.argv[1:]


def whit(*command, status=0):
    done = subprocess.run([wine, program, *command], capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL)
    if done.returncode != status:
        sys.exit("FAILED: %s: exit status %d\n%s%s" % (command, done.returncode, done.stdout, done.stderr))
    return done


tests = json.loads(whit("bench", "-m", model, "-p", "32", "-n", "8", "-r", "2", "-t", "1,2", "--steal", "--profile",
                        "--json").stdout)
if len(tests) != 8:
    sys.exit("FAILED: %d tests, not prompt and decoding, with 1 and 2 threads, alone and disturbed" % len(tests))
for test in tests:
    for key in ("tps_median", "read_gbps", "int8_gmacs", "peak_rss_bytes"):
        if not test[key] > 0:
            sys.exit("FAILED: %s is %r in %r" % (key, test[key], test))
    if not test["profile"]:
        sys.exit("FAILED: no profile in %r" % test)
report = json.loads(whit("doctor", "--json").stdout)
if report["cores"] < 1 or not report["read_gbps"] > 0 or not report["memory_bytes"] > 0:
    sys.exit("FAILED: %r" % report)
if any("built without" in line for line in report["problems"]):
    sys.exit("FAILED: libraries that cannot be added here: %r" % report["problems"])
