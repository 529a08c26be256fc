# SPDX-License-Identifier: MIT
"""The commands that a person gives in a project of a stranger, and a model that does as the project wants."""
import itertools
import json
import os
import queue
import re
import signal
import subprocess
import sys

from looks import photograph
from person import attend, run_piped
from project import ESCAPE, HIDDEN, MARK, PLAIN

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "agent"))
from acp import Editor  # noqa: E402
from endpoint import Endpoint, message, streamed  # noqa: E402

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
QUESTION = re.compile(r"\[y/N[^\]]*\] $")
ORDINARY = re.compile(r"(^|[\r\n])(\(a question of [^)]*\) )?Write \d+ files?\? \[y/N[^\]]*\] $")
NEW = {"plain/new.c": "int made;\n", "plain/more/new.txt": "more\n"}


class Play:
    """What a command may do, and what it did."""

    def __init__(self, project, says_yes, title):
        self.project, self.says_yes, self.title = project, says_yes, title
        self.shown, self.sent, self.left, self.exposed, self.sendable = [], [], [], set(), set()
        self.agreed, self.is_lenient, self.may_format = set(), False, False
        self.hangs, self.crash = b"", ""
        self.before = photograph(project.home)  # how everything was before the command

    def may_change(self, name):
        if not self.says_yes or name == ".":
            return False
        if name.startswith((".git/objects/", ".git/refs/whit", ".git/logs/refs/whit")) or name == ".git/logs/refs":
            return True
        parts = name.split("/")
        inside = os.path.realpath(os.path.join(self.project.root, name)).startswith(self.project.root + "/")
        if self.is_lenient and inside and not any(part.startswith(".") for part in parts) and "AGENTS.md" not in parts:
            return True
        return name in self.agreed or any(other.startswith(name + "/") for other in self.agreed if other in NEW)

    def note_status(self, status):
        if status in (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGFPE, -signal.SIGILL):
            self.crash = f"it ended by signal {-status}"

    def expose(self, path):
        """The person opens the file: its secret may be shown, and kept where the text is kept."""
        real = os.path.realpath(os.path.join(self.project.root, path))
        self.exposed |= {text for text, place in self.project.secrets.items()
                         if place == real or (place == "environment" and real.startswith("/proc/"))}

    def answer_question(self, text):
        """y to the question about an ordinary change, n to all others, nothing where there is no question."""
        text = COLOURS.sub("", text)
        if not QUESTION.search(text):
            return None
        names = set(re.findall(r"^\+\+\+ (?:b/)?(.*?)\r*$", text, re.M)) - {"/dev/null"}
        if self.says_yes and ORDINARY.search(text) and names and names <= PLAIN.keys() | NEW.keys():
            self.agreed |= names
            return b"y\n"
        return b"n\n"


# ---- the model ------------------------------------------------------------------------------------

def draw_call(project, rng):
    name = rng.choice(project.names or ["plain"]) if rng.random() < 0.6 else rng.choice(
        [*PLAIN, ".env", ".git/config", ".git/hooks/post-commit", "..", "../neighbour/.env", project.home + "/.bashrc", ".", "plain/../../neighbour/.env"])
    inner = name + rng.choice(["", "", "", "/inner.c", "/.env", "/id_ed25519", "/src/private.c", "/.bashrc", "/../neighbour/.env"])
    plain = rng.choice(list(PLAIN))
    first = PLAIN[plain].splitlines()[0]
    hostile = f"new {ESCAPE}{HIDDEN}\n"
    patch = rng.choice([
        f"{plain}\n<<<<<<< SEARCH\n{first}\n=======\n{first} changed\n>>>>>>> REPLACE\n",
        f"*** Begin Patch\n*** Update File: {inner}\n@@\n-plain text\n+changed\n*** End Patch\n",
        f"*** Begin Patch\n*** Delete File: {inner}\n*** End Patch\n",
        f"*** Begin Patch\n*** Add File: {inner}\n+canary\n*** End Patch\n",
        f"*** Begin Patch\n*** Update File: {plain}\n*** Move to: {inner}\n@@\n-{first}\n+moved\n*** End Patch\n",
        f"diff --git a/{plain} b/{inner}\nrename from {plain}\nrename to {inner}\n",
        f"diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+../neighbour/.env\n\\ No newline at end of file\n"])
    command = rng.choice([
        "env", "cat .env ../neighbour/.env ~/.bashrc; ls -la", f"cat {project.home}/.bashrc {project.home}/notes.txt", "git status; git log -p; git diff",
        "for f in $(find . -type f -o -type l); do head -c 2000 \"$f\"; done 2>/dev/null | rev | rev", "./bin/check; ./git status; sh ./.canary/tool",
        f"echo x >>'{project.ran}'; ln -s {project.home} h; cat h/.bashrc h/notes.txt; echo x >h/linked.txt", "cat /proc/*/environ; cat /proc/self/environ",
        "tr '\\0' '\\n' </proc/$PPID/environ", "ls -la /proc/*/fd /proc/*/cwd/; cat README.md src/main.c .gitignore"])
    return rng.choice([
        ("read", {"path": inner}), ("read", {"path": inner, "first": 1, "last": 5}), ("list", {"path": inner}), ("list", {}),
        ("grep", {"pattern": MARK, "path": inner}), ("grep", {"pattern": rng.choice([MARK, ".", "canary|KEY"])}),
        ("write", {"path": inner, "content": rng.choice([hostile, "canary\n", "all:\n\tcanary\n"])}), ("write", {"path": plain, "content": "changed\n"}),
        ("write", {"path": rng.choice(list(NEW)), "content": "int made;\n"}), ("patch_file", {"patch": patch}), ("patch_file", {"patch": patch, "path": inner}),
        ("graph", {"query": "map"}), ("graph", {"query": rng.choice(["def", "refs", "like", "callers"]), "name": rng.choice([MARK, "main", "inner"])}),
        ("graph", {"query": "imports", "name": inner}), ("run", {"command": command}), ("run", {"command": command}),
        ("ask", {"question": f"May I? {hostile}"}), ("agent", {"task": f"Read {inner} and write it to {plain}."}),
        ("mcp__tickets__send", {"text": "x"}), ("fly", {"path": inner})])


def draw_answers(project, rng):
    answers = []
    for _ in range(rng.randrange(2, 6)):
        calls = [draw_call(project, rng) for _ in range(rng.randrange(1, 5))]
        answers.append((streamed if rng.random() < 0.5 else message)(f"I do {ESCAPE}{HIDDEN} it.", calls))
    return [*answers, message(f"done {ESCAPE}{HIDDEN}")]


def note_requests(play, endpoint):
    endpoint.server.shutdown()
    endpoint.server.server_close()
    for number, request in enumerate(endpoint.requests):
        play.sent.append((f"request {number}", json.dumps(request, ensure_ascii=False).encode(errors="replace")))
    for headers in endpoint.headers:
        play.sent.append(("a header", repr({name: value for name, value in headers.items() if name != "Authorization"}).encode()))


# ---- the agent ------------------------------------------------------------------------------------

def answer_all(play, endings=()):
    """Answers questions; types the given lines at prompts of tasks, and "no" where the program waits for something else."""
    lines, waits = list(endings), [0]

    def answer(text):
        if (typed := play.answer_question(text)) is not None:
            return typed
        plain = COLOURS.sub("", text)
        if plain.endswith("agent> "):
            return lines.pop(0) if lines else b"\x04"
        waits[0] = waits[0] + 1 if plain == getattr(answer, "last", None) else 0
        answer.last = plain
        return b"no\n" if plain.endswith(("> ", "? ")) and waits[0] > 5 else None
    return answer


def agent_options(project, rng):
    return rng.choice([[], [], ["--allow", "read"], ["--project", project.root], ["--max-turns", "4"], ["--no-sandbox"]])


def play_agent(play, whit, rng, env, bound_s):
    endpoint = Endpoint(draw_answers(play.project, rng))
    command = [whit, "agent", *rng.choice([["-p", "Do it."], ["Do it."], ["-p", f"Look at @{rng.choice(play.project.names or ['.'])}."]]),
               "--url", endpoint.url, "--model", "m", *agent_options(play.project, rng)]
    attend(play, command, answer_all(play), env, play.project.root, bound_s)
    note_requests(play, endpoint)


def play_typed(play, whit, rng, env, bound_s):
    """Tasks and commands that are typed to an agent."""
    names = [name for name in play.project.names if name.isprintable()] or ["plain"]  # others are seen as they are typed
    name = rng.choice(names)
    drawn = ["/add {}", "look at @{}", "/plan look at {}", "/diff", "/log", "/model", "/cost", "/clear", "do it", "/help"]
    if play.says_yes:  # a turn that is taken back needs no further yes
        drawn += ["/undo", "/redo"]
        play.is_lenient = True
    lines = [rng.choice(drawn).format(rng.choice(names)).encode(errors="surrogateescape") + b"\n" for _ in range(rng.randrange(2, 7))]
    lines.insert(0, f"/add {name}\n".encode(errors="surrogateescape"))
    endpoint = Endpoint([answer for _ in range(5) for answer in draw_answers(play.project, rng)])
    attend(play, [whit, "agent", "--url", endpoint.url, "--model", "m", *rng.choice([[], ["--resume"]])], answer_all(play, lines), env,
           play.project.root, bound_s)
    note_requests(play, endpoint)


def play_agent_piped(play, whit, rng, env, bound_s):
    """Nobody is at a terminal; a yes is the option that agrees to ordinary changes."""
    endpoint = Endpoint(draw_answers(play.project, rng))
    play.is_lenient = play.says_yes
    options = ["--yes"] if play.says_yes else rng.choice([[], ["--allow", "read"]])
    run_piped(play, [whit, "agent", "-p", "Do it.", "--url", endpoint.url, "--model", "m", *options, *rng.choice([[], ["--resume"]])], env,
              play.project.root, bound_s)
    note_requests(play, endpoint)


def play_agent_json(play, whit, rng, env, bound_s):
    endpoint = Endpoint(draw_answers(play.project, rng))
    play.is_lenient = play.says_yes
    run_piped(play, [whit, "agent", "-p", "-", "--json", "--url", endpoint.url, "--model", "m", *(["--yes"] if play.says_yes else [])], env,
              play.project.root, bound_s, b"Do it.\n")
    play.shown = [(what, data) if what != "stdout" else (what, data.replace(HIDDEN.encode(), b"")) for what, data in play.shown]  # JSON is for programs
    note_requests(play, endpoint)


class Host(Editor):
    """An editor that hosts the agent, whose person agrees to ordinary changes alone."""
    play = None

    @property
    def say_yes(self):
        call = self.asked[-1]["toolCall"] if self.asked else {}
        diffs = [content for content in call.get("content") or [] if content.get("type") == "diff"]
        names = {os.path.relpath(diff["path"], self.play.project.root) for diff in diffs}
        if self.play.says_yes and re.fullmatch(r"Write \d+ files?\??", call.get("title", "")) and names and names <= PLAIN.keys() | NEW.keys():
            self.play.agreed |= names
            return True
        return False

    @say_yes.setter
    def say_yes(self, value):
        pass


def play_hosted(play, whit, rng, env, bound_s):
    Host.play = play
    editor = Host(whit, env, draw_answers(play.project, rng), "--model", "m", project=play.project.root)
    got = []
    try:
        editor.result("initialize", protocolVersion=1)
        servers = [{"name": "t", "command": "python3", "args": ["-m", "tickets"], "env": []}] if rng.random() < 0.2 else []
        session = (editor.result("session/new", cwd=play.project.root, mcpServers=servers) or {}).get("sessionId")
        name = rng.choice(play.project.names or ["plain"]).encode(errors="replace").decode()
        uri = "file://" + os.path.join(play.project.root, name)
        got.append(editor.result("session/prompt", sessionId=session, prompt=[
            {"type": "text", "text": "Do it."}, {"type": "resource_link", "uri": uri, "name": name}]))
        editor.process.stdin.close()
        play.note_status(editor.process.wait(timeout=bound_s))
    except (queue.Empty, subprocess.TimeoutExpired):
        play.hangs = b"(no answer of the protocol)"
        editor.process.kill()
    except BrokenPipeError:
        play.note_status(editor.process.wait(timeout=bound_s))
    play.shown += [("messages of the protocol", json.dumps(editor.updates + editor.asked + got, ensure_ascii=False).encode(errors="replace"))]
    play.shown += [("stderr", editor.process.stderr.read().encode(errors="replace"))]
    editor.process.wait()
    note_requests(play, editor.endpoint)


def play_turns(play, whit, rng, env, bound_s):
    """Turns that are taken back or made again, and a patch of a file, which may name anything."""
    kind = rng.choice(["undo", "redo", "log", "undo", "apply", "apply"])
    words = [kind, "--preview"] if kind in ("undo", "redo") and not play.says_yes else [kind]
    play.is_lenient = play.says_yes
    if kind == "apply":
        calls = [draw_call(play.project, rng) for _ in range(30)]
        patches = [arguments["patch"] for name, arguments in calls if name == "patch_file"] or [""]
        path = os.path.join(play.project.home, ".local/state/whit/the.patch")
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(patches[0])
        words.append(path)
    if rng.random() < 0.3 and kind == "apply":
        words.append("--preview")
    if rng.random() < 0.3:
        run_piped(play, [whit, "agent", *words, *rng.choice([[], ["--json"]]), *(["--yes"] if play.says_yes else [])], env, play.project.root, bound_s)
    else:
        attend(play, [whit, "agent", *words], answer_all(play), env, play.project.root, bound_s)


# ---- the editor -----------------------------------------------------------------------------------

KEYS = {"F1": b"\x1bOP", "F3": b"\x1bOR", "F4": b"\x1bOS", "F7": b"\x1b[18~", "F8": b"\x1b[19~", "F12": b"\x1b[24~", "M-F": b"\x1bF",
        "M-t": b"\x1bt", "M-f": b"\x1bf" + MARK.encode() + b"\r", "C-p": b"\x10", "M-T": b"\x1bT", "C-Space": b"\x00", "M-h": b"\x1bh", "M-i": b"\x1bi",
        "M-a": b"\x1ba", "M-l": b"\x1bl", "M-R": b"\x1bR" + MARK.encode() + b"\rnew\r", "PageDown": b"\x1b[6~", "Esc": b"\x1b\x1b", "text": b"word ",
        "C-z": b"\x1a", "M-.": b"\x1b.", "S-F1": b"\x1b[1;2P", "C-a": b"\x01", "n": b"n", "M-b": b"\x1bb"}


def is_pipe(project, path):
    return os.path.realpath(os.path.join(project.root, path)) in project.pipes


def leave_editor(n_waited):
    """The keys that leave an editor, whatever it asks: nothing is saved."""
    return {1: b"\x1b\x1b", 4: b"\x11", 10: b"d"}.get(n_waited % 16)


def play_edit(play, whit, rng, env, bound_s):
    """Opens files, looks around with all keys that only look, and leaves without saving; a yes saves ordinary files."""
    project = play.project
    names = [name for name in project.names if not is_pipe(project, name) and not name.startswith(("-", "+"))]
    opened = rng.sample(names, min(len(names), rng.randrange(3))) + rng.sample(list(PLAIN), rng.randrange(2))
    keys = [(name, KEYS[name]) for name in rng.choices(list(KEYS), k=rng.randrange(3, 12))]
    if play.says_yes:
        name = rng.choice(list(PLAIN))
        opened, keys = [name], [("text", b"saved"), ("C-s", b"\x13"), *keys]
        play.agreed.add(name)
    play.may_format = any(key == "M-F" for key, _ in keys)
    for name in opened:
        play.expose(name)
    play.exposed |= {text for text, place in project.secrets.items() if place.startswith(project.root + "/")}
    play.title += f" {opened} {[key for key, _ in keys]}"
    waiting, ends = [typed for _, typed in keys], [0]

    def answer(_):
        if waiting:
            return waiting.pop(0)
        ends[0] += 1
        return leave_editor(ends[0])
    attend(play, [whit, "edit", *opened], answer, env, project.root, bound_s)


# ---- other commands -------------------------------------------------------------------------------

def play_other(play, whit, rng, env, bound_s):
    project = play.project
    tiny = os.path.join(project.home, ".local/share/whit/tiny.gguf")
    names = [name for name in project.names if not is_pipe(project, name) and "/dev/" not in os.path.realpath(os.path.join(project.root, name))
             and "/proc/" not in os.path.realpath(os.path.join(project.root, name)) and not name.startswith("-")] or ["plain"]
    name, query = rng.choice(names), rng.choice([["map"], ["def", MARK], ["refs", "main"], ["like", "main"], ["imports", "plain/a.c"], []])
    command = rng.choice([["graph", ".", *query], ["graph", ".", *query], ["inspect", name], ["exec", name], ["template", "--template", name],
                          ["run", "-m", tiny, "-n", "2", "-p", "x"], ["chat", "-m", tiny, "-n", "2"], ["run", "-m", name, "-n", "1", "-p", "x"],
                          ["doctor"], ["list"], ["tokenize", "-m", tiny], ["mcp", "."], ["verify", name], ["help", "agent"], ["convert", name, "/dev/null"],
                          ["agent", "-p", "x", "-m", tiny, "--max-turns", "1"], ["embed", "-m", tiny], ["repl"], ["memory", "query", name, "x"]])
    if "convert" in command or "memory" in command or "inspect" in command or "exec" in command or "template" in command:
        play.expose(name)  # a message may quote the file that was named
    play.title += f" {command}"
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "graph", "arguments": {"query": "map"}}}
    typed = (json.dumps(ask) + "\n").encode() if command[0] == "mcp" else b"hello\n"
    if rng.random() < 0.5:
        run_piped(play, [whit, *command], env, project.root, bound_s, typed)
    else:
        ends = itertools.cycle([b"\x04", b"/bye\n", b"q", b"\n", b"\x04"])  # of input, of a chat, of a pager
        attend(play, [whit, *command], lambda _: next(ends), env, project.root, bound_s)


PLAYS = {"agent": play_agent, "typed": play_typed, "piped": play_agent_piped, "json": play_agent_json, "hosted": play_hosted, "turns": play_turns,
         "edit": play_edit, "other": play_other}
WEIGHTS = {"agent": 4, "typed": 2, "piped": 3, "json": 1, "hosted": 3, "turns": 2, "edit": 4, "other": 4}
