# SPDX-License-Identifier: MIT
"""Checks of a script that goes on after a failure: it ends with sys.exit(checks.failed)."""
failed = 0


def check(what, ok, *details):
    global failed
    if not ok:
        failed = 1
        print("FAILED:", what, *details)
