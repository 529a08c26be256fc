# SPDX-License-Identifier: MIT
"""What a person agrees to is what was shown: at a terminal, through a pipe, beside JSON, in an editor."""
import glob
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import threading
import time

import checks
from acp import Editor
from checks import environment, wanted
from endpoint import Endpoint, at_terminal, message

WHIT = sys.argv[1]


def project(files, config=None):
    for folder in ("p", "state", "cache", "config", "home"):
        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs("p")
    os.makedirs("home")
    for name, data in files.items():
        open(f"p/{name}", "wb").write(data)
    if config:
        os.makedirs("p/.whit")
        json.dump(config, open("p/.whit/agent.json", "w"))


def read(name):
    return open(f"p/{name}", "rb").read()


def write(path, text):
    return message(None, [("write", {"path": path, "content": text})])


def typed(answers, keys, *more):
    endpoint = Endpoint(answers)
    status, seen = at_terminal([WHIT, "agent", "-p", "x", "--url", endpoint.url, "--project", "p", *more], keys, environment())
    endpoint.server.shutdown()
    return status, seen, [m["content"] for m in endpoint.requests[-1]["messages"] if m["role"] == "tool"]


END = message("done")
HIDDEN = "int f(void)\n{\n    /*\u202e } \u2066if (a)\u2069 \u2066 begin */ return 1;\u200b\n}\n"
PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-x\n+y\n+evil\x1b[2K\x1b[1A\x1b[2K\n*** End Patch\n"

# Characters that reorder or hide others are shown by their numbers, and asked about whatever is allowed.
project({"f.c": b"int f(void)\n{\n    return 0;\n}\n"})
status, seen, told = typed([write("f.c", HIDDEN), END], [("[y/N", "y\n")], "--allow", "yellow")
wanted("\u202e" not in seen and "<U+202E>" in seen and "<U+2066>" in seen and "<U+200B>" in seen, f"hidden: {ascii(seen)}")
wanted("invisible" in seen and read("f.c").decode() == HIDDEN, f"hidden characters are not asked about: {seen}")
# What terminals leave out, since it has no width for them: code points without a character, and many combining marks.
project({"u.txt": b"a\n"})
status, seen, told = typed([write("u.txt", "admin\uffff\u0378\U0001ffff\n"), END], [("[y/N", "n\n")], "--allow", "yellow")
wanted("+admin<U+FFFF><U+0378><U+1FFFF>" in seen and "invisible" in seen and read("u.txt") == b"a\n", f"unassigned: {ascii(seen)}")
status, seen, told = typed([write("u.txt", "e" + "\u0301" * 6 + "\n"), END], [("[y/N", "n\n")])
wanted("+e" + "\u0301" * 4 + "<U+0301><U+0301>" in seen, f"marks over a letter: {ascii(seen)}")
# What looks like an expression and is a name: a letter like "!" in JavaScript, a low line under a low line.
project({"u.js": b"a\n"})
status, seen, told = typed([write("u.js", "if (env\u01c3=LIVE) is_\u0332admin()\n"), END], [("[y/N", "n\n")], "--allow", "yellow")
wanted("+if (env<U+01C3>=LIVE) is_<U+0332>admin()" in seen and "look like Latin ones or signs" in seen and read("u.js") == b"a\n", f"signs: {ascii(seen)}")
# A text that looks like a mark is not taken for one.
project({"m.txt": b"a <U+202E> b\n"})
status, seen, told = typed([write("m.txt", "a \u202e b\n"), END], [("[y/N", "n\n")])
wanted("-a <U+003C>U+202E> b" in seen and "+a <U+202E> b" in seen, f"marks: {ascii(seen)}")
# Names, too, are shown, and are one line.
project({})
status, seen, told = typed([write("x\u202e", "x\n"), write("a\n+++ b/x", "x\n"), END], [("[y/N", "n\n")])
wanted("+++ b/x<U+202E>" in seen and "not a plain path" in told[1], f"names: {ascii(seen)} {told}")
# Every reason of a question is named, of each of its files, on the terminal and in an editor.
reasons = [message(None, [("write", {"path": "k.env", "content": "A=2\n"}), ("write", {"path": "c.txt", "content": "c\u202e\n"}),
                          ("patch_file", {"patch": "*** Begin Patch\n*** Delete File: b.txt\n*** End Patch\n"})]), END]
named = "k.env: it may contain keys; c.txt: it adds characters that are invisible or change the order of others; b.txt: it deletes a file. Write 3 files"
project({"k.env": b"A=1\n", "b.txt": b"b\n", "c.txt": b"c\n"})
status, seen, told = typed(reasons, [("[y/N", "n\n")])
wanted(named in seen and read("b.txt") == b"b\n", f"reasons: {ascii(seen)}")
editor = Editor(WHIT, environment(), reasons)
editor.say_yes = False
editor.result("initialize", protocolVersion=1)
editor.task(editor.result("session/new", cwd=os.path.abspath("p"), mcpServers=[])["sessionId"], "x")
wanted([asked["toolCall"]["title"] for asked in editor.asked] == [named], f"reasons in an editor: {editor.asked}")
editor.end()
# A name with a tab, which begins a time in a difference, or with a blank at its end is not taken for another file's.
for name, diff, line in (("Makefile\t2026-01-01", '+++ "b/Makefile\\t2026-01-01"', "writes Makefile<U+0009>2026-01-01"),
                         ("Makefile ", '+++ "b/Makefile "', "writes Makefile<U+0020>"), ('a"\\', '+++ "b/a\\"\\\\"', 'writes a"\\')):
    project({})
    status, seen, told = typed([write(name, "x\n"), END], [("[y/N", "y\n")])
    wanted(diff in seen and line in seen and read(name) == b"x\n", f"the name {name!r}: {seen!r}")
# Lines of a text that look like the names of a difference have the colours of lines.
project({"q.sql": b"-- a/x.c\nx\n"})
status, seen, told = typed([write("q.sql", "++ b/x.c\n++evil\nx\n"), END], [("[y/N", "n\n")])
wanted("\x1b[31m--- a/x.c\x1b[0m" in seen and "\x1b[32m+++ b/x.c\x1b[0m" in seen and "\x1b[1m--- a/q.sql\x1b[0m" in seen, f"lines like names: {seen!r}")
# A byte that is not UTF-8, and a lone carriage return.
project({"l.c": b"/* caf\xe9 */\nint a;\n"})
status, seen, told = typed([message(None, [("patch_file", {"patch": "l.c\n<<<<<<< SEARCH\nint a;\n=======\nint b;\rint c;\n>>>>>>> REPLACE\n"})]), END],
                           [("[y/N", "y\n")])
wanted("caf<0xE9>" in seen and "int b;<U+000D>int c;" in seen and read("l.c") == b"/* caf\xe9 */\nint b;\rint c;\n", f"bytes: {ascii(seen)}")

# Blanks that nobody sees: at the end of a line, where "\\ " ends a command, and many before a text that is out of sight then.
far = "a = 1;" + " " * 65 + "b = 2;\n"
project({"b.sh": b"x\n"})
status, seen, told = typed([write("b.sh", "echo removing \\ \nrm -rf x\n\n" + far), END], [("[y/N", "y\n")])
wanted("+echo removing \\<U+0020>" in seen and "+rm -rf x\x1b" in seen and "+\x1b" in seen and "+a = 1;" + "<U+0020>" * 65 + "b = 2;" in seen,
       f"blanks: {seen!r}")
wanted(read("b.sh").decode() == "echo removing \\ \nrm -rf x\n\n" + far, f"blanks are not written: {read('b.sh')}")
editor = Editor(WHIT, environment(), [write("b.sh", "a \n"), END])
editor.task(editor.result("session/new", cwd=os.path.abspath("p"), mcpServers=[])["sessionId"], "x")
wanted(editor.asked[0]["toolCall"]["content"][0]["newText"] == "a<U+0020>\n", f"blanks in an editor: {editor.asked}")
editor.end()
# A tab at a terminal's last column moves nothing there, and "x<tab>/" would be shown as "x/".
project({"t.sh": b"x\n"})
status, seen, told = typed([write("t.sh", "rm\t/\n"), END], [("[y/N", "n\n")])
wanted("+rm     /" in seen and "\t" not in seen, f"a tab at a terminal: {seen!r}")
open("t.patch", "w").write("*** Begin Patch\n*** Update File: t.sh\n@@\n-x\n+rm\t/\n*** End Patch\n")
status, seen = at_terminal(["sh", "-c", f"{WHIT} agent apply t.patch --project p > log"], [("[y/N", "n\n")], environment())
wanted("+rm     /" in seen and "+rm\t/" in open("log").read(), f"a tab beside a pipe: {seen!r}")

# A row that a terminal begins within a line is no line of its own: a comment may be as long as a row and go on with code.
long_line, end = "# " + "-" * 77, "verify || exit 1"
for how in ("", "> log"):
    project({"r.sh": b"x\n"})
    open("r.patch", "w").write(f"*** Begin Patch\n*** Update File: r.sh\n@@\n-x\n+{long_line}+{end}\n*** End Patch\n")
    for columns in (80, 0, 41):  # a serial line tells no columns
        status, seen = at_terminal(["sh", "-c", f"{WHIT} agent apply r.patch --project p {how}"], [("[y/N", "n\n")], environment(), columns=columns)
        rows = seen.replace("\x1b[32m", "").replace("\x1b[0m", "").split("\r\n")
        whole = f"+{long_line}+{end}" in "\n".join(rows).replace("\n> ", "")
        wanted(whole and all(len(row) <= (columns or 80) for row in rows if "# " in row or end in row), f"rows of {columns} columns {how}: {seen!r}")

# Nor is a row of a question: a command as long as many rows, of which one looks like the question about another command.
begin = "outside the sandbox it would run: "
line = "touch owned #".ljust(80 - len(begin), ".") + "".join(text.ljust(80, ".") for text in ["whit: reads Makefile"] * 24) + begin + "make lint"
project({"a.txt": b"x\n"})
endpoint = Endpoint([message(None, [("run", {"command": line})]), END])
status, seen = at_terminal([WHIT, "agent", "-p", "x", "--url", endpoint.url, "--project", "p", "--no-sandbox"], [("Do it? [y/N", "n\n")],
                           environment(), columns=80)
endpoint.server.shutdown()
rows = seen[seen.rindex("touch owned"):seen.index("Do it?")].split("\r\n")
whole = rows[0] + "".join(row[2:] for row in rows[1:])
wanted(len(rows) > 20 and all(row.startswith("> ") for row in rows[1:]) and whole == line + ". ", f"rows of a question: {rows}")
wanted(f"(a question of {len(rows)} rows, which begins above the screen) n" in seen, f"a question of many rows: {seen[-200:]}")

# Nor is a row of a message: the call of a tool is named in words of the model, which may be as wide as the terminal.
for filler in ("x", "\u4e00"):
    project({})
    word = "true " + filler * ((80 - len("whit: runs true ")) // (2 if filler != "x" else 1))
    endpoint = Endpoint([message(None, [("run", {"command": f"{word} whit: checks: make test"})]), END])
    status, seen = at_terminal([WHIT, "agent", "-p", "x", "--url", endpoint.url, "--project", "p"], [], environment(), columns=80)
    endpoint.server.shutdown()
    wanted("\r\n  whit: checks: make test\r\n" in seen, f"rows of a message: {seen!r}")

# Changes that are agreed to and cannot be written are reported to the person, too.
project({})
status, seen, told = typed([message(None, [("write", {"path": "a", "content": "1\n"}), ("write", {"path": "a/b", "content": "2\n"})]), END],
                           [("[y/N", "y\n")])
wanted("nothing of this answer is written: 'a/b' cannot be created: a is a file" in seen and os.listdir("p") == [], f"a turn that fails: {seen}")

# Letters from right to left stay letters; marks keep the digits and signs beside them where the file has them, at a terminal and in
# an editor, not in what programs read.
HEBREW = "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd: x = 3 - \u05d0 1\n"
ordered = HEBREW.replace("\u05e9", "\u200e\u05e9").replace(":", "\u200e:").replace("\u05d0", "\u05d0\u200e")
project({"h.txt": b"x\n"})
status, seen, told = typed([write("h.txt", HEBREW), END], [("[y/N", "y\n")])
wanted("+" + ordered.strip() in seen and read("h.txt").decode() == HEBREW, f"letters from right to left: {ascii(seen)}")
open("h.patch", "w").write(f"*** Begin Patch\n*** Update File: h.txt\n@@\n-x\n+{HEBREW}*** End Patch\n")
project({"h.txt": b"x\n"})
status, seen = at_terminal(["sh", "-c", f"{WHIT} agent apply h.patch --project p > log"], [("[y/N", "n\n")], environment())
wanted("+" + ordered.strip() in seen and "+" + HEBREW in open("log").read(), f"letters from right to left beside a pipe: {ascii(seen)}")
editor = Editor(WHIT, environment(), [write("h.txt", HEBREW), END])
editor.task(editor.result("session/new", cwd=os.path.abspath("p"), mcpServers=[])["sessionId"], "x")
wanted(editor.asked[0]["toolCall"]["content"][0]["newText"] == ordered and read("h.txt").decode() == HEBREW, f"in an editor: {editor.asked}")
editor.end()
status, seen, told = typed([write("\u05d0 1.env", "x\n"), END], [("[y/N", "n\n")])
wanted("\u200e\u05d0\u200e 1.env: it may contain keys" in seen, f"a name in a question: {ascii(seen)}")
editor = Editor(WHIT, environment(), [write("\u05d0 1.env", "x\n"), END])
editor.task(editor.result("session/new", cwd=os.path.abspath("p"), mcpServers=[])["sessionId"], "x")
call = editor.asked[0]["toolCall"]
wanted("\u200e\u05d0\u200e 1.env: it may contain keys" in call["title"], f"a name in a question of an editor: {ascii(call)}")
wanted(call["content"][0]["path"].endswith("\u200e\u05d0\u200e 1.env"), f"the name of a change in an editor: {ascii(call)}")
shown = [u for u in editor.updates if u["sessionUpdate"] == "tool_call" and u["kind"] == "edit"][0]
wanted(shown["title"] == "\u200e\u05d0\u200e 1.env" and shown["locations"] == [{"path": os.path.abspath("p/\u05d0 1.env")}], f"{ascii(shown)}")
editor.end()

# A terminal that another program has left without the wrapping of lines, with concealed text, or with a region of
# few lines that scrolls, shows all of both.
project({"t.sh": b"x\n"})
usual = "\x1b[0m\x1b(B\x0f\x1b[?7h\x1b[4l\x1b7\x1b[r\x1b8\x1b#5\x1b[J\x1b[?2501l\x1b[1 k"
for how in ("", "> log"):
    status, seen = at_terminal(["sh", "-c", f"{WHIT} agent apply t.patch --project p {how}"], [("[y/N", "n\n")], dict(environment(), TERM="xterm"))
    wanted(0 <= seen.find(usual) < seen.find("+rm ") < seen.rfind(usual) < seen.find("Write 1 file"), f"a terminal's modes {how}: {seen!r}")
status, seen = at_terminal([WHIT, "agent", "apply", "t.patch", "--project", "p"], [("[y/N", "n\n")], dict(environment(), TERM="linux"))
wanted("\x1b[?7h" in seen and " k" not in seen, f"the console of Linux: {seen!r}")
status, seen = at_terminal([WHIT, "agent", "apply", "t.patch", "--project", "p"], [("[y/N", "n\n")], dict(environment(), TERM="dumb"))
wanted("\x1b" not in seen and "+rm     /" in seen, f"a terminal without control sequences: {seen!r}")

# The terminal of the question has seen the change, whatever becomes of stdout, and nothing commands it.
open("x.patch", "w").write(PATCH)
for how in ("| tee log", "> log", "--json", "| cat > log"):
    project({"a.txt": b"x\n"})
    status, seen = at_terminal(["sh", "-c", f"{WHIT} agent apply x.patch --project p {how}"], [("[y/N", "y\n")], environment())
    shown = "+evil<U+001B>[2K<U+001B>[1A<U+001B>[2K"
    wanted("\x1b[2K" not in seen and shown in seen and seen.index(shown) < seen.rindex("[y/N"), f"apply {how}: {ascii(seen)}")
    wanted(read("a.txt") == b"y\nevil\x1b[2K\x1b[1A\x1b[2K\n", f"apply {how} writes: {read('a.txt')}")
    wanted(how == "--json" or "> log" not in how or b"\x1b" not in open("log", "rb").read(), f"a pipe gets commands of a terminal: {how}")
    project({"a.txt": b"x\n"})
    endpoint = Endpoint([write("a.txt", "y\x1b[2K\n"), END])
    status, seen = at_terminal(["sh", "-c", f"{WHIT} agent -p x --url {endpoint.url} --project p {how}"], [("[y/N", "y\n")], environment())
    wanted("+y<U+001B>[2K" in seen and "\x1b[2K" not in seen and read("a.txt") == b"y\x1b[2K\n", f"a task {how}: {ascii(seen)}")

# A terminal that takes no more bytes at once, since another program made it so: the question comes after all lines.
LONG = "".join(f"line {i} of a long text\n" for i in range(1500))


def at_full_terminal(command, keys):
    pid, terminal = pty.fork()
    if pid == 0:
        os.set_blocking(1, False)
        os.execvpe(command[0], command, environment())
    seen, answers, end = b"", list(keys), time.time() + 300
    time.sleep(1)
    while time.time() < end:
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        seen += piece
        if answers and answers[0][0] in seen:
            os.write(terminal, answers.pop(0)[1])
    else:
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(terminal)
    return seen


for keys in ([(b"[y/N", b"y\n")], [(b"[y/N", b"h\n"), (b"1 of 2", b"y\n"), (b"2 of 2", b"y\n")]):
    project({"a.txt": b"first\n" + b"same\n" * 20 + b"last\n"})
    after = "1\n" + "same\n" * 20 + LONG + "end of all\n"
    endpoint = Endpoint([write("a.txt", after), END])
    seen = at_full_terminal([WHIT, "agent", "-p", "x", "--url", endpoint.url, "--project", "p"], keys)
    endpoint.server.shutdown()
    question = seen.find(b"[y/N")
    wanted(0 < seen.find(b"+end of all") < question and read("a.txt").decode() == after, f"a full terminal: {seen[:question][-300:]}")
project({"a.txt": b"first\n"})
open("long.patch", "w").write("*** Begin Patch\n*** Update File: a.txt\n@@\n first\n" + "".join(f"+{l}\n" for l in LONG.split("\n")) + "+end of all\n*** End Patch\n")
seen = at_full_terminal([WHIT, "agent", "apply", "long.patch", "--project", "p"], [(b"[y/N", b"y\n")])
wanted(0 < seen.find(b"+end of all") < seen.find(b"[y/N") and read("a.txt").endswith(b"end of all\n"), f"apply to a full terminal: {seen[-300:]}")

# Outside the sandbox a check runs what was shown: an answer about other changes does not count for these.
project({"t.sh": b"true\n", "a": b"x\n"}, {"check": ["sh t.sh"]})
outside = os.path.abspath("outside")
if os.path.exists(outside):
    os.unlink(outside)
status, seen, told = typed([write("a", "y\n"), write("t.sh", f"echo unheld >{outside}\n"), END],
                           [("Do it? [y/N", "y\n"), ("Write 1 file? [y/N", "y\n"), ("unheld", ""), ("Do it? [y/N", "n\n")], "--no-sandbox")
wanted(read("a") == b"y\n" and not os.path.exists(outside) and read("t.sh") == b"true\n", f"a check runs unseen: {ascii(seen)}")
wanted(seen.count("this check would run") == 2 and seen.index("+echo unheld") < seen.rindex("this check would run"), f"asked again: {seen}")
# Nor does an answer about the same changes, when the project has got other code since.
project({"t.sh": b"if grep -q no a; then sh more.sh; exit 1; fi\n", "more.sh": b"true\n", "a": b"yes\n"}, {"check": ["sh t.sh"]})
status, seen, told = typed([write("a", "no\n"), write("more.sh", f"echo unheld >{outside}\n"), write("a", "no\n"), END],
                           [("Do it? [y/N", "y\n")] * 2 + [("Write 1 file? [y/N", "y\n"), ("Do it? [y/N", "n\n")], "--no-sandbox")
wanted(seen.count("this check would run") == 3 and not os.path.exists(outside), f"a check runs unasked on other code: {ascii(seen)}")
# A command is shown to its last character, too.
project({})
status, seen, told = typed([message(None, [("run", {"command": "echo a\n\u202eecho b"})]), END], [("[y/N", "n\n")], "--no-sandbox")
wanted("echo a<U+000A><U+202E>echo b" in seen and "was not run" in told[0], f"a command: {ascii(seen)} {told}")

# Where nobody is there the reason is told, to the person and to the model.
def alone(answers, *more):
    endpoint = Endpoint(answers)
    done = subprocess.run([WHIT, "agent", "-p", "x", "--url", endpoint.url, "--project", "p", *more], env=environment(),
                          capture_output=True, text=True, start_new_session=True, stdin=subprocess.DEVNULL, timeout=600)
    endpoint.server.shutdown()
    return done, [m["content"] for m in endpoint.requests[-1]["messages"] if m["role"] == "tool"]


project({"a.txt": b"x\n"})
delete = message(None, [("patch_file", {"patch": "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch\n"})])
done, told = alone([delete, END], "--allow", "yellow")
wanted("it deletes a file" in done.stderr and "nobody is there" in done.stderr, f"nobody there: {done.stderr}")
wanted("1 file staged" in told[0] and "it deletes a file" in told[0] and "nobody is there" in told[0] and "person" not in told[0], f"nobody there: {told}")
done, told = alone([write("a.txt", "z\n"), END])
wanted("nobody is there" in done.stderr and read("a.txt") == b"x\n", f"nobody there: {done.stderr}")
done = subprocess.run([WHIT, "agent", "apply", os.path.abspath("x.patch"), "--project", "p"], env=environment(), capture_output=True, text=True,
                      start_new_session=True, stdin=subprocess.DEVNULL)
wanted(done.returncode and "nobody is there" in done.stderr, f"apply with nobody there: {done.stderr}")


# An editor is shown both sides whole; every call of a turn gets its end.
def edited(answers, yes, *more):
    endpoint = Endpoint(answers)
    p = subprocess.Popen([WHIT, "agent", "--acp", "--url", endpoint.url, *more], env=environment(), stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True, cwd="p")
    updates, asked = [], []

    def send(**m):
        p.stdin.write(json.dumps({"jsonrpc": "2.0", **m}) + "\n")
        p.stdin.flush()

    def until(n):
        while True:
            m = json.loads(p.stdout.readline())
            if m.get("method") == "session/update":
                updates.append(m["params"]["update"])
            elif m.get("method") == "session/request_permission":
                asked.append(m["params"]["toolCall"])
                send(id=m["id"], result={"outcome": {"outcome": "selected", "optionId": "yes" if yes else "no"}})
            elif m.get("id") == n:
                return m["result"]

    send(id=1, method="session/new", params={"cwd": os.path.abspath("p"), "mcpServers": []})
    session = until(1)["sessionId"]
    send(id=2, method="session/prompt", params={"sessionId": session, "prompt": [{"type": "text", "text": "x"}]})
    until(2)
    p.stdin.close()
    p.wait(60)
    endpoint.server.shutdown()
    ends = {u["toolCallId"]: u["status"] for u in updates if "toolCallId" in u}
    return updates, asked, ends


LATIN = b"/* caf\xe9 */\r\nint ok = 1;\r\n"
for yes in (True, False):
    project({"l.c": LATIN, "b.txt": b"b\n"})
    answers = [message(None, [("patch_file", {"patch": "l.c\n<<<<<<< SEARCH\nint ok = 1;\n=======\nint ok = 0; int backdoor\u202e(void);\n>>>>>>> REPLACE\n"}),
                              ("write", {"path": "b.txt", "content": "c\n"})]), END]
    updates, asked, ends = edited(answers, yes)
    diff = {u["title"]: u["content"][0] for u in updates if u.get("kind") == "edit" and u["sessionUpdate"] == "tool_call"}
    wanted(diff["l.c"]["oldText"] == "/* caf<0xE9> */\r\nint ok = 1;\r\n" and
           diff["l.c"]["newText"] == "/* caf<0xE9> */\r\nint ok = 0; int backdoor<U+202E>(void);\r\n", f"{diff}")
    wanted(len(asked) == 1 and [d["path"] for d in asked[0]["content"]] == [os.path.abspath(f"p/{n}") for n in ("l.c", "b.txt")], f"{asked}")
    wanted("Write 2 files" in asked[0]["title"] and "invisible" in asked[0]["title"], f"{asked}")
    edits = [s for i, s in ends.items() if i.startswith("edit")]
    wanted(edits == 2 * ["completed" if yes else "failed"] and "pending" not in ends.values(), f"{yes}: {ends}")
    wanted((read("l.c") != LATIN) == yes, "an editor's answer")
# An editor shows CR LF as LF: it is marked where a change brings it, and in a file that has both.
for before, after, shown in ((b"#!/bin/sh\na\n", "#!/bin/sh\r\na\r\n", "#!/bin/sh<U+000D>\na<U+000D>\n"),
                             (b"// \\\nint a;\n", "// \\\r\nint a;\n", "// \\<U+000D>\nint a;\n"),
                             (None, "a\r\n", "a<U+000D>\n"), (b"a\r\n", "b\r\n", "b\r\n"), (b"a\r\nb\r\n", "a\nb\r\n", "a\nb<U+000D>\n")):
    project({"e.sh": before} if before else {})
    updates, asked, ends = edited([write("e.sh", after), END], True)
    wanted(asked[0]["content"][0]["newText"] == shown and read("e.sh") == after.encode(), f"line ends in an editor: {asked[0]['content']}")
# What needs no question ends, too.
project({})
updates, asked, ends = edited([write("n.txt", "n\n"), END], False, "--allow", "yellow")
wanted(not asked and [s for i, s in ends.items() if i.startswith("edit")] == ["completed"], f"{ends} {asked}")

# A program that ended badly has left the terminal giving each byte: the answer is still the line.
for before, keys in (("stty -icanon -echo min 1 time 0", []), ("stty raw -echo", []), ("true", [("[y/N", "e\n")])):
    project({"a.txt": b"a\n"})
    endpoint = Endpoint([write("a.txt", "b\n"), END])
    command = f"{before}; exec '{WHIT}' agent -p x --url {endpoint.url} --project p"
    status, seen = at_terminal(["sh", "-c", command], [*keys, ("[y/N", "y"), ("y", "ou must not\r")],
                               dict(environment(), VISUAL="stty raw -echo </dev/tty; false"), 20)
    endpoint.server.shutdown()
    wanted(status == 0 and "not agreed to" in seen and read("a.txt") == b"a\n", f"{before}: the first letter of a line agrees: {seen}")

# A zero does not end an answer.
project({"a.txt": b"a\n"})
status, seen, results = typed([write("a.txt", "b\n"), END], [("[y/N", "y\0, not that\n"), ("please answer", "n\n")])
wanted(read("a.txt") == b"a\n", f"an answer with a zero: {seen}")

# Between the question and the answer a file gets another name, and a folder becomes a link to one that programs obey.
for act in (lambda: os.link("p/a.txt", "beside.txt"),
            lambda: (os.rename("p/d", "p/e"), os.makedirs("p/.github"), os.symlink(".github", "p/d"))):
    if os.path.exists("beside.txt"):
        os.remove("beside.txt")
    project({"a.txt": b"a\n"})
    os.makedirs("p/d")
    status, seen, results = typed([message(None, [("write", {"path": "a.txt", "content": "b\n"}),
                                                  ("write", {"path": "d/n.yml", "content": "n\n"})]), END],
                                  [("[y/N", "y\n", act)])
    wanted("has changed since it was shown" in results[0] and read("a.txt") == b"a\n" and not os.path.exists("p/d/n.yml"),
           f"a change between showing and writing: {results}")


# Where a name is not UTF-8, a file of a patch is listed in JSON, too.
project({})
open("latin.patch", "wb").write(b"--- /dev/null\n+++ b/caf\xe9.txt\n@@ -0,0 +1 @@\n+x\n")
done = subprocess.run([WHIT, "agent", "apply", "latin.patch", "--json", "--yes", "--project", "p"], env=environment(), capture_output=True,
                      start_new_session=True, stdin=subprocess.DEVNULL)
wanted(os.listdir(b"p") == [b"caf\xe9.txt"] and [row["path"] for row in json.loads(done.stdout)] == ["caf\ufffd.txt"], f"a name in JSON: {done.stdout}")

# This program's own files are neither read nor written in a folder of --state-dir, either; other files there are the person's.
project({"a.txt": b"a\n"})
own = ["--state-dir", "p/kept", "--yes"]
typed([write("a.txt", "b\n"), END], [], *own)
journal, talk = (glob.glob(f"p/kept/agent-*.{suffix}")[0][2:] for suffix in ("ndf", "talk.json"))
status, seen, told = typed([message(None, [("list", {}), ("grep", {"pattern": "whit_session"}), ("read", {"path": talk}), ("read", {"path": journal})]),
                            write(talk, "{}"), write(journal, "x"), write("kept/n.txt", "n\n"), END], [], *own)
wanted(told[0] == "a.txt\n" and told[1] == "(no match)" and all("not read" in x for x in told[2:4]), f"own files are read: {told}")
wanted(all("own state" in x for x in told[4:6]) and "1 file written" in told[6], f"own files are written: {told}")

# A command outside the sandbox runs on the changes of its answer, which are shown before the question about it.
for kind in ("terminal", "json", "editor"):
    project({"t.sh": b"echo harmless\n"})
    calls = [message(None, [("write", {"path": "t.sh", "content": "echo other-$((40 + 2))\n"}), ("run", {"command": "sh t.sh"})]), END]
    if kind == "editor":
        editor = Editor(WHIT, environment(), calls, "--no-sandbox")
        editor.result("initialize", protocolVersion=1)
        session = editor.result("session/new", cwd=os.path.abspath("p"), mcpServers=[])["sessionId"]
        editor.task(session, "x")
        diffs = editor.asked[0]["toolCall"]["content"]
        wanted("sh t.sh" in editor.asked[0]["toolCall"]["title"] and [d["newText"] for d in diffs] == ["echo other-$((40 + 2))\n"],
               f"a command in an editor: {editor.asked[0]}")
        editor.end()
        continue
    more = ["--json"] if kind == "json" else []
    status, seen, told = typed(calls, [("Do it? [y/N", "y\n"), ("[y/N", "n\n")], "--no-sandbox", *more)
    first = seen[:seen.index("Do it?")]
    wanted("+echo other-$((40 + 2))" in first and "-echo harmless" in first and "other-42" in told[1], f"a command ({kind}): {seen} {told}")


# A later question of the same answer has only the changes that it writes, and only those are reported as written.
later = [("write", {"path": "a.txt", "content": "A\n"}), ("run", {"command": "true"}), ("write", {"path": "a.txt", "content": "a\n"}),
         ("write", {"path": "b.txt", "content": "B\n"})]
other = [("write", {"path": "a.txt", "content": "A\n"}), ("run", {"command": "true"}), ("agent", {"task": "Write b."})]
# A command of which no question is asked, since it is too long, shows nothing.
long_run = ("run", {"command": "true " + 5000 * "x"})
project({"a.txt": b"a\n"})
editor = Editor(WHIT, environment(), [message(None, [("write", {"path": "a.txt", "content": "A\n"}), long_run]), END], "--no-sandbox")
editor.result("initialize", protocolVersion=1)
editor.task(editor.result("session/new", cwd=os.path.abspath("p"), mcpServers=[])["sessionId"], "x")
wanted([len(asked["toolCall"]["content"]) for asked in editor.asked] == [1], f"a command that is too long: {editor.asked}")
editor.end()
for calls in ([message(None, later), END], [message(None, other), write("b.txt", "B\n"), END, END]):
    project({"a.txt": b"a\n", "b.txt": b"b\n"})
    editor = Editor(WHIT, environment(), calls, "--no-sandbox")
    editor.result("initialize", protocolVersion=1)
    session = editor.result("session/new", cwd=os.path.abspath("p"), mcpServers=[])["sessionId"]
    editor.task(session, "x")
    shown = [[(os.path.basename(d["path"]), d["newText"]) for d in asked["toolCall"]["content"]] for asked in editor.asked]
    wanted(shown[:2] == [[("a.txt", "A\n")], [("b.txt", "B\n")]], f"changes that a later question does not write: {shown}")
    names = {u["toolCallId"]: u["title"] for u in editor.updates if u.get("kind") == "edit"}
    ends = [(names[u["toolCallId"]], u["status"]) for u in editor.updates if u["sessionUpdate"] == "tool_call_update" and u["toolCallId"] in names]
    wanted(ends[:2] == [("a.txt", "failed"), ("b.txt", "completed")], f"the ends of changes: {ends}")
    editor.end()


def lead(to):
    """The folder d becomes a link."""
    os.rename("p/d", "p/e")
    os.makedirs(f"p/{to}", exist_ok=True)
    os.symlink(to, "p/d")


# So does a folder of a change that needed an answer already, for another reason; and a link that leads to an equal file.
for to, text in ((".git", "x\u200b\n"), ("other", "x\n")):
    project({})
    os.makedirs("p/d")
    status, seen, results = typed([write("d/config.new", text), END], [("[y/N", "y\n", lambda: lead(to))])
    wanted("has changed since it was shown" in results[0] and not os.path.exists(f"p/{to}/config.new"),
           f"written elsewhere than shown: {to}: {results}")

# A turn that a crash interrupted is taken back before anything is read, and the person is told.
open("c.patch", "w").write("--- /dev/null\n+++ b/c.txt\n@@ -0,0 +1 @@\n+c\n")
for kind in ("task", "apply"):
    project({"a.txt": b"a\n"})
    endpoint = Endpoint([write("a.txt", "b\n"), END])
    subprocess.run([WHIT, "agent", "-p", "x", "--url", endpoint.url, "--project", "p", "--yes"], env=environment(), stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    endpoint.server.shutdown()
    journal = glob.glob("state/whit/agent-*.ndf")[0]
    os.truncate(journal, os.path.getsize(journal) - 1)
    if kind == "task":
        status, seen, told = typed([message(None, [("read", {"path": "a.txt"})]), write("c.txt", "c\n"), END], [("[y/N", "y\n")])
        wanted(told[0] == "a\n" and "1 file written" in told[1], f"read before the turn was taken back: {told}")
    else:
        status, seen = at_terminal([WHIT, "agent", "apply", "c.patch", "--project", "p"], [("[y/N", "y\n")], environment())
    wanted(status == 0 and -1 < seen.find("turn 1 had been interrupted") < seen.find("+c") and read("a.txt") == b"a\n" and
           read("c.txt") == b"c\n", f"an interrupted turn ({kind}): {seen}")

# A preview writes nothing, neither to the project nor to the journal: it shows what the next call takes back.
def everything():
    return {name: (os.lstat(name).st_mtime_ns, os.lstat(name).st_ino, open(name, "rb").read()) for name in
            glob.glob("p/**", recursive=True) + glob.glob("state/**", recursive=True) if os.path.isfile(name)}


def agent(*words, stdin=""):
    return subprocess.run([WHIT, "agent", *words, "--project", "p"], env=environment(), input=stdin, capture_output=True, text=True,
                          start_new_session=True)


def patch(name, lines):
    open("turn.patch", "w").write(f"*** Begin Patch\n*** {'Update' if '-' in lines else 'Add'} File: {name}\n{lines}*** End Patch\n")
    done = agent("apply", "turn.patch", "--yes")
    wanted(done.returncode == 0, f"a turn: {done}")


project({"a.txt": b"a\n"})
done = agent("undo", "--preview")
wanted(done.returncode != 0 and "there is no turn" in done.stderr and not os.path.exists("state"), f"a preview creates a folder: {done}")
patch("c.txt", "+c\n")
agent("undo")
patch("b.txt", "+b\n")
patch("a.txt", "@@\n-a\n+z\n")
journal = glob.glob("state/whit/agent-*.ndf")[0]
os.truncate(journal, os.path.getsize(journal) - 1)
before = everything()
for words, shown in ((("undo", "--preview"), "-b"), (("redo", "--preview"), "+c"), (("log",), "   1  "), (("apply", "c.patch", "--preview"), "+c")):
    done = agent(*words)
    wanted(done.returncode == 0 and "turn 4 was interrupted; the next call" in done.stderr and shown in done.stdout and everything() == before,
           f"a preview after a crash: {words}: {done}")
    wanted(words[0] == "apply" or "-z\n+a\n" in done.stdout, f"what is taken back: {words}: {done}")
done = agent("undo", "--preview", "--json")
told = json.loads(done.stdout)
wanted(told["turn"] == 3 and told["preview"] and "-b" in told["difference"] and told["interrupted"]["turn"] == 4 and
       "-z\n+a\n" in told["interrupted"]["difference"] and everything() == before, f"a preview as JSON: {told}")
told = json.loads(agent("log", "--json").stdout)
wanted([turn["kind"] for turn in told] == ["write", "undo", "write", "interrupted"] and everything() == before, f"the log as JSON: {told}")
done = agent("undo", "--json")
told = json.loads(done.stdout)
wanted("turn 4 had been interrupted" in done.stderr and told["turn"] == 3 and told["kind"] == "undo" and not told["preview"] and
       "--- a/b.txt\n+++ /dev/null" in told["difference"] and read("a.txt") == b"a\n" and not os.path.exists("p/b.txt"), f"undo --json: {done}")

# A pasted /undo is shown before it is asked about, at the terminal also if stdout has JSON.
for more in ((), ("--json",)):
    project({"a.txt": b"a\n"})
    patch("b.txt", "+b\n")
    endpoint = Endpoint([END])
    status, seen = at_terminal(["sh", "-c", f"{WHIT} agent --url {endpoint.url} --project p {' '.join(more)} > log"],
                               [("agent>", "see\n/undo\nend\n"), ("/undo. Do it? [y/N", "n\n"), ("agent>", "/bye\n")], dict(environment(), TERM="dumb"))
    endpoint.server.shutdown()
    asked = seen.find("/undo. Do it?")
    wanted(-1 < seen.find("-b\r\n") < asked and read("b.txt") == b"b\n", f"a pasted /undo {more}: {seen}")

# A folder becomes a link to the outside while the journal is written, after all was checked.
def swap(to, ended):
    is_last = False
    while not os.path.islink("p/d") and not is_last:
        is_last = ended.is_set()
        if any(os.path.getsize(name) > 2 << 20 for name in glob.glob("state/whit/agent-*.ndf")):
            os.rename("p/d", "p/e")
            os.symlink(os.path.abspath(to), "p/d")


for to in ("elsewhere", "p/.git"):
    project({})
    shutil.rmtree("elsewhere", ignore_errors=True)
    for folder in ("p/d", "elsewhere", "p/.git"):
        os.makedirs(folder)
    n = 300000
    lines = "".join(f"+{'x' * 80}\n" for _ in range(n))
    open("large.patch", "w").write(f"--- /dev/null\n+++ b/d/large.txt\n@@ -0,0 +1,{n} @@\n{lines}")
    ended = threading.Event()
    swapping = threading.Thread(target=swap, args=(to, ended))
    swapping.start()
    done = subprocess.run([WHIT, "agent", "apply", "large.patch", "--yes", "--project", "p"], env=environment(),
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, text=True)
    ended.set()
    swapping.join()
    # On a busy machine the folder is exchanged after it was opened: then the file is in the folder that was looked at.
    is_safe = done.returncode != 0 or os.path.exists("p/e/large.txt")
    wanted(os.path.islink("p/d") and os.listdir(to) == [] and is_safe, f"written to {to}: {done.stderr}")
sys.exit(checks.failed)
