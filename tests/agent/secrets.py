# SPDX-License-Identifier: MIT
"""Keys in rules, patched files, large files and what checks print; malformed calls; files that are pipes."""
import json
import os
import shutil
import subprocess
import sys

import checks
from checks import environment, wanted
from endpoint import Endpoint, message

WHIT = sys.argv[1]
TOKEN = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"

def project(files):
    for folder in ("p", "state", "cache", "config"):
        shutil.rmtree(folder, ignore_errors=True)
    for name, text in files.items():
        os.makedirs(os.path.dirname(f"p/{name}"), exist_ok=True)
        open(f"p/{name}", "w").write(text)


def run(answers, *more, env=None):
    endpoint = Endpoint(answers)
    done = subprocess.run([WHIT, "agent", "-p", "x", "--url", endpoint.url, "--model", "m", "--project", "p", *more],
                          env=env or environment(), capture_output=True, start_new_session=True, stdin=subprocess.DEVNULL, timeout=120,
                          text=True)
    endpoint.server.shutdown()
    results = [m["content"] for m in endpoint.requests[-1]["messages"] if m["role"] == "tool"]
    return done, results, json.dumps(endpoint.requests)


def call(*calls):
    return message(None, calls)


# A token in AGENTS.md.
project({"AGENTS.md": f"Push with {TOKEN}.\n"})
done, results, asked = run([message("done")])
wanted(TOKEN not in asked and "Push with [a key or token" in asked, "a token of AGENTS.md is sent")

# A text that another program has gone on with in UTF-16, where a key has another form; rules in UTF-16.
wide = f"token {TOKEN}\n".encode("utf-16le")
project({"log.txt": "a line\n" * 1000})
open("p/log.txt", "ab").write(wide)
open("p/AGENTS.md", "wb").write(wide)
done, results, asked = run([call(("read", {"path": "log.txt", "first": 1000}), ("grep", {"pattern": "t.o.k"})), message("done")])
wanted(TOKEN[5] + "\\u0000" + TOKEN[6] not in asked and "contains a key" in results[0], f"a token in UTF-16 is sent: {results}")
wanted("AGENTS.md is not text" in asked, f"rules in UTF-16: {asked[:3000]}")

# A token that ends a text in UTF-16, or is quoted there, is not copied for commands.
project({"last.txt": "", "quoted.txt": "", "other.txt": ""})
for coding in ("utf-16le", "utf-16be", "utf-16"):
    open("p/last.txt", "wb").write(f"key={TOKEN}".encode(coding))
    open("p/quoted.txt", "wb").write(f"key=\u201c{TOKEN}\u201d".encode(coding))
    done, results, asked = run([call(("run", {"command": "ls"})), message("done")])
    wanted("other.txt" in results[0] and "last.txt" not in results[0] and "quoted" not in results[0], f"a token at the end of {coding} is copied: {results}")

# What a check of the syntax says does not quote a file with passwords, before or after a person is asked.
project({"secrets.json": '[\n"hunter2",\n"x"\n]\n', "words.json": '[\n"hunter3",\n"x"\n]\n'})
done, results, asked = run([call(("patch_file", {"patch": f"{name}\n<<<<<<< SEARCH\n[\n=======\n[\"a\"\n>>>>>>> REPLACE\n"}))
                            for name in ("secrets.json", "words.json")] + [message("done")], "--yes")
wanted("hunter2" not in asked and "line 2: is not JSON" in results[0], f"a check quotes a password: {results}")
wanted("hunter3" in results[1], f"a check does not say what is wrong: {results}")

# A file that a model may patch and not read: the patched text is not put into the copy for commands, either.
project({"k.py": f"T = '{TOKEN}'\nx = 1\n"})
done, results, asked = run([call(("patch_file", {"patch": "k.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n"}),
                                 ("run", {"command": "rev k.py"})),
                            message("done")], "--yes")
wanted("x = 2" in open("p/k.py").read(), f"the patch: {results}")
wanted(TOKEN[::-1] not in asked, "a patched file with a token is in the copy")

# A private key whose first line the same answer removes: neither the rest of the file is read, nor does a later patch that
# does not match quote it; and that the key goes out of the file is asked about, or the next answer would read it.
BODY = "MIIEowIBAAKCAQEA7bq8zH1gk3J5sVn2cPq9wXyZaBcDeFgHiJkLmNoPqRsTuV"
HEAD = "-----BEGIN RSA " + "PRIVATE KEY-----"
BLOCK = "deploy.txt\n<<<<<<< SEARCH\n{}\n=======\nx\n>>>>>>> REPLACE\n"
for more in ([], ["--yes"]):
    project({"deploy.txt": f"notes\n{HEAD}\n" + 5 * (BODY + "\n") + HEAD.replace("BEGIN", "END") + "\n"})
    done, results, asked = run([call(("patch_file", {"patch": BLOCK.format(HEAD)}), ("read", {"path": "deploy.txt"}),
                                     ("patch_file", {"patch": BLOCK.format("x\nzzz")}), ("run", {"command": "rev deploy.txt"})),
                                call(("read", {"path": "deploy.txt"}), ("run", {"command": "rev deploy.txt"})), message("done")], *more)
    wanted(BODY not in asked and BODY[:20] not in asked and BODY[::-1] not in asked, f"a key without its first line is sent: {results}")
    wanted("takes a key" in results[0] and HEAD in open("p/deploy.txt").read(), f"a key is taken out of a file: {results}")

# A private key whose lines are strings of a program, or indented: it is not read, and the rules have no line of it.
for before, after in (('"', '\\n"'), ("    ", "")):
    text = "".join(before + line + after + "\n" for line in [HEAD] + 5 * [BODY] + [HEAD.replace("BEGIN", "END")])
    project({"k.h": f"static const char key[] =\n{text};\n", "AGENTS.md": f"Use it:\n{text}\nwith care.\n"})
    done, results, asked = run([call(("read", {"path": "k.h"}), ("grep", {"pattern": "MII"}), ("run", {"command": "rev k.h"})), message("done")])
    wanted(BODY not in asked and BODY[::-1] not in asked and "with care" in asked and "contains a key" in results[0], f"a key in {before!r}: {results}")

# Results are cut after keys are hidden: the rest of a key has no form by which it is found.
hexed = "".join(f"{ord(c):02x}" for c in "q" * 3000 + "\n" + HEAD + "\n" + 30 * (BODY + "\n") + HEAD.replace("BEGIN", "END") + "\n" + 400 * ("f" * 40 + "\n"))
token = "".join(f"{ord(c):02x}" for c in "q" * 3040 + " " + TOKEN + "\n" + 400 * ("f" * 40 + "\n"))
show = "python3 -c \"print(bytes.fromhex(open('{}').read()).decode())\""
long = "".join(chr(ord("a") + i % 26) for i in range(55))
project({"k.hex": hexed, "t.hex": token, "a.py": f"def push_it(n_{long}=1, token='{TOKEN}'):\n    return token\npush_it()\n"})
done, results, asked = run([call(*(("run", {"command": show.format(name)}) for name in ("k.hex", "t.hex")), ("graph", {"query": "map"})), message("done")])
wanted(BODY[20:] not in asked and TOKEN[:20] not in asked and "push_it" in results[2], f"a key is cut before it is hidden: {results}")
wanted("commands are not run" in results[0] or "bytes left out" in results[0], f"an output is not cut: {results[0][:200]}")

# The endpoint's own key has no published form: a file of the project that --key-file names, and a copy of it.
KEY = "0f1e2d3c4b5a69788796a5b4"
for given in ("file", "variable"):
    project({"key": KEY + "\n", "copy.txt": f"my key is {KEY}.\n", "AGENTS.md": f"Call it with {KEY}\n"})
    os.chmod("p/key", 0o600)
    os.environ.pop("WHIT_API_KEY", None)
    if given == "variable":
        os.environ["WHIT_API_KEY"] = KEY
    done, results, asked = run([call(("read", {"path": "key"}), ("grep", {"pattern": "."}), ("run", {"command": "cat key copy.txt; ls"})),
                                message("done")], *(["--key-file", "p/key"] if given == "file" else []))
    wanted(KEY not in asked and KEY[::-1] not in asked and "contains a key" in results[0], f"the endpoint's key ({given}): {results}")
os.environ.pop("WHIT_API_KEY", None)
# A copy for commands that was made before this program knew the key.
project({"note.txt": f"my key is {KEY}\n", "other.txt": "other\n"})
os.utime("p/other.txt", (1, 1))
for given in ("", KEY):
    done, results, asked = run([call(("run", {"command": "rev note.txt; ls -l --time-style=+%s other.txt"})), message("done")],
                               env=dict(environment(), **({"WHIT_API_KEY": given} if given else {})))
    if "commands are not run" not in results[0]:
        wanted((KEY[::-1] in asked) == (not given) and " 1 other.txt" in results[0], f"a copy from before the key: {results}")
project({"key": "ollama\n", "other.txt": "ollama\n"})
os.chmod("p/key", 0o600)
done, results, asked = run([call(("read", {"path": "other.txt"})), message("done")], "--key-file", "p/key")
wanted(results[0] == "ollama\n", f"a word in the place of a key: {results}")

# A token after the first MiB, also across the pieces that are searched.
for n in (1 << 20, (1 << 20) + (1 << 15) - 10, 3 << 20):
    project({"big.txt": "x" * n + "\n" + TOKEN + "\n", "other.txt": "x" * n + "\n"})
    done, results, asked = run([call(("run", {"command": "ls; tail -c 41 big.txt | rev"})), message("done")])
    if "commands are not run" not in results[0]:
        wanted("other.txt" in results[0], f"a large file without a token is not copied: {results}")
    wanted(TOKEN[::-1] not in asked, f"a large file with a token after {n} bytes is in the copy")

# A token in UTF-16, as editors of Windows write it.
project({"other.txt": "x\n"})
for name in ("utf-16", "utf-16-be"):
    open("p/k-" + name, "wb").write(f"key = {TOKEN}\n".encode(name))
open("p/strings.bin", "wb").write(b"\0".join(TOKEN[i:i + 3].encode() for i in range(0, 40, 3)))
done, results, asked = run([call(("run", {"command": "ls"})), message("done")])
wanted("commands are not run" in results[0] or ("other.txt\nstrings.bin" in results[0] and "k-" not in results[0]), f"a token in UTF-16: {results}")

# The code graph of files that are not read.
project({".ssh/h.py": "def hidden_function(hunter2=1):\n    pass\n", "a.py": "def open_function():\n    hidden_function()\n"})
done, results, asked = run([call(("graph", {"query": "map"}), ("graph", {"query": "def", "name": "hidden_function"}),
                                 ("graph", {"query": "like", "name": "hidden function"})), message("done")])
wanted("hunter2" not in asked and ".ssh" not in "".join(results) and "open_function" in results[0], f"the graph: {results}")
# Links are not files of the graph, whether they lead outside of the project, to secrets or to another file of it.
project({"a.py": "def open_function(n=1):\n    pass\n", ".ssh/h.py": "def secret_function(hunter2=1):\n    pass\n"})
os.makedirs("outside", exist_ok=True)
open("outside/o.py", "w").write("def outer_function(hunter2=1):\n    open_function()\n")
for name, target in (("o.py", os.path.abspath("outside/o.py")), ("s.py", ".ssh/h.py"), ("b.py", "a.py")):
    os.symlink(target, f"p/{name}")
queries = [{"query": "map"}, *({"query": "def", "name": f"{n}_function"} for n in ("outer", "secret", "open")),
           {"query": "refs", "name": "open_function"}, {"query": "imports", "name": "o.py"}, {"query": "like", "name": "outer function"}]
done, results, asked = run([call(*(("graph", q) for q in queries)), message("done")])
wanted("hunter2" not in asked and "o.py" not in "".join(results) and "s.py" not in "".join(results), f"links out of the project: {results}")
wanted("b.py" not in "".join(results) and "a.py:1" in results[3], f"a link inside the project: {results}")

# What a check prints, and in the conversation that is kept.
project({".whit/agent.json": json.dumps({"check": ["printf %s%s ghp_ " + TOKEN[4:] + "; exit 1"]})})
done, results, asked = run([call(("write", {"path": "a.txt", "content": "a\n"})), message("done")], "--yes")
wanted(TOKEN not in asked and "nothing is written" in results[0], f"a check's token is sent: {results}")

# A malformed call does not spoil the conversation that is kept.
project({"a.txt": "a\n"})
bad = {"role": "assistant", "content": ["x"], "tool_calls": [{"id": 5, "function": {"name": 7, "arguments": {"a": 1}}}, 3]}
done, results, asked = run([(200, json.dumps({"choices": [{"message": bad}]}).encode(), {}), message("done")])
wanted(done.returncode == 0, f"a malformed call: {done.stderr}")
done, results, asked = run([message("done")], "--resume")
wanted(done.returncode == 0 and "resumed" in done.stderr, f"resumed after a malformed call: {done.stderr}")

# Keys that an earlier version kept in a conversation are hidden when it is loaded.
project({"a.txt": "a\n"})
kept = [{"role": "system", "content": ""}, {"role": "user", "content": f"see {TOKEN}"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": {
            "name": "grep", "arguments": json.dumps({"pattern": TOKEN})}}]},
        {"role": "tool", "tool_call_id": "1", "content": f"k.txt:1:{TOKEN}\n"}]
with open("kept.json", "w") as file:
    json.dump({"whit_session": 1, "messages": kept}, file)
done, results, asked = run([message("done")], "--session", "kept.json")
wanted(done.returncode == 0 and results == ["k.txt:1:[a key or token, which is not shown]\n"] and TOKEN not in asked,
       f"a key of a kept conversation: {results} {done.stderr}")
wanted(TOKEN not in open("kept.json").read(), "a key of a kept conversation is kept again")

# A pipe where git reads a file: the turn is written, and what git misses is told.
project({"a.txt": "a\n"})
if shutil.which("git") and subprocess.run(["git", "init", "-q", "p"], check=False).returncode == 0:
    os.mkfifo("p/.gitignore")
    done, results, asked = run([call(("write", {"path": "b.txt", "content": "b\n"})), message("done")], "--yes")
    wanted(done.returncode == 0 and open("p/b.txt").read() == "b\n", f"a pipe as .gitignore: {done.stderr}")

sys.exit(checks.failed)
