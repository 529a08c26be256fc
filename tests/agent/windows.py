#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The agent of the program for Windows, under wine, with scripted answers: tools that read and write keep line ends and
lead nowhere else, turns are undone, commands are refused unless a person asks for them without a sandbox and agrees.

    windows.py WINE WHIT.EXE SCRATCH
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

from endpoint import Endpoint, at_terminal, message

wine, program, scratch = sys.argv[1:]
shutil.rmtree(scratch, ignore_errors=True)
os.makedirs(scratch)
os.chdir(scratch)
project = pathlib.Path("p")
SOURCE = b"int main(void)\r\n{\r\n    return 0;\r\n}\r\n"
ONE = SOURCE.replace(b"0", b"1")
PATCH = "src/a.c\n<<<<<<< SEARCH\n    return 0;\n=======\n    return 1;\n>>>>>>> REPLACE\n"
env = dict(os.environ, XDG_STATE_HOME="Z:" + os.path.abspath("state"), XDG_CACHE_HOME="Z:" + os.path.abspath("cache"),
           WHIT_API_KEY="sk-test", no_proxy="*")


def whit(*command, status=0):
    done = subprocess.run([wine, program, *command], env=env, capture_output=True, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, start_new_session=True)
    if done.returncode != status:
        sys.exit("FAILED: %s: exit status %d\n%s%s" % (command, done.returncode, done.stdout, done.stderr))
    return done


def make_project():
    for folder in ("p", "state", "cache"):
        shutil.rmtree(folder, ignore_errors=True)
    (project / "src").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / ".git/config").write_text("[core]\n")
    (project / "src/a.c").write_bytes(SOURCE)


def options(endpoint):
    return ["agent", "-p", "Return one.", "--url", endpoint.url, "--model", "m", "--project", "p"]


def run(calls, *more, status=0):
    """Runs a task whose model calls one tool an answer; returns what the tools said, and the finished process."""
    endpoint = Endpoint([message(None, [call]) for call in calls] + [message("done")])
    done = whit(*options(endpoint), "--allow", "write", *more, status=status)
    endpoint.server.shutdown()
    return [request["messages"][-1]["content"] for request in endpoint.requests[1:]], done


def expect(condition, *what):
    if not condition:
        sys.exit("FAILED: " + " ".join(map(str, what)))


# Tools that read, list, search and write; the ends of lines stay.
make_project()
said, done = run([("read", {"path": "src/a.c"}), ("list", {"path": "src"}), ("grep", {"pattern": "return"}),
                  ("patch_file", {"patch": PATCH}), ("write", {"path": "neu/größe.txt", "content": "one\ntwo\n"})])
expect("return 0;" in said[0] and "a.c" in said[1] and "src/a.c:3" in said[2], "read, list, search:", said)
expect((project / "src/a.c").read_bytes() == ONE, "a patched file:", (project / "src/a.c").read_bytes())
expect((project / "neu/größe.txt").read_bytes() == b"one\ntwo\n", "a new file in a new folder")
expect(sorted(os.listdir(project / "src")) == ["a.c"], "left beside a file:", os.listdir(project / "src"))
expect("+    return 1;" in done.stdout, "shown:", done.stdout)
for _ in range(2):
    whit("agent", "undo", "--project", "p")
expect((project / "src/a.c").read_bytes() == SOURCE and not (project / "neu/größe.txt").exists(), "undone")
(pathlib.Path("answer.patch")).write_text(PATCH)
whit("agent", "apply", "answer.patch", "--project", "p", "--yes")
expect((project / "src/a.c").read_bytes() == ONE, "apply")

# Names that stand for other files here are refused, and nothing is written.
make_project()
names = ["..\\out.txt", "C:\\out.txt", "C:out.txt", "Z:/out.txt", "src\\b.c", "src/a.c:stream", "con", "src/nul.txt",
         "src/b.c.", "src/b.c ", "//server/share/x", "../out.txt", "/out.txt", "LPT1", "com¹.txt"]
said, _ = run([("write", {"path": name, "content": "x"}) for name in names])
for name, answer in zip(names, said):
    expect("plain path" in answer or "not a path below" in answer, name, "was answered:", answer)
said, _ = run([("write", {"path": name, "content": "x"}) for name in (".git/config", ".GIT/config", "git~1/config")])
for answer in said:
    expect("refused" in answer or "keys" in answer, "a guarded name was answered:", answer)
files = sorted(str(path.relative_to(project)) for path in project.rglob("*") if path.is_file())
expect(files == [".git/config", "src/a.c"], "files after refused names:", files)
expect((project / ".git/config").read_text() == "[core]\n", "the configuration of git")

# Commands: not without a sandbox; with --no-sandbox not without a person.
said, done = run([("run", {"command": "echo hello"})] * 2)
expect(done.stderr.count("--no-sandbox") == 1, "the person is not told once:", done.stderr)
expect("knows no sandbox" in said[0] and said[0].count("\n") <= 1, "a command:", said[0])
said, _ = run([("run", {"command": "echo hello"})], "--no-sandbox")
expect("hello" not in said[0], "a command without a person:", said[0])
done = whit("agent", "-j", "2", "one", "two", "--url", "http://127.0.0.1:1/v1", "--project", "p", status=3)
expect("-j is not supported on this system" in done.stderr, "-j:", done.stderr)

# A person at a console agrees to a command, which runs in a copy.
endpoint = Endpoint([message(None, [("run", {"command": "echo hello> made.txt& type made.txt& cd"})]), message("done")])
raw = ["sh", "-c", 'stty -icrnl; exec "$@"', "sh"]  # the Enter key stays what it is
status, seen = at_terminal([*raw, wine, program, *options(endpoint), "--no-sandbox"], [("[y/N", "y\r")], env)
endpoint.server.shutdown()
answer = endpoint.requests[1]["messages"][-1]["content"] if len(endpoint.requests) > 1 else ""
expect(status == 0 and "exit status 0" in answer and "hello" in answer, "a command that was agreed to:", answer, seen)
expect(not (project / "made.txt").exists(), "a command runs in a copy")

# "e" at a question opens the person's editor on copies in the user's folder of temporary files, which are removed.
make_project()
pathlib.Path("an editor.bat").write_text(
    "@echo int edited;> %1\r\n@copy %1 %1~ >nul\r\n@echo %~dp1> \"%~dp0place.txt\"\r\n")
env["VISUAL"] = '"Z:%s\\an editor.bat"' % os.getcwd().replace("/", "\\")
endpoint = Endpoint([message(None, [("write", {"path": "src/a.c", "content": "int b;\n"})]), message("done")])
status, seen = at_terminal([*raw, wine, program, *options(endpoint)],
                           [("[y/N/e/?]", "e\r"), ("[y/N/e/?]", "y\r")], env, 120)
endpoint.server.shutdown()
expect(status == 0 and (project / "src/a.c").read_text() == "int edited;\n", "an edited proposal:", seen)
prefix = os.environ.get("WHIT_WINE_PREFIX") or os.path.join(os.path.dirname(wine), "../../build-windows/wine")
place = pathlib.Path("place.txt").read_text().strip()  # in the folder that the editor's copies have
temporary, _, copies = place.removeprefix("C:\\").replace("\\", "/").partition("whit-edit-")
temporary = pathlib.Path(prefix, "drive_c", temporary)
left = (temporary / ("whit-edit-" + copies.split("/")[0])).exists()
expect(copies and temporary.is_dir() and not left, "an editor's copies are left in", place)
del env["VISUAL"]

# Tools of a server that the configuration names, which is a program of Windows itself.
make_project()
os.makedirs("config/whit", exist_ok=True)
here = "Z:" + os.path.abspath(program).replace("/", "\\")
pathlib.Path("config/whit/agent.json").write_text(json.dumps({"mcp": {
    "w": {"command": [here, "mcp", "Z:" + os.path.abspath("p")], "allow": "green", "env": {"WHIT_TRIED": "1"}},
    "none": {"command": ["no-such-program"]}}}))
env["XDG_CONFIG_HOME"] = "Z:" + os.path.abspath("config")
said, done = run([("mcp__w__graph", {"query": "def", "name": "main"}), ("mcp__none__x", {})])
expect("a.c:1" in said[0] and "no tool" in said[1], "a server's tool:", said)
expect("'none' does not answer" in done.stderr, "a server that is not there:", done.stderr)

# The code that such a server's command and variables name is changed by a person alone.
for folder in ("tools", "lib"):
    (project / folder).mkdir()
    (project / folder / "x.py").write_text("a = 0\n")
place = "Z:" + os.path.abspath("p").replace("/", "\\")
for server, folder in (([here, "mcp", place + "\\tools\\x.py"], "tools"),
                       ([here, "mcp", "cd " + place + "\\tools && dir"], "tools"),
                       (["no-such-program", "--directory=" + place + "\\tools"], "tools")):
    pathlib.Path("config/whit/agent.json").write_text(json.dumps({"mcp": {
        "w": {"command": server, "env": {"PYTHONPATH": "C:\\other;" + place + "\\lib"}}}}))
    for one, is_code in ((folder, True), ("lib", True), ("src", False)):
        said, done = run([("write", {"path": one + "/new.py", "content": "a = 1\n"})], "--yes")
        expect((project / one / "new.py").exists() != is_code, server, one, said, done.stdout, done.stderr)
        (project / one / "new.py").unlink(missing_ok=True)
del env["XDG_CONFIG_HOME"]

# whit mcp answers on its pipes.
asked = [{"jsonrpc": "2.0", "id": 1, "method": "initialize",
          "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
         {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}]
done = subprocess.run([wine, program, "mcp"], env=env, cwd=project, capture_output=True, text=True, timeout=60,
                      input="".join(json.dumps(one) + "\n" for one in asked))
replies = [json.loads(line) for line in done.stdout.splitlines()]
expect([reply["id"] for reply in replies] == [1, 2] and replies[1]["result"]["tools"], "whit mcp:", done.stdout, done.stderr)
