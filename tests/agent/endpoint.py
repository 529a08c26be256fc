# SPDX-License-Identifier: MIT
"""An endpoint that replays answers of a model, and a terminal at which somebody answers."""
import fcntl
import http.server
import json
import os
import pty
import select
import signal
import struct
import termios
import threading
import time

# The text of a program that is an MCP server with one tool.
SEND_SERVER = """import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked or "method" not in asked:
        continue
    tools = [{"name": "send", "description": "Sends.", "inputSchema": {"type": "object", "properties": {}}}]
    result = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}},
              "tools/list": {"tools": tools}}.get(asked["method"], {"content": [{"type": "text", "text": "sent"}]})
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def message(content=None, calls=()):
    out = {"role": "assistant", "content": content}
    if calls:
        out["tool_calls"] = [
            {"id": f"c{i}", "type": "function",
             "function": {"name": n, "arguments": a if isinstance(a, str) else json.dumps(a)}}
            for i, (n, a) in enumerate(calls)]
    body = {"choices": [{"message": out}], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}
    return (200, json.dumps(body).encode(), {})


def streamed(text="", calls=(), n=7, end="data: [DONE]\n\n", line="\n", cut=None, extra=()):
    """The same as events, texts and arguments in pieces of n characters. cut: bytes that are sent before it breaks off."""
    events = [{"choices": [{"delta": {"role": "assistant"}}]}]
    events += [{"choices": [{"delta": {"content": text[i:i + n]}}]} for i in range(0, len(text), n)]
    for i, (name, arguments) in enumerate(calls):
        arguments = arguments if isinstance(arguments, str) else json.dumps(arguments)
        events.append({"choices": [{"delta": {"tool_calls": [{"index": i, "id": f"s{i}", "type": "function",
                                                             "function": {"name": name, "arguments": ""}}]}}]})
        events += [{"choices": [{"delta": {"tool_calls": [{"index": i, "function": {"arguments": arguments[k:k + n]}}]}}]}
                   for k in range(0, len(arguments), n)]
    events.append({"choices": [{"delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]})
    events.append({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}})
    body = ": a comment" + line * 2 + "".join(f"data: {json.dumps(e)}{line * 2}" for e in [*events, *extra]) + end
    body = body.encode()
    return (200, body if cut is None else body[:cut], {"Content-Type": "text/event-stream"})


class Withheld(list):
    """Answers, of which all but the first are given once `typed` is set: what is typed then comes before the second,
    however slow the machine is."""

    def __init__(self, answers):
        super().__init__(answers)
        self.typed, self.is_first = threading.Event(), True

    def pop(self, i):
        if not self.is_first:
            self.typed.wait(600)
        self.is_first = False
        return super().pop(i)


class Endpoint:
    """Answers: (status, bytes, headers), or "cut" for a connection that breaks in the middle."""

    def __init__(self, answers):
        self.answers = answers if isinstance(answers, Withheld) else list(answers)
        self.requests, self.headers, self.models = [], [], ["first", "second"]
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                outer.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                outer.headers.append(dict(self.headers))
                answer = outer.answers.pop(0) if outer.answers else message("nothing is left")
                cut = answer == "cut"
                status, body, headers = (200, b'{"choices"', {}) if cut else answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in headers:
                    self.send_header("Content-Length", str(len(body) + (100 if cut else 0)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    pass
                self.close_connection = True

            def do_GET(self):
                body = json.dumps({"object": "list", "data": [{"id": name} for name in outer.models]}).encode()
                self.send_response(200 if self.path == "/v1/models" else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()  # shutdown() waits so long
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"


LINE_EDITOR = b"\x1b[?2004h"  # the editor of lines begins: pastes are marked


def wait_for_keys(terminal, seconds=120):
    """Waits until each key is read as it is typed: the prompt is shown a moment before, and a Ctrl-D that the terminal
    itself takes for the end of a line is lost then."""
    end = time.time() + seconds
    while termios.tcgetattr(terminal)[3] & termios.ICANON and time.time() < end:
        time.sleep(0.005)


def paste(terminal, text):
    """Writes a text that is longer than the terminal's queue, as far as the program takes it."""
    try:
        while text:
            text = text[os.write(terminal, text):]
    except OSError:
        pass


def at_terminal(command, answers, env=None, seconds=600, columns=1000):
    """Runs a command at a terminal of its own; answers: (text to wait for after the last one, text to type, and what is
    done before it). (status, all output)"""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execvpe(command[0], command, env or os.environ)
    seen, waiting, end, past = b"", list(answers), time.time() + seconds, 0
    while time.time() < end:
        if waiting and waiting[0][0].encode() in seen[past:]:
            past = seen.index(waiting[0][0].encode(), past) + len(waiting[0][0].encode())
            for act in waiting[0][2:]:
                act()
            pattern, text, *_ = waiting.pop(0)
            if text == "\x04" and (pattern == "agent>" or LINE_EDITOR in seen[seen.rfind(b"\n") + 1:]):
                wait_for_keys(terminal)
            if len(text) > 4096:
                threading.Thread(target=paste, args=(terminal, text.encode()), daemon=True).start()
            else:
                os.write(terminal, text.encode())
        ready, _, _ = select.select([terminal], [], [], 0.1)
        if not ready:
            continue
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    else:
        os.kill(pid, signal.SIGKILL)
        raise TimeoutError(f"it waits for an answer that nobody gives, {waiting[:1]} is left: {seen[-300:]}")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    return status, seen.decode(errors="replace")
