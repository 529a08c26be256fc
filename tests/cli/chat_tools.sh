# SPDX-License-Identifier: MIT
# whit chat --tools and --mcp: calls are shown, and their results are typed, or come from what a person lets run.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache XDG_STATE_HOME=$PWD/state XDG_CONFIG_HOME=$PWD/config HOME=$PWD/home
rm -rf cache state config home ./*.json ./*.ndf seen
mkdir -p config/whit home
tiny model.gguf 1 chat
expect 0 whit convert model.gguf -o model.ndf

# The model has random weights: a grammar makes each answer one call.
cat >weather.gbnf <<'END'
root ::= "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\"}}\n</tool_call>"
END
cat >tools.json <<'END'
[{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]
END
# script STATUS LINES OPTION...: the lines as a chat.
script() {
    local wanted=$1 lines=$2 status
    shift 2
    printf '%b' "$lines" | whit chat -m model.ndf -c 4096 -s 1 -n 200 "$@" >out 2>err
    status=$?
    [ "$status" = "$wanted" ] || complain "chat of '$lines' ended with $status, not $wanted: $(head -n 3 err)"
}

# ---- a typed result; the model asks again, and the input ends: what is left is refused, and kept
script 0 'How is it?\n18 degrees\n' --tools tools.json --grammar weather.gbnf --session s.ndf
[ "$(grep -c '^calls weather {"city": "Bern"}$' out)" = 2 ] || complain "calls: $(cat out)"
grep -q '^18 degrees$' out || complain "the result: $(cat out)"
grep -q tool_call out && complain "the call is shown as text, too: $(cat out)"
script 0 '/save a.json\n/show history\n/undo\n/show history\n' --session s.ndf
python3 - <<'END' || complain "the saved messages: $(cat a.json)"
import json
messages = json.load(open("a.json"))["messages"]
assert [m["role"] for m in messages] == ["user", "assistant", "tool", "assistant", "tool"], messages
calls = [m["tool_calls"][0] for m in messages if "tool_calls" in m]
assert [json.loads(c["function"]["arguments"]) for c in calls] == [{"city": "Bern"}] * 2
assert calls[0]["id"] != calls[1]["id"] and [m["tool_call_id"] for m in messages if m["role"] == "tool"] == [c["id"] for c in calls]
assert messages[2]["content"] == "18 degrees" and "did not allow" in messages[4]["content"]
END
grep -q '^assistant: calls weather' out && grep -q '^tool: 18 degrees$' out && grep -q '^no messages yet$' out ||
    complain "/show history: $(cat out)"
expect 3 whit verify s.ndf --replay -m model.ndf # picks were made under a grammar

# ---- a command: only if the person agrees; its input are the arguments
cat >command.json <<'END'
[{"type": "function", "function": {"name": "weather"}, "command": ["sh", "-c", "cat >>seen; echo rain; exit $(wc -l <seen)"]}]
END
script 0 'How is it?\nn\nit snows\n' --tools command.json --grammar weather.gbnf
[ ! -e seen ] || complain "the command ran without leave"
grep -q "^by 'sh' '-c' 'cat >>seen; echo rain; exit \$(wc -l <seen)'$" out || complain "the command is not shown: $(cat out)"
grep -q 'did not allow' out && grep -q '^it snows$' out || complain "refused and typed: $(cat out)"
script 0 'How is it?\ny\n/show prompt\n' --tools command.json --grammar weather.gbnf
[ "$(cat seen)" = '{"city": "Bern"}' ] || complain "the command's input: $(cat seen)"
grep -q '^rain$' out || complain "the command's output: $(cat out)"
echo '[{"type": "function", "function": {"name": "weather"}, "command": ["sh", "-c", "echo no; exit 7"]}]' >fails.json
script 0 'x\ny\n' --tools fails.json --grammar weather.gbnf
grep -q 'ended with status 7' out || complain "a command that fails: $(cat out)"
echo '[{"type": "function", "function": {"name": "weather"}, "command": ["/nowhere/at/all"]}]' >absent.json
script 0 'x\ny\n' --tools absent.json --grammar weather.gbnf
grep -q "'/nowhere/at/all' cannot be started" out || complain "a command that is absent: $(cat out)"
# An output over 1 MiB is cut with a note that person and model read; the next prompt does not fit the context.
echo 'print("x" + "\u00e9" * 700000)' >long.py
echo '[{"type": "function", "function": {"name": "weather"}, "command": ["python3", "long.py"]}]' >long.json
script 4 'x\ny\n/save long_output.json\n' --tools long.json --grammar weather.gbnf
tail -n 1 out | grep -q '^\[cut: 1048575 of 1400002 bytes; ask for less\]$' || complain "a long output: $(tail -c 200 out)"
python3 - <<'END' || complain "the model's result of a long output"
import json
result = json.load(open("long_output.json"))["messages"][2]["content"]
assert result == "x" + "\u00e9" * 524287 + "\n[cut: 1048575 of 1400002 bytes; ask for less]", result[-100:]
END

rm -f seen
script 0 'x\n' --tools command.json --grammar weather.gbnf -n 60
grep -q 'arguments are not a JSON object' out && [ ! -e seen ] || complain "a call that is cut off: $(cat out)"

# ---- what is shown before leave is given: line breaks and hidden characters of the call, controls of the command
cat >hidden.gbnf <<'END'
root ::= "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"a\u202eb\"}}\n</tool_call>"
END
echo '[{"type": "function", "function": {"name": "weather"}, "command": ["echo", "a\u001b[2J\nb"]}]' >hidden.json
script 0 'x\nn\n' --tools hidden.json --grammar hidden.gbnf
grep -q 'calls weather .*a<U+202E>b' out && grep -q "^by 'echo' 'a<U+001B>\[2J<U+000A>b'$" out || complain "hidden: $(cat -v out)"

# ---- a line that was typed before the question is no leave
cat >early.py <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from endpoint import at_terminal
program = sys.argv[2:] + ["chat", "-m", "model.ndf", "-c", "4096", "-s", "1", "-n", "200", "--tools", "command.json",
                          "--grammar", "weather.gbnf"]
status, seen = at_terminal(program, [(">>> ", ""), ("", "x\ny\n"), ("run it?", ""), ("", "\x04")])
sys.exit(0 if "run it?" in seen and "by 'sh'" in seen else seen)
END
rm -f seen
if python3 -c 'import pty; pty.openpty()' 2>/dev/null; then
    # shellcheck disable=SC2086
    python3 early.py "$SOURCE/tests/agent" $WHIT || complain "no question at a terminal"
    [ ! -e seen ] || complain "a line that was typed before the question ran the command"
    # Nor is it the result of a call that was not shown yet.
    python3 - <<'END' || complain "a line that was typed before the call is its result"
import json, os, shlex, sys
sys.path.insert(0, os.environ["SOURCE"] + "/tests/agent")
from endpoint import at_terminal
program = shlex.split(os.environ["WHIT"]) + "chat -m model.ndf -c 4096 -s 1 -n 200 --tools tools.json --grammar weather.gbnf".split()
status, seen = at_terminal(program, [(">>> ", "x\nearly\n"), ("its result:", "late\n"), ("its result:", "\x03"),
                                     ("/bye leaves", ""), (">>> ", "/save early.json\n"), ("saved", ""), (">>> ", "\x04")])
assert json.load(open("early.json"))["messages"][2]["content"] == "late", seen
END
fi

# ---- the tools of MCP servers, with leave and without a question
cat >server.py <<'END'
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize": r = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    elif m["method"] == "tools/list": r = {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}
    else: r = {"content": [{"type": "text", "text": "sum %d" % (m["params"]["arguments"]["a"] + 1)}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
END
cat >add.gbnf <<'END'
root ::= "<tool_call>\n{\"name\": \"mcp__s__add\", \"arguments\": {\"a\": 41}}\n</tool_call>"
END
printf '{"mcp": {"s": {"command": ["python3", "server.py"], "folder": "project"}}}' >config/whit/agent.json
script 0 'x\ny\n/show prompt\n' --mcp --grammar add.gbnf
grep -q '^calls mcp__s__add {"a":41}$' out && grep -q '^sum 42$' out || complain "a server's tool: $(cat out)"
# What is shown is what is sent: a name that stands twice would be shown with both values, and sent with one.
sed 's/41/1, \\"a\\": 41/' add.gbnf >twice.gbnf
script 0 'x\ny\n' --mcp --grammar twice.gbnf
grep -q 'arguments are not a JSON object' out && ! grep -q 'sum' out || complain "a name that stands twice: $(cat out)"
sed 's/41/41.00000000000000001/' add.gbnf >digits.gbnf
script 0 'x\ny\n' --mcp --grammar digits.gbnf
grep -q '^calls mcp__s__add {"a":41.0}$' out && grep -q '^sum 42$' out || complain "digits: $(cat out)"
printf '{"mcp": {"s": {"command": ["python3", "server.py"], "folder": "project", "allow": "green"}}}' >config/whit/agent.json
script 0 'x\n' --mcp --grammar add.gbnf
[ "$(grep -c '^sum 42$' out)" -gt 10 ] && grep -q '20 answers in a row' err || complain "a tool that may run: $(cat out err)"

# ---- Ctrl-C during a call: the calls after it are not made
cat >slow.py <<'END'
import json, os, sys, time
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize": r = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    elif m["method"] == "tools/list": r = {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}
    else:
        open("called", "a").write("%d\n" % m["params"]["arguments"]["a"])
        while not os.path.exists("go"): time.sleep(0.01)
        r = {"content": [{"type": "text", "text": "done"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
END
cat >two.gbnf <<'END'
call ::= "<tool_call>\n{\"name\": \"mcp__s__add\", \"arguments\": {\"a\": 1}}\n</tool_call>"
root ::= call "\n" call
END
sed -i 's/server.py/slow.py/' config/whit/agent.json
rm -f called go
python3 - <<'END' || complain "calls after Ctrl-C: $(cat called)"
import os, shlex, signal, subprocess, time
chat = subprocess.Popen(shlex.split(os.environ["WHIT"]) + "chat -m model.ndf -c 4096 -s 1 -n 300 --mcp --grammar two.gbnf".split(),
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
chat.stdin.write(b"x\n")
chat.stdin.flush()
for _ in range(600):
    if os.path.exists("called"): break
    time.sleep(0.1)
chat.send_signal(signal.SIGINT)
out, _ = chat.communicate(timeout=60)
open("go", "w").close()
time.sleep(1) # a second call would be in the server's pipe
assert open("called").read() == "1\n" and out.count(b"calls mcp__s__add") == 1, out
END
printf '{"mcp": {"s": {"command": ["python3", "server.py"], "folder": "project"}}}' >config/whit/agent.json

# ---- output to a file: what is asked about is shown at the terminal, or not done
if has_terminals; then
    rm -f seen
    python3 - <<'END' || complain "a call that is asked about while the output is a file"
import os, sys
sys.path.insert(0, os.environ["SOURCE"] + "/tests/agent")
from endpoint import at_terminal
chat = os.environ["WHIT"] + " chat -m model.ndf -c 4096 -s 1 -n 200 --tools command.json --grammar weather.gbnf "
status, seen = at_terminal(["sh", "-c", chat + ">out"], [(">>> ", "x\n"), ("run it?", "n\n"), ("run it?", "\x04")])
assert 'calls weather {"city": "Bern"}\r\nby \'sh\' \'-c\'' in seen and not os.path.exists("seen"), seen
status, seen = at_terminal(["sh", "-c", chat + ">out 2>&1"], [("", "x\ny\n\x04")])
assert not os.path.exists("seen") and "cannot be shown" in open("out").read(), open("out").read()
END
fi

# ---- at a terminal each further row of a call is marked, its order is kept, and a call above the screen is told
if has_terminals; then
    python3 - <<'END' || complain "how a call is shown at a terminal"
import os, shlex, sys
sys.path.insert(0, os.environ["SOURCE"] + "/tests/agent")
from endpoint import at_terminal
program = shlex.split(os.environ["WHIT"]) + "chat -m model.ndf -c 8192 -s 1 -n 3000 --tools tools.json --grammar long.gbnf".split()
def seen_of(city, *more):
    open("long.gbnf", "w").write(open("weather.gbnf").read().replace("Bern", city))
    return at_terminal(program, [(">>> ", "x\n"), ("its result: ", "y\n"), ("its result: ", "\x04")], columns=80)[1]
seen = seen_of("x" * 57 + "calls other {} " + "y" * 30)
assert 'calls weather {"city": "' + "x" * 56 + "\r\n> xcalls other {} yyy" in seen, seen
assert "above the screen" not in seen, seen
seen = seen_of("\u05d0', 5, '\u05d1")
assert "{\"city\": \"\u200e\u05d0\u200e', 5, '\u05d1\u200e\"}" in seen, ascii(seen)
seen = seen_of("z" * 2000)
assert "\r\n(a call of 26 rows, which begins above the screen)\r\n" in seen, seen
END
    # A paste that is longer than the terminal's queue answers no call that appears meanwhile.
    rm -f seen
    python3 - <<'END' || complain "a long paste before a call"
import os, shlex, sys
sys.path.insert(0, os.environ["SOURCE"] + "/tests/agent")
from endpoint import at_terminal
program = shlex.split(os.environ["WHIT"]) + "chat -m model.ndf -c 4096 -s 1 -n 200 --tools command.json --grammar weather.gbnf".split()
seen = at_terminal(program, [(">>> ", "x\n" + "y\n" * 9000), ("run it? y, n, or its result: ", "\x04")])[1]
assert not os.path.exists("seen") and "result: y" not in seen, seen[-300:]
END
fi

# ---- mistakes
echo '{}' >object.json
expect 3 whit chat -m model.ndf --tools object.json
one_line object.json "list of tools"
echo '[{"name": "x"}]' >nameless.json
expect 3 whit chat -m model.ndf --tools nameless.json
one_line nameless.json "tool 0"
echo '[{"type": "function", "function": {"name": "x"}, "command": "ls"}]' >word.json
expect 3 whit chat -m model.ndf --tools word.json
one_line word.json "list of 1 to 63 words"
python3 -c 'import json; print(json.dumps([{"type": "function", "function": {"name": "x"}, "command": ["echo"] * 64}]))' >words.json
expect 3 whit chat -m model.ndf --tools words.json
one_line words.json "1 to 63 words"
expect 5 whit chat -m model.ndf --tools gone.json
rm config/whit/agent.json
expect 2 whit chat -m model.ndf --mcp
one_line "names no servers"
finish
