# SPDX-License-Identifier: MIT
# whit chat on a terminal of its own (see chat.sh): editing, history, Ctrl-C, dim thinking, leaving.
# The program is in argv.
import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time

import checks
from checks import check

program = sys.argv[1:]


def own_the_terminal():
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C is a signal


def in_order(text, wanted):
    at = 0
    for word in wanted:
        at = text.find(word, at)
        if at < 0:
            return False
        at += len(word)
    return True


PROMPT = b"\n>>> "  # of a new line; an editor may show the one it works on again


class Chat:
    def __init__(self, *arguments, term="xterm", meanwhile=lambda process: None):
        self.leader, follower = pty.openpty()
        env = dict(os.environ, TERM=term, LC_ALL="C.UTF-8")
        self.process = subprocess.Popen(program + ["chat", "-c", "256", "--temp", "0", *arguments], stdin=follower,
                                        stdout=follower, stderr=follower, env=env, start_new_session=True,
                                        preexec_fn=own_the_terminal)
        os.close(follower)
        self.text = b""
        self.has_editor = os.environ["EDITOR_BUILT"] == "1" and term != "dumb"
        meanwhile(self.process)
        self.wait(PROMPT)

    def wait(self, *wanted, seconds=120):
        """Reads until the text has `wanted`, in order, behind what earlier waits saw."""
        text, until = b"", time.time() + seconds
        while time.time() < until and not in_order(text, wanted):
            if select.select([self.leader], [], [], 0.2)[0]:
                try:
                    text += os.read(self.leader, 65536)
                except OSError:
                    break
                text = text.replace(b"\x1b[?2004h", b"").replace(b"\x1b[?2004l", b"")  # bracketed paste
        self.text += text
        check("wait", in_order(text, wanted), wanted, text[-300:])
        return text

    def type(self, text):
        """Types at the prompt. The editor shows it just before it takes over the terminal: earlier keys may be lost."""
        until = time.time() + 120
        while self.has_editor and termios.tcgetattr(self.leader)[3] & termios.ICANON and time.time() < until:
            time.sleep(0.005)
        os.write(self.leader, text)

    def end(self, keys=b"/bye\n"):
        self.type(keys)
        try:
            status = self.process.wait(timeout=120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        os.close(self.leader)
        check("exit status", status == 0, status, self.text[-300:])


# Thinking: the prompt opens a section, so all of the answer is dim, and the style ends with it.
open("think.jinja", "w").write("{{ messages[0].content }}<think>")
chat = Chat("-m", "model.ndf", "--template", "think.jinja", "-n", "8")
chat.type(b"the land\n")
text = chat.wait(b"\x1b[2m", b"\x1b[0m", PROMPT)
check("dim", text.index(b"\x1b[2m") < text.index(b"\x1b[0m"), text)
chat.end()
chat = Chat("-m", "model.ndf", "-n", "8")
chat.type(b"the land\n")
check("plain", b"\x1b[2m" not in chat.wait(b"the land", PROMPT))

# Ctrl-C at the prompt drops the line; Ctrl-D leaves.
chat.type(b"half a line\x03")
chat.wait(b"/bye leaves", PROMPT)
chat.end(b"\x04")

# Ctrl-C stops an answer, which stays; the chat goes on.
chat = Chat("-m", "model.ndf", "-c", "100000", "-n", "-1", "-l", "2-1000")
chat.type(b"the land\n")
chat.wait(b"the land\r\n")
answer = b""
while len(answer) < 200 and chat.process.poll() is None:
    answer += os.read(chat.leader, 200)
os.write(chat.leader, b"\x03")
chat.wait(PROMPT)
chat.type(b"/save stopped.json\n")
chat.wait(b"2 messages")
check("a stopped answer", len(json.load(open("stopped.json"))["messages"][1]["content"]) > 20)
chat.end()

# SIGTERM is final.
chat = Chat("-m", "model.ndf")
chat.process.send_signal(signal.SIGTERM)
check("SIGTERM", chat.process.wait(timeout=120) == 6, chat.process.returncode)

# Without an editor (a dumb terminal) lines still come in.
chat = Chat("-m", "model.ndf", "-n", "4", term="dumb")
chat.type(b"/show context\n")
chat.wait(b"0 messages")
chat.end()

if os.environ["EDITOR_BUILT"] == "1":
    # Editing and characters beyond ASCII: what is sent is what is seen in the end.
    history = os.path.join(os.environ["XDG_STATE_HOME"], "whit", "chat_history")
    os.remove(history)
    chat = Chat("-m", "model.ndf", "-n", "4")
    chat.type("the lxnd caf\u00e9".encode() + b"\x1b[D" * 7 + b"\x7fa\n")
    chat.wait(PROMPT)
    chat.type(b"\x1b[A\x01and \n")
    chat.wait(PROMPT)
    chat.type(b"/save edited.json\n")
    chat.wait(b"4 messages")
    chat.end()
    messages = json.load(open("edited.json"))["messages"]
    check("editing", messages[0]["content"] == "the land caf\u00e9", messages)
    check("history", messages[2]["content"] == "and the land caf\u00e9", messages)
    lines = open(history).read().splitlines()
    check("history file", lines[:2] == ["the land caf\u00e9", "and the land caf\u00e9"], lines)
    check("history mode", os.stat(history).st_mode & 0o777 == 0o600)
    # The next chat knows them; one without history neither reads nor writes.
    chat = Chat("-m", "model.ndf", "-n", "4", "--no-history")
    chat.type(b"the ocean\n")
    chat.wait(PROMPT)
    chat.end()
    check("--no-history", "the ocean" not in open(history).read())
    chat = Chat("-m", "model.ndf", "-n", "4")
    chat.type(b"\x1b[A\x1b[A\x1b[A\n")
    chat.wait(PROMPT)
    chat.type(b"/show history\n")
    chat.wait(b"user: and the land caf\xc3\xa9")
    chat.end()

    # Two chats share the history: one that shortens it waits for the other's lock and keeps its line, and a line goes
    # to the file that another chat has put in place of the opened one.
    def wait_for_open(process, seconds=5):
        folder = "/proc/%d/fd" % process.pid
        until = time.time() + seconds
        while time.time() < until:
            try:
                if history in [os.readlink(os.path.join(folder, fd)) for fd in os.listdir(folder)]:
                    return
            except OSError:
                pass  # a descriptor was closed meanwhile, or the system has no /proc
            time.sleep(0.005)

    open(history, "w").write("".join("line %d %s\n" % (i, "x" * 400) for i in range(3000)))
    other = open(history, "a")
    fcntl.flock(other, fcntl.LOCK_EX)

    def append_line(process):
        wait_for_open(process)
        time.sleep(0.3)  # a chat without the lock would read and replace the file now
        other.write("typed meanwhile\n")
        other.close()

    chat = Chat("-m", "model.ndf", "-n", "4", meanwhile=append_line)
    lines = open(history).read().splitlines()
    check("shortened", len(lines) == 1000 and lines[-1] == "typed meanwhile", len(lines), lines[-1][:40])
    other = open(history, "a")
    fcntl.flock(other, fcntl.LOCK_EX)
    chat.type(b"the land\n")
    wait_for_open(chat.process)
    open(history + ".new", "w").write("shortened\n")
    os.replace(history + ".new", history)
    other.close()
    chat.wait(PROMPT)
    check("a replaced history", open(history).read() == "shortened\nthe land\n", open(history).read()[-300:])
    chat.end()
sys.exit(checks.failed)
