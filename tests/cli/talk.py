# SPDX-License-Identifier: MIT
# A chat on a terminal of a known size (see talk.sh). The program is in argv.
import base64
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import checks
from checks import check

program = sys.argv[1:]


class Terminal:
    def __init__(self, *arguments, columns=40):
        self.leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        env = dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8")
        self.process = subprocess.Popen(program + ["chat", *arguments], stdin=follower, stdout=follower,
                                        stderr=follower, env=env, start_new_session=True)
        os.close(follower)
        self.banner = self.wait()

    def wait(self, marks=">>> ", within="", seconds=120):
        """What comes up to the next prompt, and has `within`."""
        text, until = b"", time.time() + seconds

        def is_over():
            said = text.decode("utf-8", "replace")
            return said.endswith(marks) and within in said
        while time.time() < until and not is_over():
            if select.select([self.leader], [], [], 0.1)[0]:
                try:
                    text += os.read(self.leader, 65536)
                except OSError:
                    break
        check("prompt", is_over(), text)
        return text

    def wait_editor(self):
        """Waits until the editor, which shows its prompt just before, has taken over the terminal."""
        until = time.time() + 120
        while os.environ["EDITOR_BUILT"] == "1" and termios.tcgetattr(self.leader)[3] & termios.ICANON and time.time() < until:
            time.sleep(0.01)

    def say(self, keys, marks=">>> ", within=""):
        self.wait_editor()
        os.write(self.leader, keys)
        return self.wait(marks, within)

    def end(self):
        self.wait_editor()
        os.write(self.leader, b"/bye\n")
        try:
            status = self.process.wait(timeout=120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = "never"
        check("status", status == 0, status)
        os.close(self.leader)


# The banner: which model, and of the built-in one that it is a toy and what to get.
terminal = Terminal("model.ndf")
check("banner", b"model.ndf" in terminal.banner and b"context of" in terminal.banner, terminal.banner)
terminal.end()
terminal = Terminal("-s", "3", columns=32)
check("banner", b"tales" in terminal.banner and b"toy" in terminal.banner and b"whit pull" in terminal.banner,
      terminal.banner)

# Words are wrapped: no line is wider than the terminal, none begins or ends inside a word, and the
# words are those of a pipe.
text = terminal.say(b"Tell me a story.\n").decode()
answer = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", text).replace("\r", "").split("\n", 1)[1].rsplit("\n", 1)[0]
lines = answer.split("\n")
piped = subprocess.run(program + ["chat", "-s", "3"], input=b"Tell me a story.\n", capture_output=True).stdout.decode()
check("wrapped", len(lines) > 5 and max(map(len, lines)) <= 32, lines)
check("words", " ".join(answer.split()) == " ".join(piped.split()), answer, piped)
check("full lines", all(len(a) + 1 + len(b.split(" ")[0]) > 32 for a, b in zip(lines, lines[1:]) if a and b), lines)
terminal.end()
terminal = Terminal("-s", "3", "--no-wrap", columns=32)
text = terminal.say(b"Tell me a story.\n").decode()
check("--no-wrap", piped.split("\n")[0] in text, text, piped)
terminal.end()

if os.environ["EDITOR_BUILT"] == "1":
    # A paste of several lines is one message, which waits for Enter.
    terminal = Terminal("model.ndf", "-n", "4", "--temp", "0")
    terminal.say(b"\x1b[200~the land\rand the\tocean\r\r\x1b[201~", marks="ocean")
    terminal.say(b"\n")
    terminal.say(b"\x1b[200~one line\x1b[31m\x07 pasted\x1b[201~ and typed\n")
    terminal.say(b"/save pasted.json\n")
    terminal.end()
    said = [m["content"] for m in json.load(open("pasted.json"))["messages"] if m["role"] == "user"]
    check("pasted", said == ["the land\nand the ocean", "one line[31m pasted and typed"], said)
    history = open(os.path.join(os.environ["XDG_STATE_HOME"], "whit", "chat_history")).read().split("\n")
    # Tab completes commands: as far as they agree, then lists them, then with a blank.
    terminal = Terminal("model.ndf", "-n", "4", "--temp", "0", columns=80)
    listed = terminal.say(b"/show t\t\t", marks="/show t", within="/show tokens").decode()
    check("Tab lists", "/show template" in listed and "/show tokens" in listed, listed)
    shown = terminal.say(b"e\t\n").decode()
    check("Tab completes", "bos_token" in shown, shown)
    terminal.end()
    # Ctrl-Z and fg: the shell has given the terminal its own modes meanwhile, and the editor takes it again.
    terminal = Terminal("model.ndf", "-n", "4", "--temp", "0")
    terminal.wait_editor()
    raw = termios.tcgetattr(terminal.leader)
    terminal.process.send_signal(signal.SIGSTOP)
    cooked = [*raw[:3], raw[3] | termios.ICANON | termios.ECHO, *raw[4:]]
    termios.tcsetattr(terminal.leader, termios.TCSANOW, cooked)
    terminal.process.send_signal(signal.SIGCONT)
    until = time.time() + 20
    while termios.tcgetattr(terminal.leader)[3] & termios.ICANON and time.time() < until:
        time.sleep(0.05)
    check("a continued editor takes the terminal again", not termios.tcgetattr(terminal.leader)[3] & (termios.ICANON | termios.ECHO))
    terminal.end()
    # Two signals at once end the program on the spot; the terminal is as it was all the same.
    terminal = Terminal("model.ndf", "-n", "4", "--temp", "0")
    terminal.wait_editor()
    raw = termios.tcgetattr(terminal.leader)[3]
    for number in signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT:
        terminal.process.send_signal(number)
    status = terminal.process.wait(timeout=60)
    local, seen = termios.tcgetattr(terminal.leader)[3], os.read(terminal.leader, 4096)
    check("the editor takes the terminal", not raw & termios.ICANON, raw)
    check("the terminal is given back", local & termios.ICANON and local & termios.ECHO, status, local)
    check("pastes are marked no longer", b"\x1b[?2004l" in seen, seen)
    os.close(terminal.leader)
    check("history", "one line[31m pasted and typed" in history and "and the ocean" not in history, history)

# Markdown is shown as styles on a terminal, and as it is in a pipe; a model's own escapes never get there.
with open("marks.gbnf", "w") as grammar:
    grammar.write(r'root ::= "# Title\n**bold** and `co`\n- item\n```python\nif 1: # x\n```\n\x1b[31mend"' + "\n")
marked = "# Title\n**bold** and `co`\n- item\n```python\nif 1: # x\n```\n"
options = ("--grammar-file", "marks.gbnf", "-n", "100")
terminal = Terminal(*options)
text = terminal.say(b"Hi.\n").decode()
check("headings, bold and code", "\x1b[0;1mTitle\r\nbold\x1b[0m and \x1b[0;36mco\x1b[0m\r\n\u2022 item\r\n" in text, text)
check("a block of code", "\x1b[0;35mif\x1b[0;36m \x1b[0;33m1\x1b[0;36m: \x1b[0;90m# x" in text, text)
check("escapes of a model", "\x1b[31m" not in text and "\x1b[0m?[31mend" in text, text)
# /copy fills the terminal's clipboard, /model goes on with another model, and /edit asks anew.
copied = terminal.say(b"/copy code\n").decode()
check("/copy code", "\x1b]52;c;" + base64.b64encode(b"if 1: # x\n").decode() + "\a" in copied, copied)
copied = terminal.say(b"/copy\n").decode()
check("/copy", base64.b64encode((marked + "?[31mend").encode()).decode() in copied, copied)
# The last block is the one that is shown: other lines may look like its first or last line.
with open("fences.gbnf", "w") as grammar:
    grammar.write(r'root ::= "```\nx\n~~~\n```\nnot this\n```sh\nls\n ```\nend"' + "\n")
fences = Terminal("--grammar-file", "fences.gbnf", "-n", "100")
fences.say(b"Hi.\n")
copied = fences.say(b"/copy code\n").decode()
check("/copy code of a block with fences", base64.b64encode(b"ls\n").decode() + "\a" in copied, copied)
fences.end()
said = terminal.say(b"/model model.ndf\n").decode()
check("/model", "model.ndf answers from now on; it reads the 2 messages" in said.replace("\r\n  ", " "), said)
check("/model of nothing", "nothere: no pulled model" in terminal.say(b"/model nothere\n").decode().replace("\r\n  ", " "))
with open("vim.sh", "w") as editor:
    editor.write('#!/bin/sh\ngrep -q "^Hi.$" "$1" && echo "Ho." >"$1"; cp "$1" "$1~"\n')
os.chmod("vim.sh", 0o755)
terminal.end()
os.makedirs("edited", exist_ok=True)
os.environ.update(VISUAL=os.path.abspath("vim.sh"), TMPDIR=os.path.abspath("edited"))
terminal = Terminal(*options, "--no-markup")
check("--no-markup", "# Title\r\n**bold** and `co`\r\n- item\r\n" in terminal.say(b"Hi.\n").decode())
terminal.say(b"/edit\n")
shown = terminal.say(b"/show history\n").decode()
check("/edit", "user: Ho.\r\nassistant: # Title" in shown and "Hi." not in shown and not os.listdir("edited"), shown)
check("/edit of the same", "nothing changes" in terminal.say(b"/edit\n").decode().replace("\r\n  ", " "))
terminal.end()
piped = subprocess.run(program + ["chat", *options], input=b"Hi.\n/copy\n/edit\n", capture_output=True)
check("Markdown in a pipe", piped.stdout.decode() == marked + "\x1b[31mend\n" and b"/copy needs a terminal" in piped.stderr, piped)
sys.exit(checks.failed)
