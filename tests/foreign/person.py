# SPDX-License-Identifier: MIT
"""Somebody at a terminal, who answers when the program waits."""
import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
import time

from looks import modes_left


def attend(play, command, answer, env, folder, bound_s, quiet_s=0.05, columns=100, rows=30):
    """Runs a command at a terminal of its own. answer(text since it was last called that had an answer): bytes to type, or
    None. It is asked whenever the terminal was quiet for a moment. Stores in `play` what was shown and what is left."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    before = termios.tcgetattr(slave)
    program = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=folder, start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    output, answered, end = bytearray(), 0, time.monotonic() + bound_s
    while True:
        if time.monotonic() < end and select.select([master], [], [], quiet_s)[0]:
            output.extend(os.read(master, 1 << 16))
            continue
        if program.poll() is not None:
            break
        if time.monotonic() > end:
            play.hangs = bytes(output[-1000:]) or b"(nothing was shown)"
            os.killpg(program.pid, signal.SIGKILL)
            break
        typed = answer(output[answered:].decode(errors="replace"))
        if typed:
            answered = len(output)
            os.write(master, typed)
    status = program.wait()
    while select.select([master], [], [], 0)[0]:
        output.extend(os.read(master, 1 << 16))
    output = bytes(output)
    play.shown.append(("the terminal", output))
    if not play.hangs:
        play.note_status(status)
        if termios.tcgetattr(slave) != before:
            play.left.append(f"its settings are not as before: {before} {termios.tcgetattr(slave)}")
        play.left += [f"mode {mode} is left" for mode in modes_left(output)]
    os.close(master)
    os.close(slave)
    return status, output


def run_piped(play, command, env, folder, bound_s, typed=b""):
    """The same without a terminal, with pipes for all three descriptors."""
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=folder,
                               start_new_session=True)
    try:
        out, errors = program.communicate(typed, timeout=bound_s)
        play.note_status(program.returncode)
    except subprocess.TimeoutExpired:
        os.killpg(program.pid, signal.SIGKILL)
        out, errors = program.communicate()
        play.hangs = out + errors or b"(nothing was printed)"
    play.shown += [("stdout", out), ("stderr", errors)]
    return program.returncode, out + errors
