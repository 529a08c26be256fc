# SPDX-License-Identifier: MIT
# A disk that is full for a while costs no turn of a chat: session_full.py WHIT...
import os, re, resource, subprocess, sys

whit, path = sys.argv[1:], "full.ndf"
chat = whit + ["chat", "-m", "model.ndf", "-n", "8", "--temp", "0", "--session", path]
if os.path.exists(path):
    os.remove(path)


def history(process):
    """The lines up to the end of /show history."""
    process.stdin.write(b"/show history\n/show nothing\n")
    process.stdin.flush()
    lines = []
    for line in process.stdout:
        lines.append(line.decode("utf-8", "replace"))
        if "/show takes" in lines[-1]:
            break
    return lines


def begin():
    # SIGXFSZ stays ignored, as Python has it, so that a write beyond the limit fails as on a full disk.
    return subprocess.Popen(chat, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            restore_signals=False)


def limit(process, n_bytes):
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))


def roles(lines):
    return [line.split(":")[0] for line in lines if re.match("(user|assistant): ", line)]


process = begin()
process.stdin.write(b"one\n")
lines = history(process)
limit(process, os.path.getsize(path))
process.stdin.write(b"two\nthree\n")
lines = history(process)
failures = [line for line in lines if "full.ndf: cannot write" in line]
assert len(failures) == 2 and all(line.startswith("whit chat: ") for line in failures), lines
assert sum("it is written with the next one" in line for line in lines) == 2, lines
limit(process, resource.RLIM_INFINITY)
process.stdin.write(b"four\n")
whole = history(process)
process.stdin.close()
process.wait()
assert roles(whole) == ["user", "assistant"] * 4, whole

process = begin()
again = history(process)
process.stdin.close()
process.wait()
assert roles(again) == ["user", "assistant"] * 4, again
assert [line for line in again if line.startswith("user: ")] == ["user: one\n", "user: two\n", "user: three\n", "user: four\n"]
