# SPDX-License-Identifier: MIT
"""whit agent -j: twelve tasks against an endpoint that answers by what it reads. The tree is the one that the same tasks
leave one after the other; requests overlap, which is counted; conflicts and checks that fail on the merged tree are told
and done again once."""
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading

from endpoint import message

WHIT = sys.argv[1]
N_TASKS, N_JOBS = 12, 4
SOURCE = "int twice(int n)\n{\n    return n + n;\n}\n"
failed = 0


def wanted(condition, *text):
    global failed
    if not condition:
        failed = 1
        print("FAILED:", *text)


def read(path):
    return message(None, [("read", {"path": path})])


def write(path, text):
    return message(None, [("write", {"path": path, "content": text})])


def patch(path, old, new):
    return message(None, [("patch_file", {"patch": f"{path}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n"})])


END = message("done")


def answer(number, n_answers, result):
    """The model's answer to task `number` after n_answers others; `result` is that of the last call."""
    if number == 1:
        return write("left", "one line\n") if n_answers == 0 else END
    if number == 2:  # each of both passes the check alone
        if n_answers == 0:
            return write("right", "one line\n")
        return write("instead", "text\n") if "check" in result else END
    if number in (3, 4):  # the same line, read first
        if n_answers == 0:
            return read("a.c")
        if n_answers == 1:
            old = re.search(r"return [^;]*;", result).group(0)
            return patch("a.c", f"    {old}\n", f"    {old[:-1]} + {number};\n")
        return END
    if number < N_TASKS:
        return write(f"files/{number}.txt", f"text {number}\n") if n_answers == 0 else END
    return END if n_answers else read("a.c")


class Endpoint:
    def __init__(self, meet):
        self.n_requests = self.n_in_flight = self.n_most = 0
        self.again, self.lock = set(), threading.Lock()
        self.meeting = threading.Barrier(N_JOBS) if meet else None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer.lock:
                    outer.n_requests += 1
                    outer.n_in_flight += 1
                    outer.n_most = max(outer.n_most, outer.n_in_flight)
                    meets = outer.n_requests <= N_JOBS
                if meets and outer.meeting:  # answered once four tasks wait for an answer
                    try:
                        outer.meeting.wait(60)
                    except threading.BrokenBarrierError:
                        pass
                status, body, _ = outer.reply(request["messages"])
                with outer.lock:
                    outer.n_in_flight -= 1
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def reply(self, messages):
        task = next((m["content"] for m in messages if m["role"] == "user" and "TASK" in m["content"]), None)
        if task is None:
            return 401, b"bad key", {}
        number = int(re.search(r"TASK (\d+)", task).group(1))
        if "done once before" in task:
            self.again.add(number)
        answers = [m for m in messages if m["role"] == "assistant"]
        results = [m["content"] for m in messages if m["role"] == "tool"]
        return answer(number, len(answers), results[-1] if results else "")


def environment(name):
    env = dict(os.environ, no_proxy="*", HOME=os.path.abspath(name + "/home"))
    for one in ("STATE", "CACHE", "CONFIG"):
        env[f"XDG_{one}_HOME"] = os.path.abspath(f"{name}/{one.lower()}")
    return env


def project(name):
    shutil.rmtree(name, ignore_errors=True)
    os.makedirs(name + "/p")
    os.makedirs(name + "/home")
    open(name + "/p/a.c", "w").write(SOURCE)
    os.makedirs(name + "/p/.whit")
    json.dump({"check": ["test $(cat left right 2>/dev/null | wc -l) -lt 2"]}, open(name + "/p/.whit/agent.json", "w"))


def tree(name):
    found = {}
    for folder, _, names in os.walk(name + "/p"):
        for one in names:
            path = os.path.join(folder, one)
            found[os.path.relpath(path, name + "/p")] = open(path).read()
    return found


def agent(name, endpoint, *arguments):
    return subprocess.run([WHIT, "agent", "--project", name + "/p", "--url", endpoint.url, "--yes", *arguments],
                          env=environment(name), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


texts = [f"TASK {i}: do it" for i in range(1, N_TASKS + 1)]


def processes(*words):
    """Arguments and environments of the processes of this test whose arguments contain all words."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            arguments = open(f"/proc/{pid}/cmdline", "rb").read()
            variables = open(f"/proc/{pid}/environ", "rb").read()
            if all(word.encode() in arguments for word in words) and os.getcwd().encode() + b"/" in variables:
                found.append((arguments, variables))
        except OSError:
            pass
    return found


# One after the other.
project("serial")
serial = Endpoint(False)
for text in texts:
    ended = agent("serial", serial, "-p", text)
    wanted(ended.returncode == 0, text, ended.stderr)

# Four at once, from a file.
project("parallel")
open("tasks.txt", "w").write("# twelve tasks\n\n" + "\n".join(texts) + "\n")
parallel = Endpoint(True)
seen, reply = [], parallel.reply
parallel.reply = lambda messages: (seen.append(processes("--allow", "parallel")), reply(messages))[1]
ended = agent("parallel", parallel, "-j", str(N_JOBS), "tasks.txt")
wanted(ended.returncode == 0, "-j 4", ended.returncode, ended.stderr)
# Other users can read the arguments of a process: no task is among them.
wanted(any(seen) and not any(b"TASK" in one for few in seen for one, _ in few), seen[:1])
wanted(tree("parallel") == tree("serial"), tree("parallel"), "is not", tree("serial"))
wanted(tree("serial")["a.c"] == SOURCE.replace("n + n", "n + n + 3 + 4"), tree("serial")["a.c"])
wanted({"left", "instead"} <= set(tree("serial")) and "right" not in tree("serial"), tree("serial"))
wanted(parallel.n_most >= N_JOBS, "at most", parallel.n_most, "requests at once")
wanted(serial.n_most == 1, serial.n_most)
# The first four begin together, so that the second of each pair must be done again.
wanted(parallel.again == {2, 4}, "done again:", parallel.again)
wanted("task 4: another task has changed a.c; the task is tried again" in ended.stderr, ended.stderr)
wanted("task 2: with the other tasks' changes the checks fail" in ended.stderr, ended.stderr)
wanted(ended.stderr.count("is done") >= N_TASKS, ended.stderr)
wanted("+text 7" in ended.stdout, "changes are not shown")
log = subprocess.run([WHIT, "agent", "log", "--project", "parallel/p"], env=environment("parallel"), capture_output=True,
                     text=True, check=False).stdout
wanted([i for i in range(1, 12) if f"TASK {i}:" in log] == list(range(1, 12)) and "TASK 12" not in log, log)
wanted(log.index("TASK 2:") < log.index("TASK 10:"), "not in their order")

# A task that fails does not hold the others; arguments are tasks.
project("third")
ended = agent("third", Endpoint(False), "-j", "2", "TASK 5: a", "no number", "TASK 6: b")
wanted(ended.returncode == 1 and "task 2 failed" in ended.stderr and "1 of 3 tasks are not done" in ended.stderr, ended)
wanted(set(tree("third")) == {"a.c", ".whit/agent.json", "files/6.txt", "files/5.txt"}, tree("third"))
ended = agent("third", Endpoint(False), "-j", "2")
wanted(ended.returncode == 2 and "no tasks given" in ended.stderr, ended)
ended = agent("third", Endpoint(False), "-j", "2", "absent.txt")
wanted(ended.returncode == 2 and "absent.txt: cannot be read" in ended.stderr and "-p absent.txt" in ended.stderr, ended)
ended = agent("third", Endpoint(False), "-j", "2", "--resume", "a b")
wanted(ended.returncode == 2, ended)

# Settings that are ignored by version control hold in a task's copy, and without the sandbox no check runs a task's code
# before a person has agreed: here nobody is there.
for more in ([], ["--no-sandbox"]):
    project("ignored")
    open("ignored/p/.gitignore", "w").write(".whit/\n")
    open("ignored/p/t.sh", "w").write("exit 0\n")
    json.dump({"check": ["sh t.sh"]}, open("ignored/p/.whit/agent.json", "w"))
    witness = os.path.abspath("ignored/witness")
    endpoint = Endpoint(False)
    endpoint.reply = lambda messages: (write("t.sh", f"touch {witness}\nexit 1\n")
                                       if messages[-1]["role"] == "user" and "TASK" in messages[-1]["content"] else END)
    ended = agent("ignored", endpoint, "-j", "2", *more, "TASK 1: x")
    wanted(not os.path.exists(witness), "a task's code ran outside the sandbox, unseen")
    wanted(tree("ignored")["t.sh"] == "exit 0\n" and "tried again" not in ended.stderr, ended)

# What a task writes to a file that version control ignores is written, too; one that the project has is not replaced.
project("unruled")
open("unruled/p/.gitignore", "w").write("*.log\n")
open("unruled/p/mine.log", "w").write("mine\n")
for name, there in (("out.log", "text\n"), ("mine.log", "mine\n")):
    endpoint = Endpoint(False)
    endpoint.reply = lambda messages: (write(name, "text\n") if messages[-1]["role"] == "user" else END)
    ended = agent("unruled", endpoint, "-j", "1", "TASK 1: x")
    wanted(tree("unruled").get(name) == there and (ended.returncode == 0) == (name == "out.log"), name, ended)

# What a task writes deeper than a walk goes is not lost unseen.
project("deep")
endpoint = Endpoint(False)
endpoint.reply = lambda messages: write("d/" * 34 + "f", "text\n") if messages[-1]["role"] == "user" else END
ended = agent("deep", endpoint, "-j", "1", "TASK 1: x")
wanted(ended.returncode == 1 and "folders more than 32 levels deep" in ended.stderr and set(tree("deep")) == {"a.c", ".whit/agent.json"}, ended)

# A home folder in the project is no place to start an MCP server, in a task's copy of that project, too.
project("inside")
witness = os.path.abspath("inside/witness")
os.makedirs("inside/p/home")
os.makedirs("inside/config/whit")
told = f"import os; open({witness!r}, 'a').write(os.getcwd() + chr(10))"
json.dump({"mcp": {"s": {"command": [sys.executable, "-c", told]}}}, open("inside/config/whit/agent.json", "w"))
for more in (["-j", "1", "TASK 5: x"], ["-p", "TASK 6: x"]):
    ended = subprocess.run([WHIT, "agent", "--project", "inside/p", "--url", Endpoint(False).url, "--yes", *more],
                           env=dict(environment("inside"), HOME=os.path.abspath("inside/p/home")), stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, check=False)
    wanted(ended.returncode == 0, ended)
began = open(witness).read().split()
wanted(len(began) == 2 and not any(one.startswith(os.path.abspath("inside/p")) for one in began), began)

# What the sandbox cannot enforce is told once, on the terminal too.
nameless = ["unshare", "-U", "-r", "sh", "-c", 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"', "sh"]
try:
    can_hide = subprocess.run([*nameless, "true"], capture_output=True, check=False).returncode == 0
except FileNotFoundError:
    can_hide = False
if can_hide:
    project("nameless")
    ended = subprocess.run([*nameless, WHIT, "agent", "--project", "nameless/p", "--url", Endpoint(False).url, "--yes", "-j", "2",
                            "TASK 1: x"], env=environment("nameless"), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           check=False)
    wanted(ended.returncode == 0 and ended.stderr.count("this user gets no name spaces") == 1, ended)

# -m: one server for all tasks, which ends with them. A model of random weights says something and changes nothing.
project("local")
if subprocess.run([os.environ["TINY"], "chat.gguf", "1", "chat"], check=False).returncode == 0:
    # An MCP server of a task does not get that socket: a program that it starts would send requests of its own there.
    told = f"import os; open({os.path.abspath('local/variables')!r}, 'a').write(chr(10).join(os.environ) + chr(10))"
    os.makedirs("local/config/whit")
    json.dump({"mcp": {"s": {"command": [sys.executable, "-c", told]}}}, open("local/config/whit/agent.json", "w"))
    # The server has a socket that no other user can reach, no option of the environment, and nobody gets a key.
    open("key", "w").write("key-of-an-endpoint-1\n")
    os.chmod("key", 0o600)
    env = dict(environment("local"), WHIT_API_KEY="key-of-an-endpoint-2", WHIT_HOST="0.0.0.0", WHIT_LOG=os.path.abspath("texts"),
               WHIT_LOG_TEXTS="1")
    seen, has_ended = [], threading.Event()

    def watch():
        while not has_ended.wait(0.02):
            seen.extend(processes("chat.gguf", "serve") + processes("--allow", "-p"))

    watching = threading.Thread(target=watch)
    watching.start()
    ended = subprocess.run([WHIT, "agent", "-j", "2", "-m", "chat.gguf", "-c", "8192", "--project", "local/p", "--max-turns", "2",
                            "--key-file", "key", "say this", "say that"], env=env, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, check=False)
    has_ended.set()
    watching.join()
    variables = open("local/variables").read().split()
    wanted("WHIT_TASK_PROJECT" in variables and "WHIT_TASK_SOCKET" not in variables and "WHIT_API_KEY" not in variables, variables)
    serving = [one for one in seen if b"\0serve\0" in one[0]]
    # before its exec() a process has the environment of its parent
    wanted(serving and b"key-of" not in serving[-1][1] and b"WHIT_HOST" not in serving[-1][1], serving[-1:])
    wanted(all(b"--socket\0/tmp/" in one and b"--port" not in one for one, _ in serving), serving[:1])
    tasks = [one for one in seen if b"\0serve\0" not in one[0]]
    wanted(tasks and not any(b"say th" in one or b"key" in one for one, _ in tasks), tasks[:1])
    wanted(b"key-of" not in tasks[-1][1], tasks[-1:])
    wanted(not os.path.exists("texts"), "the server of the tasks has written a log of texts")
    folder = re.search(rb"/tmp/whit-[^/]*", serving[-1][0]).group(0)
    wanted(not os.path.exists(folder), folder, "is left")
    wanted("task 1" in ended.stderr and "task 2" in ended.stderr and "did not start" not in ended.stderr, ended)
    wanted(set(tree("local")) == {"a.c", ".whit/agent.json"}, tree("local"))
print(f"{parallel.n_requests} requests, at most {parallel.n_most} at once; one after the other {serial.n_requests}")
sys.exit(failed)
