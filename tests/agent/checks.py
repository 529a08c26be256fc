# SPDX-License-Identifier: MIT
"""Checks of the agent's tests: a failed one is told, and the test ends with `failed`."""
import os

failed = 0


def wanted(condition, text):
    global failed
    if not condition:
        failed = 1
        print("FAILED:", text)


def environment():
    """This process's environment with folders of the test's own."""
    env = dict(os.environ, no_proxy="*", HOME=os.path.abspath("home"))
    for name in ("STATE", "CACHE", "CONFIG"):
        env[f"XDG_{name}_HOME"] = os.path.abspath(name.lower())
    return env
