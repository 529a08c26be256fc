# SPDX-License-Identifier: MIT
"""Types into `whit edit` in a pseudo-terminal and kills it with SIGKILL at random moments: while it starts, recovers,
takes keys and saves. After each kill the file must be one of the texts that were saved, whole, and not an older one than
the last that is known to be saved; recovery must offer every key that had been painted, because the journal is written
before the screen; and once the text is saved again nothing else may lie in the file's and the journal's folders.

    kills.py WHIT KILLS [SEED]

What is typed is one sequence of characters that differ, so that a prefix of it is known by its length, and a character
in the terminal's output says that its key was dealt with."""
import fcntl
import os
import pty
import random
import select
import shutil
import signal
import struct
import sys
import tempfile
import termios
import time

KILLS_A_FILE = 25  # then a new file, so that its journal stays short
PATIENCE_S = 60
LINE = 16
FIRST = 0x4E00
ASKS = "unsaved text was found".encode()


def typed(begin, end):
    return "".join("\n" if i % LINE == LINE - 1 else chr(FIRST + i % 20000) for i in range(begin, end))


def length_of(data, what):
    """The prefix of what is typed that these bytes are."""
    text = data.decode()
    assert text == typed(0, len(text)), f"{what} is no prefix of what was typed: {text[-40:]!r}"
    return len(text)


class Terminal:
    def __init__(self, whit, folder, home):
        environment = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "HOME": home}
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=0")
        for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "COLORTERM", "NO_COLOR"):
            environment.pop(name, None)
        self.process, self.fd = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execve(whit, [whit, "edit", "typed.txt"], environment)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.set_blocking(self.fd, False)
        self.output = b""

    def pump(self, seconds):
        """Takes what comes within so long; true where something came."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            self.output += os.read(self.fd, 1 << 16)
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True

    def is_waiting(self):
        """Whether the editor waits for something, so that it is not in the middle of a paint or a save."""
        with open(f"/proc/{self.process}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "S"

    def wait(self, what, ready):
        end = time.monotonic() + PATIENCE_S
        while not ready():
            assert time.monotonic() < end, f"waited in vain for {what}; the terminal's last bytes: {self.output[-300:]!r}"
            self.pump(0.002)

    def send(self, text):
        data = text.encode()
        while data:
            try:
                data = data[os.write(self.fd, data):]
            except BlockingIOError:
                pass
            self.pump(0)

    def until(self, when):
        while (left := when - time.monotonic()) > 0:
            self.pump(left)

    def end(self, number):
        os.kill(self.process, number)
        os.waitpid(self.process, 0)
        while self.pump(0):
            pass
        os.close(self.fd)


class Typist:
    def __init__(self, whit, seed):
        self.whit, self.random = whit, random.Random(seed)
        self.counts = dict.fromkeys(("starting", "recovering", "typing", "recovered", "torn off", "saves"), 0)
        self.folder = None

    def begin_file(self):
        self.close_file()
        self.folder, self.home = tempfile.mkdtemp(prefix="whit-kills-"), tempfile.mkdtemp(prefix="whit-kills-")
        self.path = os.path.join(self.folder, "typed.txt")
        self.journals = os.path.join(self.home, ".local/state/whit/edit")
        self.saves = {0}  # lengths at which C-s was sent
        self.seen = self.saved = self.sent = 0  # keys painted, keys surely saved, keys sent

    def close_file(self):
        if self.folder:
            shutil.rmtree(self.folder)
            shutil.rmtree(self.home)

    def read(self):
        try:
            with open(self.path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def look(self, terminal):
        """What has been painted was dealt with, and what was asked before it was done."""
        text = terminal.output.decode(errors="ignore")
        for i in range(self.sent - 1, self.seen - 1, -1):
            if i % LINE != LINE - 1 and chr(FIRST + i % 20000) in text:
                self.seen = i + 1
                break
        self.saved = max([self.saved] + [n for n in self.saves if n < self.seen])

    def check_file(self):
        n = length_of(self.read(), "the file")
        assert n in self.saves, f"the file holds {n} keys, saved were {sorted(self.saves)[-5:]}"
        assert n >= self.saved, f"the file holds {n} keys, and {self.saved} were saved"
        return n

    def check_leftovers(self):
        files, journals = os.listdir(self.folder), os.listdir(self.journals)
        assert files == ["typed.txt"], f"left in the folder: {files}"
        assert len(journals) == 1 and len(journals[0]) == 32, f"left by the journal: {journals}"

    def recover(self, terminal, kill_at, briefly=False):
        """Answers the question and saves; false where the time is over before. briefly: a moment behind the answer."""
        def late():
            return kill_at is not None and time.monotonic() >= kill_at
        terminal.wait("the text or the question", lambda: late() or ASKS in terminal.output or b"typed.txt" in terminal.output)
        quiet = time.monotonic() + 0.1  # a paint may come in parts where other programs run
        while not late() and ASKS not in terminal.output and (
                terminal.pump(0.002) or time.monotonic() < quiet or not terminal.is_waiting()):
            pass
        if late():
            return False
        on_disk = self.check_file()
        if ASKS not in terminal.output:
            assert on_disk >= self.seen, f"no question, the file has {on_disk} keys of {self.seen}"
            self.sent = on_disk
        else:
            self.recovering = True
            before = os.stat(self.path).st_mtime_ns if os.path.exists(self.path) else 0
            time.sleep(0.3)  # keys at once after the question are no answer
            terminal.send("r")
            # From here on any length from what was painted to what was sent may be saved.
            self.saves |= set(range(self.seen, self.sent + 1))
            if not briefly or self.random.random() < 0.7:
                terminal.send("\x13")
            if briefly:
                terminal.until(time.monotonic() + self.random.random() * 0.008)
                return False
            terminal.wait("the save of what was recovered", lambda: late() or os.path.exists(self.path)
                          and os.stat(self.path).st_mtime_ns != before)
            if late():
                return False
            n = length_of(self.read(), "what was recovered")
            assert self.seen <= n <= self.sent, f"recovered {n} keys, {self.seen} were painted, {self.sent} sent"
            self.counts["recovered"] += 1
            self.counts["torn off"] += n < self.sent
            self.sent = n
        self.saves = {self.sent}
        self.saved = self.seen = self.sent
        return True

    def round(self):
        at_start, briefly = self.random.random() < 0.2, self.random.random() < 0.25
        terminal = Terminal(self.whit, self.folder, self.home)
        self.recovering = False
        kill_at = time.monotonic() + self.random.random() * 0.06 if at_start else None
        phase = "starting"
        if self.recover(terminal, kill_at, briefly):
            if not at_start:
                terminal.wait("the end of the save", lambda: not os.path.exists(self.path) or
                              (not terminal.pump(0.005) and terminal.is_waiting()))
                if os.path.exists(self.path):
                    self.check_leftovers()
            kill_at = kill_at or time.monotonic() + self.random.random() * 0.08
            terminal.send("\x1b[1;5F")
            phase = "typing"
            while time.monotonic() < kill_at:
                n = self.random.randint(1, 12)
                text = typed(self.sent, self.sent + n)
                self.sent += n
                terminal.send(text.replace("\n", "\r"))
                if self.random.random() < 0.2:
                    self.saves.add(self.sent)
                    self.counts["saves"] += 1
                    terminal.send("\x13")
                terminal.until(min(kill_at, time.monotonic() + self.random.random() * 0.006))
                self.look(terminal)
        elif self.recovering:
            phase = "recovering"
        terminal.end(signal.SIGKILL)
        if phase == "typing":
            self.look(terminal)
        self.counts[phase] += 1
        self.check_file()

    def last(self):
        """Recovers, saves, quits as one should."""
        terminal = Terminal(self.whit, self.folder, self.home)
        assert self.recover(terminal, None)
        terminal.send("\x13\x11")
        terminal.wait("the end", lambda: os.waitpid(terminal.process, os.WNOHANG)[0] != 0)
        os.close(terminal.fd)
        assert self.check_file() == self.sent
        self.check_leftovers()


def main():
    whit, kills = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    try:
        os.close(os.openpty()[0])
    except OSError:
        print("[ SKIPPED ] this system gives no pseudo-terminals")
        sys.exit(77)
    typist = Typist(whit, seed)
    done = 0
    try:
        while done < kills:
            typist.begin_file()
            for _ in range(min(KILLS_A_FILE, kills - done)):
                typist.round()
                done += 1
            typist.last()
    except AssertionError as error:
        print(f"FAILED at kill {done + 1}, seed {seed}: {error}; the folders: {typist.folder} {typist.home}", file=sys.stderr)
        sys.exit(1)
    typist.close_file()
    print(f"{done} kills: " + ", ".join(f"{n} {what}" for what, n in typist.counts.items()))


main()
