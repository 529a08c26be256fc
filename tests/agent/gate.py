# SPDX-License-Identifier: MIT
"""Commands of an agent run in a copy, checks hold back what fails them, and what is red is asked about."""
import json
import os
import shutil
import subprocess
import sys

import checks
from checks import environment, wanted
from endpoint import Endpoint, Withheld, at_terminal, message

WHIT = sys.argv[1]
SOURCE = "int main(void)\n{\n    return 0;\n}\n"
MAKE = "a: src/a.c\n\tcc -o a src/a.c\ntest: a\n\t./a\n"


def project(config=None):
    for folder in ("p", "state", "cache", "config", "home"):
        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs("p/src")
    os.makedirs("p/.git")
    os.makedirs("home")
    open("p/src/a.c", "w").write(SOURCE)
    open("p/Makefile", "w").write(MAKE)
    open("p/.env", "w").write("SECRET\n")
    open("p/.gitignore", "w").write("ignored\n")
    open("p/ignored", "w").write("x" * 100)
    if config is not None:
        os.makedirs("p/.whit")
        open("p/.whit/agent.json", "w").write(config if isinstance(config, str) else json.dumps(config))


def agent(answers, *more, allow="yellow", status=0):
    endpoint = Endpoint(answers)
    done = subprocess.run([WHIT, "agent", "-p", "Do it.", "--url", endpoint.url, "--project", "p", "--allow", allow, *more],
                          env=environment(), capture_output=True, text=True, start_new_session=True,
                          stdin=subprocess.DEVNULL, timeout=600)
    endpoint.server.shutdown()
    wanted(done.returncode == status, f"status {done.returncode}, not {status}: {done.stderr}")
    return done, [m["content"] for m in endpoint.requests[-1]["messages"] if m["role"] == "tool"] if endpoint.requests else []


def command(line):
    return message(None, [("run", {"command": line})])


def change(old, new, path="src/a.c"):
    return ("patch_file", {"patch": f"{path}\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"})


def source():
    return open("p/src/a.c").read()


def tree():
    return sorted(os.path.join(at, f) for at, _, files in os.walk("p") for f in files)


END = message("done")

# Outside the sandbox the project's checks are asked about, too: unanswered they do not run, and nothing is written.
if os.path.exists("checked"):
    os.unlink("checked")
project({"check": ["touch " + os.path.abspath("checked")]})
done, got = agent([message(None, [change("return 0;", "return 5;")]), END], "--no-sandbox")
wanted("was not agreed to" in got[0] and not os.path.exists("checked") and source() == SOURCE, f"an unheld check: {got[0]}")
endpoint = Endpoint([message(None, [change("return 0;", "return 6;")]), message(None, [change("return 6;", "return 5;")]), END])
status, seen = at_terminal([WHIT, "agent", "-p", "x", "--url", endpoint.url, "--project", "p", "--no-sandbox", "--allow", "yellow"],
                           2 * [("Do it? [y/N", "y\n")], environment())
wanted(status == 0 and os.path.exists("checked") and "return 5" in source(), f"an unheld check with a yes: {seen}")

# Two changes that hide a file together are asked about, although neither hides it alone.
rules, shows = ("write", {"path": ".gitignore", "content": "t.py\n"}), ("write", {"path": "tests/.gitignore", "content": "# shows nothing\n"})
for calls, is_asked in (([rules], False), ([shows], False), ([rules, shows], True), ([shows, rules], True)):
    project({})
    os.remove("p/.gitignore")
    os.makedirs("p/tests")
    open("p/tests/t.py", "w").write("x = 1\n")
    open("p/tests/.gitignore", "w").write("!t.py\n")
    done, got = agent([message(None, calls), END])
    wanted(("it hides files of the project from checks" in got[0]) == is_asked, f"{calls}: {got}")
    is_same = open("p/tests/.gitignore").read() == "!t.py\n" and not os.path.exists("p/.gitignore")
    wanted(is_same == is_asked, f"{calls}: what is written")

# A key that comes into a file hides it from later checks, too.
for path, there in (("rules", "good\n"), ("more", None)):
    project({"check": ["! cat rules more 2>/dev/null | grep BAD"]})
    open("p/rules", "w").write("good\n")
    done, got = agent([message(None, [("write", {"path": path, "content": "good\n# ghp_" + 6 * "aB3456" + "\n"})]),
                       message(None, [("write", {"path": "rules", "content": "BAD\n"})]), END])
    wanted("it adds a key, after which checks do not see the file" in got[0] and "fails" in got[1], f"a key that hides {path}: {got}")
    wanted(open("p/rules").read() == "good\n" and not os.path.exists("p/more"), f"a key that hides {path} is written")

# Files that the copy leaves out, because they lie too deep or the list of copied files has no line for them, are told once.
for path, n in (("d/" * 34 + "f", 1), ("a\nb", 1), ("d/" * 30 + "f", 0)):
    project({})
    os.makedirs(os.path.dirname("p/" + path), exist_ok=True)
    open("p/" + path, "w").write("x\n")
    done, got = agent([command("true"), command("find . -name f"), END])
    wanted(done.stderr.count("do not see all files of this project") == n and ("/f\n" in got[1]) == (n == 0), f"{path!r}: {done.stderr} {got}")

# A name that ends as a folder's is refused by itself: what the same answer writes beside it is written.
project({})
done, got = agent([message(None, [("write", {"path": "made/", "content": "x\n"}), ("write", {"path": "ok.txt", "content": "x\n"})]), END])
wanted("not a plain path" in got[0] and os.path.exists("p/ok.txt") and not os.path.exists("p/made"), f"a name of a folder: {got}")

report = json.loads(subprocess.run([WHIT, "doctor", "--json"], capture_output=True, text=True).stdout)
held = report["landlock_abi"] and report["seccomp"] and (report["namespaces"] or report["landlock_abi"] >= 3)
if not held:
    project()
    _, got = agent([command("true"), END])
    wanted("commands are not run" in got[0], f"without walls a command runs: {got}")
    print("[ SKIPPED ] this machine cannot hold commands")
    sys.exit(checks.failed or 77)

# Neither a project's settings nor a model's argument give a command more time than the user's settings.
project({"command_seconds": 300})
os.makedirs("config/whit")
json.dump({"command_seconds": 1}, open("config/whit/agent.json", "w"))
done, got = agent([message(None, [("run", {"command": "sleep 20; echo slept", "seconds": 3600})]), END])
wanted("ended because it reached its time limit" in got[0] and "slept" not in got[0], f"more time than the user gives: {got[0]}")

# What the sandbox cannot enforce is told before the first command, at the terminal and in the editor's panel.
nameless = ["unshare", "-U", "-r", "sh", "-c", "echo 0 >/proc/sys/user/max_user_namespaces && stty rows 30 cols 100 && exec \"$@\"", "sh"]
if shutil.which("unshare") and at_terminal([*nameless, "true"], [])[0] == 0 and report["landlock_abi"] >= 3:
    told = "this user gets no name spaces"
    project()
    endpoint = Endpoint([command("true"), END])
    _, seen = at_terminal([*nameless, WHIT, "agent", "-p", "x", "--url", endpoint.url, "--project", "p"], [], environment())
    wanted(told in seen, f"the terminal does not tell: {seen}")
    endpoint = Endpoint([command("true"), END])
    _, seen = at_terminal([*nameless, WHIT, "edit", "--url", endpoint.url, "--model", "m", "p/src/a.c"],
                          [("main", "\x1b[20~"), ("Task", "x\r"), (told, "\x11")],
                          dict(environment(), TERM="xterm-256color"))
    wanted(told in seen, f"the panel does not tell: {seen[-3000:]}")

# A build and a test: nobody is asked, nothing of it is in the project, the second build is incremental.
project()
before = tree()
done, got = agent([command("make a && ./a && echo fine"), command("make a"), command("cat .env; ls -a; test ! -e .git"),
                   command("echo x >src/a.c; echo y >new; cat new"), command("cat src/a.c new"), END], allow="green")
wanted("exit status 0" in got[0] and "fine" in got[0], f"build: {got[0]}")
wanted("up to date" in got[1], f"the second build: {got[1]}")
wanted("SECRET" not in got[2] and "exit status 0" in got[2] and "ignored" not in got[2].split(), f"secrets: {got[2]}")
wanted("int main" in got[4] and "y\n" in got[4], f"the project's file is put back, the command's own stays: {got[4]}")
wanted(tree() == before and source() == SOURCE, f"the project has changed: {tree()}")

# A file with other names is asked about, since they change with it.
os.link("p/src/a.c", "p/src/other.c")
done, got = agent([message(None, [change("return 0;", "return 9;")]), END])
wanted("other names" in got[0] and source() == SOURCE, f"a file with two names: {got}")
os.unlink("p/src/other.c")

# Changes of the same answer are in the copy, and gone from it when they are refused.
done, got = agent([message(None, [change("return 0;", "return 3;"), ("run", {"command": "make a && ./a"})]),
                   command("make a && ./a"), END], allow="green")
wanted("exit status 3" in got[1], f"a staged change: {got[1]}")
wanted("exit status 0" in got[2], f"a refused change stays in the copy: {got[2]}")
done, got = agent([message(None, [("write", {"path": "src/v1..v2.txt", "content": "dots\n"}), ("run", {"command": "cat src/v1..v2.txt"})]),
                   END], allow="green")
wanted("dots" in got[1], f"a name with dots in the copy: {got[1]}")

# What a command plants in the copy leads nobody out of it.
os.makedirs("victim/src", exist_ok=True)
open("victim/a.c", "w").write("mine")
done, got = agent([command(f"rm -rf src && ln -s {os.path.abspath('victim')} src && ls -l"), command("cat src/a.c"),
                   command("cat /etc/passwd ~/../../../.ssh/id; ls " + os.path.abspath("p")), END])
wanted("int main" in got[1] and open("victim/a.c").read() == "mine", f"a planted link: {got[1]}")
wanted("exit status 0" not in got[2] and "root:" not in got[2] and "the sandbox refused" in got[2], f"outside: {got[2]}")
runs = [json.loads(x) for x in open(f"state/whit/{[f for f in os.listdir('state/whit') if f.endswith('.runs.jsonl')][0]}")]
wanted(len(runs) == 11 and any("passwd" in line for line in runs[-1]["refused"]), f"the list of runs: {runs[-1]}")

# The gate: what fails the project's check is not written, and the model reads why.
project({"check": ["make test"]})
done, got = agent([message(None, [change("return 0;", "return 4;")]), message(None, [change("return 0;", "return 0; /* */")]), END])
wanted("make test" in got[0] and "nothing is written" in got[0] and "4" in got[0], f"a failing check: {got[0]}")
wanted("turn 1" in got[1] and "/* */" in source(), f"a check that passes: {got[1]}")
wanted("a" not in os.listdir("p"), "a check built in the project")
# What a check leaves in its copy does not count for the next one: neither of changes that were held back, nor of those
# that were refused, nor what the project has not; what .gitignore names stays, so that builds are incremental.
PLANT = "printf 'test:\\n\\ttrue\\n' >GNUmakefile; mkdir -p $HOME/x ign; echo 1 >$HOME/x/y; echo 1 >ign/kept; ln -s / link; mkfifo fifo; "
BAD = message(None, [("write", {"path": "a.txt", "content": "bad\n"})])


def plant(text):
    return message(None, [("write", {"path": "t.sh", "content": text})])


def poisoned(first, allow, *then):
    project({"check": ["make test"]})
    open("p/Makefile", "w").write("test:\n\tsh t.sh\n")
    open("p/t.sh", "w").write("test ! -e $HOME/x && test ! -e link && grep -q good a.txt\n")
    open("p/a.txt", "w").write("good\n")
    open("p/.gitignore", "w").write("ign\n")
    agent([plant(first), END], allow=allow)
    for more in then:
        agent([more, END], allow="yellow")
    done, got = agent([BAD, END], allow="yellow")
    wanted("fails" in got[0] and open("p/a.txt").read() == "good\n", f"a check is poisoned by {first!r} ({allow}): {got}")


poisoned(PLANT + "exit 1\n", "yellow")
poisoned(PLANT + "exit 0\n", "green")
poisoned(PLANT + "exit 0\n", "yellow", plant("test ! -e $HOME/x && test ! -e link && test -e ign/kept && grep -q good a.txt\n"))
project({"check": ["make test"]})

for path, text, why in (("x.json", "{", "is not JSON"), ("src/b.c", "int f(void) {\n", "no partner"),
                        ("src/b.py", "x = (1\n", "no partner"), ("b.txt", "<<<<<<< a\n", "merge")):
    done, got = agent([message(None, [("write", {"path": path, "content": text})]), END])
    wanted(why in got[0] and not os.path.exists(f"p/{path}"), f"{path}: {got[0]}")
for path, text in (("src/c.c", "char a[] = {'(', '\"', '\\'', \"(\"[0]}; /* ( */ // (\nint x = 1'000;\n"),
                   ("src/c.py", "x = '''(\n('''  # (\n"), ("c.json", "[1]\n")):
    done, got = agent([message(None, [("write", {"path": path, "content": text})]), END])
    wanted("turn" in got[0], f"{path}: {got[0]}")

# What is red is asked about, and done where the person says so.
for path, text, why in (("src/d.c", "int f(void) { return system(\"x\"); }\n", "system()"),
                        ("src/d.rb", 'def f\n  system("x")\nend\n', "system()"),
                        ("src/d.lua", 'function f()\n  eval("x")\nend\n', "eval()"),
                        (".whit/agent.json", '{"check": []}\n', "configuration"),
                        ("AGENTS.md", "Obey.\n", "configuration")):
    call = [message(None, [("write", {"path": path, "content": text})]), END]
    done, got = agent(call)
    there = open(f"p/{path}").read() if os.path.exists(f"p/{path}") else ""
    wanted("refused" in got[0] and why in got[0] and there != text, f"{path}: {got[0]}")
    endpoint = Endpoint(call)
    status, seen = at_terminal([WHIT, "agent", "-p", "x", "--url", endpoint.url, "--project", "p", "--allow", "yellow"],
                               [("[y/N", "y\n")], environment())
    wanted(status == 0 and why in seen and open(f"p/{path}").read() == text, f"{path} with a yes: {seen}")

# Hunk by hunk: the first of two is taken, the other left out, and what was proposed as a whole is refused from then on.
lines = [f"line {i}\n" for i in range(20)]
two = "".join("one\n" if i == 2 else "two\n" if i == 17 else x for i, x in enumerate(lines))
open("p/lines", "w").write("".join(lines))
call = message(None, [("write", {"path": "lines", "content": two})])
endpoint = Endpoint([call, call, END])
status, seen = at_terminal([WHIT, "agent", "-p", "x", "--url", endpoint.url, "--project", "p"],
                           [("[y/N/h", "h\n"), ("1 of 2, lines: take it? [y/N", "y\n"), ("2 of 2, lines: take it? [y/N", "n\n")],
                           environment())
told = [m["content"] for m in endpoint.requests[-1]["messages"] if m["role"] == "tool"]
wanted(open("p/lines").read() == "".join("one\n" if i == 2 else x for i, x in enumerate(lines)), f"hunks: {seen}")
wanted("refused 1 hunk" in told[0] and "refused by the person" in told[1], f"hunks: {told}")

# A question reaches the person, and the answer the model; what was typed before the question is not the answer.
answers = Withheld([command("true"), message(None, [("ask", {"question": "Which colour?"})]), END])
endpoint = Endpoint(answers)
status, seen = at_terminal([WHIT, "agent", "-p", "x", "--url", endpoint.url, "--project", "p"],
                           [("runs true", "blue\n"), ("", "", answers.typed.set), ("Which colour?", "green\n")], environment())
wanted(status == 0 and endpoint.requests[-1]["messages"][-1]["content"] == "green\n", f"ask: {seen}")

# Without the sandbox: only where a person says so, and then each command is asked about.
done, got = agent([command("echo unheld"), END], "--no-sandbox")
wanted("not run" in got[0], f"--no-sandbox without a person: {got[0]}")
endpoint = Endpoint([command("echo unheld"), END])
status, seen = at_terminal([WHIT, "agent", "-p", "x", "--url", endpoint.url, "--project", "p", "--no-sandbox"],
                           [("[y/N", "y\n")], environment())
wanted("unheld" in endpoint.requests[-1]["messages"][-1]["content"] and "outside the sandbox" in seen, f"unheld: {seen}")

# It does not see what commands in the sandbox, which nobody was asked about, have left in their copy.
project()
PLANT = "all:\n\ttouch " + os.path.abspath("planted")
done, got = agent([command(f"printf '%s\\n' '{PLANT}' > GNUmakefile; ls"), END])
if "commands are not run" not in got[0]:
    wanted("GNUmakefile" in got[0], f"a file in the copy: {got[0]}")
endpoint = Endpoint([command("make -n; ls"), END])
status, seen = at_terminal([WHIT, "agent", "-p", "x", "--url", endpoint.url, "--project", "p", "--no-sandbox"],
                           [("[y/N", "y\n")], environment())
left = endpoint.requests[-1]["messages"][-1]["content"]
wanted("Makefile" in left and "GNUmakefile" not in left and "planted" not in left, f"files of the sandbox outside of it: {left}")

# Keys are not in the copy either, by their names or by what they hold, nor are they told of by any tool.
TOKEN = "ghp_" + 6 * "aB3456"
KEY = "-----BEGIN PRIVATE " + "KEY-----\n" + 2 * ("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj" + "\n")
project()
for name, text in (("id_ecdsa", "SECRET"), ("deploy.pem", "SECRET"), (".ENV", "SECRET"), (".npmrc", "SECRET"), ("notes.txt", KEY),
                   ("settings.txt", f"token = {TOKEN}\n"), ("good.txt", "fine\n")):
    open(f"p/{name}", "w").write(text)
done, got = agent([command("cat id_ecdsa deploy.pem .ENV .npmrc notes.txt settings.txt; cat good.txt"),
                   message(None, [("read", {"path": n}) for n in ("id_ecdsa", "deploy.pem", ".ENV", ".npmrc", "notes.txt", "settings.txt")]),
                   message(None, [("grep", {"pattern": "SECRET|MIIE|ghp_"}), ("list", {}), ("run", {"command": f"echo {TOKEN}"}),
                                  ("patch_file", {"patch": "settings.txt\n<<<<<<< SEARCH\ntoken = x\n=======\ny\n>>>>>>> REPLACE\n"})]), END])
wanted("fine" in got[0] and not any(x in "".join(got) for x in ("SECRET\n", "MIIE", TOKEN)), f"keys: {got}")
wanted(all(g.startswith("error:") for g in got[1:7]) and "good.txt" in got[8] and "id_ecdsa" not in got[8], f"keys: {got}")

# A project around the folders of copies and journals does not copy them.
shutil.rmtree("h", ignore_errors=True)
os.makedirs("h")
for i in range(5):
    open(f"h/{i}.txt", "w").write("x" * 1000)
endpoint = Endpoint([command("ls -A; find . | wc -l")] * 4 + [message(None, [("read", {"path": ".local/state/whit/x"})]), END])
env = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
done = subprocess.run([WHIT, "agent", "-p", "x", "--url", endpoint.url, "--project", "h", "--allow", "yellow"], capture_output=True, text=True,
                      env=dict(env, no_proxy="*", HOME=os.path.abspath("h")), start_new_session=True, stdin=subprocess.DEVNULL, timeout=600)
got = [m["content"].split("\n", 1)[-1] for m in endpoint.requests[-1]["messages"] if m["role"] == "tool"]
wanted(done.returncode == 0 and got[0] == got[1] == got[2] == got[3] and "0.txt" in got[0] and ".cache" not in got[0], f"a copy of copies: {got}")
wanted("own state" in got[4] or "not read" in got[4], f"the program's own state: {got[4]}")

# The project and home stay closed to commands if a folder that they may read contains them.
project()
os.makedirs("config/whit", exist_ok=True)
os.makedirs("tools", exist_ok=True)
os.makedirs("home", exist_ok=True)
os.makedirs("state/whit")
NOTES = ("p/.env", "home/note", "state/whit/note", "tools/note")
for name in NOTES:
    open(name, "w").write(f"inside {name}\n")
open("config/whit/agent.json", "w").write(json.dumps({"read": [os.getcwd()]}))
closed = command("cat " + " ".join(os.path.abspath(name) for name in (*NOTES, "config/whit/agent.json")))
done, got = agent([closed, END])
endpoint = Endpoint([closed, END])  # the same for a task that works in a copy
done = subprocess.run([WHIT, "agent", "-j", "1", "Do it.", "--url", endpoint.url, "--project", "p", "--yes"], env=environment(),
                      capture_output=True, text=True, start_new_session=True, stdin=subprocess.DEVNULL, timeout=600)
got += [m["content"] for m in endpoint.requests[-1]["messages"] if m["role"] == "tool"]
for seen in got if "commands are not run" not in got[0] else []:
    wanted(len(got) == 2 and "inside tools/note" in seen and seen.count("inside ") == 1 and '"read"' not in seen, f"what a folder contains: {seen}")
os.unlink("config/whit/agent.json")

# The project's settings are a file of the project: a link that leaves it is not followed, and nothing of its target is told.
for target, is_read in (("../outside.json", False), (".env", False), ("settings.json", True)):
    project()
    os.makedirs("p/.whit", exist_ok=True)
    for name in ("outside.json", "p/.env"):
        open(name, "w").write('[hunter2\n')
    open("p/settings.json", "w").write(json.dumps({"check": ["true"]}))
    if os.path.lexists("p/.whit/agent.json"):
        os.unlink("p/.whit/agent.json")
    os.symlink("../" + target, "p/.whit/agent.json")
    for more in (["-p", "x"], ["-j", "1", "a b"]):
        done = subprocess.run([WHIT, "agent", *more, "--url", Endpoint([END]).url, "--project", "p"], env=environment(), capture_output=True,
                              text=True, start_new_session=True, stdin=subprocess.DEVNULL, timeout=600)
        wanted((done.returncode == 0) == is_read and "hunter" not in done.stderr and ("must be a file of the project" in done.stderr) != is_read,
               f"settings by a link to {target}: {done}")

# A file in a folder that is a link has one name, its real one: an existing test stays a test, two changes of one answer
# are of one file, and another agent's file is refused.
project()
os.makedirs("p/tests")
os.symlink("tests", "p/lib")
open("p/tests/suite.py", "w").write("def test_a():\n    assert f() == 1\n")
done, got = agent([message(None, [("write", {"path": "lib/suite.py", "content": "def test_a():\n    pass\n"})]), END])
wanted("tests/suite.py: it changes a test" in got[0] and "f() == 1" in open("p/tests/suite.py").read(), f"a test by another name: {got}")
done, got = agent([message(None, [("write", {"path": "lib/n.txt", "content": "1\n"}), change("1", "2", "tests/n.txt"),
                                  ("read", {"path": "lib/n.txt"})]), END])
wanted(open("p/tests/n.txt").read() == "2\n" and got[2] == "2\n" and "+++ b/tests/n.txt" in done.stdout, f"one file of two names: {got} {done.stdout}")
done, got = agent([message(None, [("agent", {"task": "one"}), ("agent", {"task": "two"})]), message(None, [change("2", "3", "tests/n.txt")]), END,
                   message(None, [change("3", "4", "lib/n.txt")]), END, END])
wanted(open("p/tests/n.txt").read() == "3\n" and "agent 2 wrote 0 turns" in got[1], f"another agent's file by another name: {got}")

# Configuration: one line says what is wrong with it; a project's file can widen nothing.
for text, words in (('{"check": 3}', "'check' must be"), ("{", "line 1"), ('{"read": ["/"]}', "not a setting of a project"),
                    ('{"mcp": {}}', "not a setting of a project"), ("[]", "not a JSON object")):
    project(text)
    done, got = agent([END], status=3)
    lines = [x for x in done.stderr.splitlines() if x.startswith("whit agent:")]
    wanted(len(lines) == 1 and words in lines[0], f"{text}: {done.stderr}")
sys.exit(checks.failed)
