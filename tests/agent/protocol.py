# SPDX-License-Identifier: MIT
"""Tools of MCP servers, whit mcp, and an editor that hosts the agent (ACP)."""
import json
import os
import shutil
import subprocess
import sys
import time

import acp
import checks
from checks import wanted
from endpoint import Endpoint, at_terminal, message, streamed

WHIT = sys.argv[1]
SERVER = r'''
import json, os, sys
way = sys.argv[1]
open("group-" + way, "w").write(str(os.getpgid(0) == os.getpid()))
json.dump(dict(os.environ), open("variables-" + way, "w"))
def say(o): print(json.dumps(o), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if way == "mute": sys.exit(0)
    if way == "noise":
        print("{broken", flush=True); print("[1]", flush=True); print("", flush=True)
        say({"jsonrpc": "2.0", "id": 999, "result": {}}); say({"jsonrpc": "2.0", "method": "log", "params": {}})
        say({"jsonrpc": "2.0", "id": "p", "method": "ping"}); way = "good"
    if way == "late" and m["method"] == "notifications/cancelled" and m["params"]["requestId"] == asked: open("told", "w")
    if "id" not in m or m["id"] == "p": continue
    if len(sys.argv) > 2 and m["method"] == "tools/call": open(sys.argv[2], "w")
    if way == "late" and m["method"] == "tools/call":
        asked = m["id"]
        continue
    if m["method"] == "initialize": r = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    elif m["method"] == "tools/list":
        good = {"name": "add", "description": "Adds.", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}
        bad = [{"name": "a b", "inputSchema": {"type": "object"}}, {"name": "none"}, 3, {"name": "x" * 99, "inputSchema": {"type": "object"}}]
        many = [{"name": f"t{i}", "inputSchema": {"type": "object"}} for i in range(150)]
        if way == "many": r = {"tools": many}
        else: r = {"tools": [good, *bad], "nextCursor": "2"} if not m["params"] else {"tools": [{"name": "die", "inputSchema": {"type": "object"}}]}
    elif m["params"]["name"] == "die": sys.exit(1)
    elif way == "zero": r = {"content": [{"type": "text", "text": "a\0b"}]}
    else: r = {"content": [{"type": "text", "text": "sum %d" % (m["params"]["arguments"]["a"] + 1)}, {"type": "image", "data": ""}]}
    say({"jsonrpc": "2.0", "id": m["id"], "result": r})
    if way == "loud" and "nextCursor" not in r:  # more than a pipe holds, before it reads again
        for i in range(100): say({"jsonrpc": "2.0", "method": "log", "params": {"text": "x" * 10000}})
'''


def environment():
    env = dict(os.environ, no_proxy="*", HOME=os.path.abspath("home"), WHIT_API_KEY="sk-secret")
    for name in ("STATE", "CACHE", "CONFIG"):
        env[f"XDG_{name}_HOME"] = os.path.abspath(name.lower())
    return env


def project(servers=None):
    for folder in ("p", "state", "cache", "config", "home"):
        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs("p")
    os.makedirs("home")
    os.makedirs("config/whit")
    open("p/a.c", "w").write("int helper(void) { return 1; }\nint main(void)\n{\n    return helper();\n}\n")
    if servers:
        json.dump({"mcp": servers}, open("config/whit/agent.json", "w"))


def agent(answers, status=0):
    endpoint = Endpoint(answers)
    done = subprocess.run([WHIT, "agent", "-p", "Do it.", "--url", endpoint.url, "--project", "p", "--allow", "yellow"],
                          env=environment(), capture_output=True, text=True, start_new_session=True,
                          stdin=subprocess.DEVNULL, timeout=120)
    endpoint.server.shutdown()
    wanted(done.returncode == status, f"status {done.returncode}: {done.stderr}")
    return done, [m["content"] for m in endpoint.requests[-1]["messages"] if m["role"] == "tool"], endpoint


END = message("done")
open("server.py", "w").write(SERVER)


def server(way, **more):
    return {"command": [sys.executable, os.path.abspath("server.py"), way], **more}


# ---- tools of servers: red unless the person's configuration says otherwise
project({"s": server("good"), "free": server("noise", allow="green"), "mute": server("mute"), "none": {"command": ["/no/such"]}})
done, got, e = agent([message(None, [("mcp__s__add", {"a": 1}), ("mcp__free__add", {"a": 2}), ("mcp__free__add", "[3]"),
                                     ("mcp__none__add", {}), ("mcp__s__a b", {})]), message(None, [("mcp__free__die", {})]),
                      message(None, [("mcp__free__add", {"a": 1})]), END])
names = [t["function"]["name"] for t in e.requests[0]["tools"] if t["function"]["name"].startswith("mcp__")]
wanted(sorted(names) == ["mcp__free__add", "mcp__free__die", "mcp__s__add", "mcp__s__die"], f"tools: {names}")
wanted("refused, since nobody is there" in got[0] and got[1] == "sum 3\n[image content, which is not text]", f"calls: {got}")
wanted("not a JSON object" in got[2] and "no tool" in got[3] and "no tool" in got[4], f"wrong calls: {got}")
wanted("does not answer" in got[5] and "does not answer" in got[6], f"a server that dies: {got}")
wanted("'mute' does not answer" in done.stderr and "'none' does not answer" in done.stderr, f"servers: {done.stderr}")
e = Endpoint([message(None, [("mcp__s__add", {"a": 41})]), END])
status, seen = at_terminal([WHIT, "agent", "-p", "x", "--url", e.url, "--project", "p"], [("[y/N", "y\n")], environment())
wanted(open("home/group-good").read() == "True", "a server is in the group that Ctrl-C ends")
wanted("sum 42" in e.requests[-1]["messages"][-1]["content"] and '{"a":41}' in seen, f"a yes: {seen}")

# ---- variables of a server: those of the configuration beside this process's own, without the endpoint's key
project({"s": server("good", allow="green", env={"TICKETS_URL": "x=1", "HOME": "/elsewhere"})})
agent([message(None, [("mcp__s__add", {"a": 1})]), END])
seen = json.load(open("home/variables-good"))
wanted(seen["TICKETS_URL"] == "x=1" and seen["HOME"] == "/elsewhere" and "PATH" in seen, f"variables: {seen}")
wanted("WHIT_API_KEY" not in seen, "a server sees the endpoint's key")
for env in ({"A=B": "x"}, {"": "x"}, {"A": 1}, ["A"]):
    project({"s": server("good", env=env)})
    done = subprocess.run([WHIT, "agent", "-p", "x", "--url", "http://127.0.0.1:9/v1", "--project", "p"], env=environment(),
                          capture_output=True, text=True, start_new_session=True, stdin=subprocess.DEVNULL)
    wanted(done.returncode == 3 and "'env' must be" in done.stderr, f"env {env}: {done.stderr}")

# ---- a server is started where the project has no code: `python3 -m NAME` looks for it in the current folder first
ROOTS = r'''
import json, os, sys
open(os.path.join(os.environ["TOLD"], "began"), "w").write(json.dumps([os.getcwd(), os.environ["PWD"]]))
def say(o): print(json.dumps({"jsonrpc": "2.0", **o}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if m.get("id") == "r": open(os.path.join(os.environ["TOLD"], "roots"), "w").write(json.dumps([asked, m]))
    elif m["method"] == "initialize": asked = m["params"]["capabilities"]; r = {"protocolVersion": "2025-06-18", "capabilities": {}}
    elif m["method"] == "notifications/initialized": say({"id": "r", "method": "roots/list"})
    else: r = {"tools": []}
    if "method" in m and "id" in m: say({"id": m["id"], "result": r})
'''
TOLD = os.path.abspath("told")


def begin(servers, folder, module, home="home", name="p"):
    """Runs a task in the project p, with a server `python3 -m tickets_x` of the configuration or of an editor. (cwd and PWD, roots)"""
    project(servers)
    shutil.rmtree("told", ignore_errors=True)
    os.makedirs("told")
    os.makedirs(home, exist_ok=True)
    if name != "p":
        os.rename("p", name)
    open(os.path.join(folder, "tickets_x.py"), "w").write(module)
    e = Endpoint([END])
    subprocess.run([WHIT, "agent", "-p", "x", "--url", e.url], env={**environment(), "HOME": os.path.abspath(home)}, cwd=name,
                   stdin=subprocess.DEVNULL, start_new_session=True, capture_output=True)
    e.server.shutdown()
    return [json.load(open(f"told/{f}")) if os.path.exists(f"told/{f}") else None for f in ("began", "roots")]


tickets = {"command": [sys.executable, "-m", "tickets_x"], "env": {"TOLD": TOLD}}
wanted(begin({"t": tickets}, "p", ROOTS)[0] is None, "a server runs the project's code")
shutil.rmtree("a b", ignore_errors=True)
began, roots = begin({"t": tickets}, "home", ROOTS, name="a b")
wanted(began == [os.path.abspath("home")] * 2, f"a server's folder: {began}")
root = {"uri": "file://" + os.path.abspath("a b").replace(" ", "%20"), "name": "a b"}
wanted(roots and roots[0] == {"roots": {}} and roots[1]["result"] == {"roots": [root]}, f"roots: {roots}")
shutil.rmtree("a b")
began, _ = begin({"t": {**tickets, "folder": "project"}}, "p", ROOTS)
wanted(began == [os.path.abspath("p")] * 2, f"a server of the project's folder: {began}")
# The project is the home, or contains it: there is a folder of its own.
open("roots.py", "w").write(ROOTS)
for home in ("p", "p/me"):
    wanted(begin({"t": tickets}, home, ROOTS, home=home)[0] is None, f"a server in a home that is the project's: {home}")
    began, _ = begin({"t": {**tickets, "command": [sys.executable, os.path.abspath("roots.py")]}}, "p", "", home=home)
    wanted(began and began[0].startswith(os.path.abspath("state/whit/servers-")) and os.listdir(began[0]) == [], f"its folder: {began}")
project({"t": {**server("good"), "folder": "/tmp"}})
done = subprocess.run([WHIT, "agent", "-p", "x", "--url", "http://127.0.0.1:9/v1", "--project", "p"], env=environment(),
                      capture_output=True, text=True, start_new_session=True, stdin=subprocess.DEVNULL)
wanted(done.returncode == 3 and "folder (home, project)" in done.stderr, f"another folder: {done.stderr}")
# So are those that an editor names, whatever folder it opens; the person's configuration may say otherwise.
for mine, place, found in (({}, "p", None), ({}, "home", "home"), ({"t": {"command": ["/no/such"], "folder": "project"}}, "p", "p")):
    project(mine)
    shutil.rmtree("told", ignore_errors=True)
    os.makedirs("told")
    open(os.path.join(place, "tickets_x.py"), "w").write(ROOTS)
    a = acp.Editor(WHIT, environment(), [END])
    session = a.result("session/new", cwd=os.path.abspath("p"), mcpServers=[
        {"name": "t", "command": sys.executable, "args": ["-m", "tickets_x"], "env": [{"name": "TOLD", "value": TOLD}]}])["sessionId"]
    a.task(session, "x")
    a.end()
    began = json.load(open("told/began")) if os.path.exists("told/began") else None
    wanted(began == (found and [os.path.abspath(found)] * 2), f"an editor's server, {mine}, {place}: {began}")

# ---- a server's program in the project runs outside the sandbox: a change of it, and of what is beside it, is asked about
for program, changed, is_asked in (("tools/s.py", "tools/s.py", True), ("tools/s.py", "tools/json.py", True), ("tools/s.py", "b.c", False),
                                   ("link.py", "tools/s.py", True), ("none/s.py", "none/s.py", True), ("s.db", "b.c", False),
                                   ("package", "package/a.js", True), (".", "b.c", False)):
    project()
    os.makedirs("p/tools")
    os.makedirs("p/package")
    open("p/package/package.json", "w").write("{}\n")
    os.symlink("tools/s.py", "p/link.py")
    json.dump({"mcp": {"s": {"command": [sys.executable, os.path.abspath("p/" + program)]}}}, open("config/whit/agent.json", "w"))
    done, got, e = agent([message(None, [("write", {"path": changed, "content": "x\n"})]), END])
    wanted(os.path.exists("p/" + changed) != is_asked and ("an MCP server" in got[0]) == is_asked, f"{program}, {changed}: {got} {done.stderr}")
    open("patch", "w").write(f"{changed}\n<<<<<<< SEARCH\n=======\ny\n>>>>>>> REPLACE\n")
    shutil.rmtree("p/none", ignore_errors=True)
    if os.path.exists("p/" + changed):
        os.unlink("p/" + changed)
    done = subprocess.run([WHIT, "agent", "apply", "patch", "--project", "p", "--yes"], env=environment(), capture_output=True, text=True,
                          start_new_session=True, stdin=subprocess.DEVNULL)
    wanted(os.path.exists("p/" + changed) != is_asked and ("an MCP server" in done.stderr) == is_asked, f"apply, {program}, {changed}: {done.stderr}")
P = os.path.abspath("p")
for words, env, changed, is_asked in (
        (["env", "python3", "-m", "s"], "project", "b.c", True), (["poetry", "run", "s"], "project", "b.c", True),
        (["uv", "--directory", P, "run", "s.py"], {}, "s.py", True), (["uv", "--project=" + P + "/tools", "run", "s"], {}, "tools/s.py", True),
        (["uv", "--project=" + P + "/tools", "run", "s"], {}, "b.c", False), (["make", "-C", P, "mcp"], {}, "b.c", True),
        (["bash", "-c", f"cd {P} && exec python3 s.py"], {}, "s.py", True), (["sh", "-c", "cd ~/q/tools; ./s"], {}, "tools/s.py", True),
        (["sh", "-c", "cd $HOME/q && ./s"], {}, "b.c", True), (["sh", "-c", "cd 'q/tools' && ./s"], {}, "tools/s", True),
        (["python3", "-c", f"import sys; sys.path.insert(0, '{P}/tools'); import s"], {}, "tools/s.py", True),
        (["node", f"--require={P}/tools/a.js", "s"], {}, "tools/b.js", True), (["python3", "-m", "s"], {"PYTHONPATH": f"/usr/share:{P}/tools"}, "tools/s.py", True),
        (["python3", "-m", "s"], {"PYTHONPATH": f"{P}/new"}, "new/s.py", True), (["s"], {"PATH": f"{P}/tools:/usr/bin"}, "tools/s", True),
        (["dotnet", P + "/tools/s.dll"], {}, "tools/s.dll", True), (["go", "run", P + "/tools"], {}, "tools/s.go", True),
        (["bash", "-c", '"$HOME/q/tools/a.js"'], {}, "tools/b.js", True), (["bash", "-c", "~/q/tools/a.js"], {}, "tools/b.js", True),
        (["sh", "-c", f"node<{P}/tools/a.js"], {}, "tools/b.js", True), (["deno", "run", "file://" + P + "/tools/a.js"], {}, "tools/b.js", True),
        (["php", "-d", f"auto_prepend_file={P}/tools/a.js", "/s.php"], {}, "tools/b.js", True),
        (["s"], {"RUBYOPT": f"-I{P}/tools -rs"}, "tools/s.rb", True), (["s"], {"HOOK": f"{P}/tools/a.js"}, "tools/b.js", True),
        (["npx", "-y", "server-filesystem", P], {}, "b.c", False), (["s", "--root=" + P + "/tools"], {"ROOT": P + "/tools"}, "tools/b.js", False), (["uvx", "mcp-server-git", "--repository", P], {}, "b.c", False),
        (["server", "--root", P], {"ROOT": P}, "b.c", False)):
    project()
    os.makedirs("p/tools")
    for name in ("a.js", "main.go"):
        open("p/tools/" + name, "w").write("x\n")
    if not os.path.exists("home/q"):
        os.symlink(P, "home/q")
    settings = {"command": words, "folder": "project"} if env == "project" else {"command": words, "env": env}
    json.dump({"mcp": {"s": settings}}, open("config/whit/agent.json", "w"))
    open("patch", "w").write(f"{changed}\n<<<<<<< SEARCH\n=======\ny\n>>>>>>> REPLACE\n")
    done = subprocess.run([WHIT, "agent", "apply", "patch", "--project", "p", "--yes"], env=environment(), capture_output=True, text=True,
                          start_new_session=True, stdin=subprocess.DEVNULL)
    wanted(os.path.exists("p/" + changed) != is_asked and ("an MCP server" in done.stderr) == is_asked, f"{words}, {env}, {changed}: {done.stderr}")
project({"s": server("good", folder="project")})
done, got, e = agent([message(None, [("write", {"path": "b.c", "content": "int b;\n"})]), END])
wanted("an MCP server" in got[0] and not os.path.exists("p/b.c"), f"a server that is started in the project: {got}")
project()
os.makedirs("p/tools")
a = acp.Editor(WHIT, environment(), [message(None, [("write", {"path": "tools/s.py", "content": "x\n"})]), END], "--yes")
a.say_yes = False
named = [{"name": "s", "command": sys.executable, "args": [os.path.abspath("p/tools/s.py")], "env": []}]
a.task(a.result("session/new", cwd=os.path.abspath("p"), mcpServers=named)["sessionId"], "Write.")
wanted(len(a.asked) == 1 and "an MCP server" in a.asked[0]["toolCall"]["title"] and not os.path.exists("p/tools/s.py"), f"a server of the editor: {a.asked}")
a.end()

# ---- a task that is cancelled during a call: the server is told, which would go on with it for an editor's next task
project({"s": server("late", allow="green")})
config = json.load(open("config/whit/agent.json"))
config["mcp"]["s"]["command"].append(os.path.abspath("p/called"))
config["mcp"]["s"]["folder"] = "project"
json.dump(config, open("config/whit/agent.json", "w"))
a = acp.Editor(WHIT, environment(), [message(None, [("mcp__s__add", {"a": 1})]), END])
session = a.result("session/new", cwd=os.path.abspath("p"), mcpServers=[])["sessionId"]
a.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Add."}])
for file in ("p/called", "p/told"):
    end = time.time() + 60
    while not os.path.exists(file) and time.time() < end:
        time.sleep(0.01)
    if file == "p/called":
        a.send({"method": "session/cancel", "params": {"sessionId": session}})
wanted(a.answer()["result"] == {"stopReason": "cancelled"} and os.path.exists("p/told"), "a call that is cancelled")
a.end()

# ---- a tool is its server's: a name that could be another server's tool is refused, and a second tool of a name left out
project({"db": server("good", allow="green"), "db__prod": server("good")})
done = subprocess.run([WHIT, "agent", "-p", "x", "--url", "http://127.0.0.1:9/v1", "--project", "p"], env=environment(), capture_output=True,
                      text=True, start_new_session=True, stdin=subprocess.DEVNULL)
wanted(done.returncode == 3 and "'db__prod' must be" in done.stderr, f"two servers whose tools have one name: {done.stderr}")

# ---- servers and tools beyond the limits are left out, and named
project({"many": server("many", allow="green"), "more": server("many", allow="green")})
done, got, e = agent([END])
names = [t["function"]["name"] for t in e.requests[0]["tools"] if t["function"]["name"].startswith("mcp__")]
wanted(len(names) == 200, f"{len(names)} tools")
wanted("100 MCP tools are left out, because a model gets at most 200: 100 of 'more'" in done.stderr, f"tools left out: {done.stderr}")

# ---- in a plan, which writes nothing, a person is asked about each call
project({"s": server("good", allow="green")})
for key, told in (("n", "not called"), ("y", "sum 42")):
    e = Endpoint([message(None, [("mcp__s__add", {"a": 41})]), END])
    seen = at_terminal([WHIT, "agent", "--url", e.url, "--project", "p"],
                       [("agent>", "/plan look\n"), ("Do it?", key + "\n"), ("agent>", "/bye\n")], environment())[1]
    wanted('{"a":41}' in seen and told in e.requests[-1]["messages"][-1]["content"], f"a server in a plan: {seen}")

# ---- a zero byte in a result is no reason to wait for another
project({"zero": server("zero", allow="green")})
done, got, e = agent([message(None, [("mcp__zero__add", {"a": 1})]), END])
wanted(got == ["a?b"], f"a result with a zero byte: {got}")

# ---- long words on both sides at once: neither waits for the other for ever
project({"loud": server("loud", allow="green")})
done, got, e = agent([message(None, [("mcp__loud__add", {"a": 1, "text": "y" * 300000})]), END])
wanted(got[0].startswith("sum 2"), f"a server that says much: {got}")

# ---- whit mcp, with the agent as its client and alone
project({"w": {"command": [WHIT, "mcp", os.path.abspath("p")], "allow": "green"}})
done, got, e = agent([message(None, [("mcp__w__graph", {"query": "callers", "name": "helper"}), ("graph", {"query": "def", "name": "main"}),
                                     ("mcp__w__graph", {"query": "fly", "name": "x"}), ("graph", {"query": "def"})]), END])
wanted("a.c:4: in main" in got[0] and "a.c:2-5: function main" in got[1] and "no query" in got[2] and "needs a name" in got[3], f"graph: {got}")


def mcp(lines, *more):
    done = subprocess.run([WHIT, "mcp", "p", *more], input="".join(x if isinstance(x, str) else json.dumps(x) + "\n" for x in lines),
                          capture_output=True, text=True, env=environment(), timeout=60)
    wanted(done.returncode == 0, f"whit mcp: {done.stderr}")
    return [json.loads(x) for x in done.stdout.splitlines()]


def request(i, method, **params):
    return {"jsonrpc": "2.0", "id": i, "method": method, "params": params}


got = mcp([request(1, "initialize", protocolVersion="2025-06-18"), {"method": "notifications/initialized"}, "{broken\n",
           "\n", "[]\n", request("x", "tools/list"), request(3, "fly"), {"id": 4}, request(5, "ping"),
           request(6, "tools/call", name="memory_search", arguments={"query": "x"})])
wanted([g.get("id") for g in got] == [1, None, None, "x", 3, 4, 5, 6] and got[0]["result"]["protocolVersion"] == "2025-06-18", f"{got}")
wanted([t["name"] for t in got[3]["result"]["tools"]] == ["graph"] and got[4]["error"]["code"] == -32601, f"{got}")
wanted(got[7]["result"]["isError"], "a memory that is not offered")
# Long lines are cut between characters, and bytes that are no UTF-8 do not take the rest with them.
for line, shown in ((60 * b"\xc3\xa9", "\u00e9"), (b" " + 60 * b"\xc3\xa9", "\u00e9"), (b"\xe8", "/* \ufffd */")):
    open("p/long.c", "wb").write(b"int f(void) /* " + line + b" */\n{\n}\n")
    got = mcp([request(1, "tools/call", name="graph", arguments={"query": "map"})])[0]["result"]
    wanted("int f(void) /* " in got["content"][0]["text"] and shown in got["content"][0]["text"] and not got["isError"], f"map: {got}")
os.remove("p/long.c")
# What is JSON is no parse error, an answer is not answered, and the last line needs no line feed.
got = mcp([request(1, "initialize", protocolVersion="2025-06-18"), "[{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}]\n",
           {"jsonrpc": "2.0", "id": 4, "result": {}}, request(5, "tools/call", name="nope", arguments={}), request(None, "ping"), "3\n",
           json.dumps(request(6, "ping"))])
wanted([(g.get("id"), g.get("error", {}).get("code")) for g in got] ==
       [(1, None), (None, -32600), (5, -32602), (None, -32600), (None, -32600), (6, None)], f"odd lines: {got}")
if os.path.exists("m.mem"):
    os.remove("m.mem")
got = mcp([request(1, "tools/call", name="memory_add", arguments={"text": "tomatoes like the sun"}),
           request(2, "tools/call", name="memory_search", arguments={"query": "tomatos and sun"})], "--memory", "m.mem", "--may-add")
wanted(got[0]["result"]["content"][0]["text"] == "kept", f"added: {got}")
wanted("tomatoes like the sun" in got[1]["result"]["content"][0]["text"], f"memory: {got}")
got = mcp([request(1, "tools/call", name="memory_add", arguments={"text": "x"})], "--memory", "m.mem")
wanted(got[0]["result"]["isError"], "added without leave")
got = mcp([request(i, "tools/call", name="memory_add", arguments={"text": text}) for i, text in enumerate(("", " \n\t"))],
          "--memory", "m.mem", "--may-add")
wanted(all(g["result"]["isError"] and "an empty text is not stored" in g["result"]["content"][0]["text"] for g in got), f"blank: {got}")
got = mcp([request(i, "initialize", protocolVersion=v) for i, v in enumerate(("2024-11-05", "2025-03-26", "2031-01-01"))])
wanted([g["result"]["protocolVersion"] for g in got] == ["2024-11-05", "2025-06-18", "2025-06-18"], f"versions: {got}")


# ---- an editor
def Editor(answers, *more):
    return acp.Editor(WHIT, environment(), answers, *more)


project()
WRITE = ("write", {"path": "b.c", "content": "int b;\n"})
a = Editor([streamed("I write.", [WRITE], n=3), streamed("Written.", n=3), message(None, [("write", {"path": ".git/x", "content": "x"})]),
            message("end"), message(None, [("list", {})]), message("unseen")])
a.ask("initialize", protocolVersion=1, clientCapabilities={})
wanted(a.answer()["result"]["protocolVersion"] == 1, "initialize")
a.ask("session/prompt", sessionId="none", prompt=[])
wanted("no such session" in a.answer()["error"]["message"], "a session that is none")
a.ask("session/new", cwd=os.path.abspath("p"), mcpServers=[])
session = a.answer()["result"]["sessionId"]
a.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Write b."}])
wanted(a.answer()["result"] == {"stopReason": "end_turn"}, "a task")
said = "".join(u["content"]["text"] for u in a.updates if u["sessionUpdate"] == "agent_message_chunk")
diffs = [u["content"][0] for u in a.updates if u.get("kind") == "edit"]
wanted(said == "I write.Written." and diffs == [{"type": "diff", "path": os.path.abspath("p/b.c"), "oldText": None, "newText": "int b;\n"}], f"{a.updates}")
wanted(open("p/b.c").read() == "int b;\n" and len(a.asked) == 1, f"asked: {a.asked}")
a.say_yes = False
a.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Git."}])
a.answer()
wanted("configuration" in a.asked[-1]["toolCall"]["title"] and not os.path.exists("p/.git/x"), f"refused: {a.asked[-1]}")
a.ask("fly")
wanted(a.answer()["error"]["code"] == -32601, "an unknown method")
a.process.stdin.write("{broken\n")
a.process.stdin.flush()
wanted(a.answer()["error"]["code"] == -32700, "a line that is no JSON")
a.send({"id": "neither"})
wanted(a.answer()["error"]["code"] == -32600, "an object that is no request")
n_requests = len(a.endpoint.requests)
for nothing in ([], [{"type": "text", "text": " \n"}], [{"type": "image", "data": "", "mimeType": "image/png"}]):
    a.ask("session/prompt", sessionId=session, prompt=nothing)
    refused = a.answer()["error"]
    wanted(refused["code"] == -32602 and "prompt: expected" in refused["message"], f"{nothing}: {refused}")
wanted(len(a.endpoint.requests) == n_requests, "a model is asked nothing")
# Cancelled while the model answers.
slow = a.endpoint.answers
a.endpoint.answers = [(503, b"", {"Retry-After": "60"})] * 3
a.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Wait."}])
time.sleep(0.5)
a.send({"method": "session/cancel", "params": {"sessionId": session}})
begun = time.time()
wanted(a.answer()["result"] == {"stopReason": "cancelled"} and time.time() - begun < 50, "cancel")
# Cancelled before it began: prompt and cancel come together.
for n in range(5):
    lines = [{"id": 1000 + n, "method": "session/prompt", "params": {"sessionId": session, "prompt": [{"type": "text", "text": "Wait."}]}},
             {"method": "session/cancel", "params": {"sessionId": session}}]
    begun = time.time()
    a.process.stdin.write("".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines))
    a.process.stdin.flush()
    wanted(a.answer()["result"] == {"stopReason": "cancelled"} and time.time() - begun < 50, "cancel at once")
a.end()
# Servers that an editor names are started, with their environment, and each call is asked about; more requests than are
# kept are refused, each of them.
project()
a = Editor([message(None, [("mcp__ed-1__add", {"a": 1})]), message("end"), message(None, [("mcp__ed-1__add", {"a": 1, "b": ["\u05d0", 10, 20, "\u05d1"]})]),
            *[message("x")] * 300])
named = {"name": "ed 1", "command": sys.executable, "args": [os.path.abspath("server.py"), "good"], "env": [{"name": "WHIT_ED", "value": "1"}]}
a.ask("session/new", cwd=os.path.abspath("p"), mcpServers=[{"type": "http", "name": "x", "url": "http://x"}])
wanted("mcpServers[0]" in a.answer()["error"]["message"], "a server that is not on stdio")
a.ask("session/new", cwd=os.path.abspath("p"), mcpServers=[named])
session = a.answer()["result"]["sessionId"]
a.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Add."}])
a.answer()
wanted("sum 2" in json.dumps(a.endpoint.requests[-1]) and "mcp__ed-1__add" in a.asked[0]["toolCall"]["title"], f"an editor's server: {a.asked}")
# Letters from right to left do not turn the arguments beside them round.
a.task(session, "Add more.")
wanted(a.asked[1]["toolCall"]["title"].endswith('{"a":1,"b":["\u200e\u05d0\u200e",10,20,"\u05d1\u200e"]}'), f"the order of arguments: {ascii(a.asked[1:])}")
# Two servers whose names become one are kept apart, also if they are cut; one name twice is refused.
project()
b = Editor([message(None, [("mcp__a-b-2__add", {"a": 1})]), message("end")])
alike = ["a.b", "a-b", "a b", "n" * 40, "n" * 32 + "x"]
b.ask("session/new", cwd=os.path.abspath("p"), mcpServers=[{**named, "name": name} for name in alike])
session = b.answer()["result"]["sessionId"]
b.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Add."}])
b.answer()
names = {t["function"]["name"] for t in b.endpoint.requests[0]["tools"] if t["function"]["name"].endswith("__add")}
wanted(names == {f"mcp__{name}__add" for name in ("a-b", "a-b-2", "a-b-3", "n" * 32, "n" * 30 + "-2")}, f"names alike: {names}")
wanted("sum 2" in json.dumps(b.endpoint.requests[-1]), f"the second of two names: {b.endpoint.requests[-1]}")
b.ask("session/new", cwd=os.path.abspath("p"), mcpServers=[{**named, "name": f"s{i}", "command": "/no/such"} for i in range(34)])
b.answer()
b.ask("session/new", cwd=os.path.abspath("p"), mcpServers=[named, named])
wanted("mcpServers[1] ('ed 1')" in b.answer()["error"]["message"], "one name twice")
b.end()
wanted("2 MCP servers are left out, because at most 32 are started: 's32', 's33'" in b.errors, f"servers left out: {b.errors}")
# An answer that comes before its question is none.
project()
b = Editor([message(None, [("write", {"path": "early.c", "content": "int e;\n"})]), message("end")])
b.say_yes = False
b.ask("session/new", cwd=os.path.abspath("p"), mcpServers=[])
session = b.answer()["result"]["sessionId"]
early = [{"id": i, "result": {"outcome": {"outcome": "selected", "optionId": "yes"}}} for i in range(1, 65)]
task = {"id": 1000, "method": "session/prompt", "params": {"sessionId": session, "prompt": [{"type": "text", "text": "Write."}]}}
b.process.stdin.write("".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in [task, *early]))
b.process.stdin.flush()
b.answer()
wanted(len(b.asked) == 1 and not os.path.exists("p/early.c"), f"an answer before its question: {b.asked}")
b.end()
# A yes that comes after session/cancel is none.
project()
if os.path.exists("calls"):
    os.remove("calls")
b = Editor([message(None, [("mcp__ed-1__add", {"a": 1})]), message("end")])
b.say_yes = None
b.ask("session/new", cwd=os.path.abspath("p"), mcpServers=[dict(named, args=[os.path.abspath("server.py"), "good", os.path.abspath("calls")])])
session = b.answer()["result"]["sessionId"]
b.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Add."}])
wanted(b.has_asked.wait(60), "a question about a call")
late = [{"method": "session/cancel", "params": {"sessionId": session}},
        {"id": b.last_asked, "result": {"outcome": {"outcome": "selected", "optionId": "yes"}}}]
b.process.stdin.write("".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in late))
b.process.stdin.flush()
wanted(b.answer()["result"] == {"stopReason": "cancelled"}, "a task that was cancelled at a question")
b.end()
wanted(not os.path.exists("calls"), "a call that was cancelled is made")
# One that has the name of a configured server takes its place: the call reaches it, and is asked about as the editor's.
project({"ed-1": server("free", allow="green")})
b = Editor([message(None, [("mcp__ed-1__add", {"a": 1})]), message("end")])
b.ask("session/new", cwd=os.path.abspath("p"), mcpServers=[named])
session = b.answer()["result"]["sessionId"]
b.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Add."}])
b.answer()
wanted("sum 2" in json.dumps(b.endpoint.requests[-1]) and len(b.asked) == 1 and
       "a server that the editor names, outside the sandbox: mcp__ed-1__add" in b.asked[0]["toolCall"]["title"], f"two servers of one name: {b.asked} {b.endpoint.requests[-1]}")
b.end()
first = a.n + 1
a.process.stdin.write("".join(json.dumps({"jsonrpc": "2.0", "id": first + i, "method": "fly", "params": {}}) + "\n" for i in range(1000)))
a.process.stdin.flush()
got = {m["id"]: m["error"]["code"] for m in (a.answer() for i in range(1000))}
wanted(sorted(got) == list(range(first, first + 1000)) and set(got.values()) <= {-32601, -32000}, f"a flood: {len(got)}")
a.end()
sys.exit(checks.failed)
