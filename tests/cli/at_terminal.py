# SPDX-License-Identifier: MIT
"""Runs a program to its end at a terminal of its own."""
import fcntl
import os
import pty
import struct
import termios


def run(command, typed=b"", term=None, columns=None):
    """Returns the exit status and the bytes that the terminal was sent."""
    pid, terminal = pty.fork()
    if pid == 0:
        if columns:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execvpe(command[0], command, dict(os.environ, TERM=term) if term else os.environ)
    os.write(terminal, typed)
    text = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text
