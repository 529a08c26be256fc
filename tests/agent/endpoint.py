# SPDX-License-Identifier: MIT
"""An endpoint that replays answers of a model, and a terminal at which somebody answers."""
import http.server
import json
import os
import pty
import select
import threading
import time


def message(content=None, calls=()):
    out = {"role": "assistant", "content": content}
    if calls:
        out["tool_calls"] = [
            {"id": f"c{i}", "type": "function",
             "function": {"name": n, "arguments": a if isinstance(a, str) else json.dumps(a)}}
            for i, (n, a) in enumerate(calls)]
    body = {"choices": [{"message": out}], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}
    return (200, json.dumps(body).encode(), {})


class Endpoint:
    """Answers: (status, bytes, headers), or "cut" for a connection that breaks in the middle."""

    def __init__(self, answers):
        self.answers, self.requests, self.headers = list(answers), [], []
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
                self.send_header("Content-Length", str(len(body) + (100 if cut else 0)))
                self.end_headers()
                try:
                    self.wfile.write(body)
                except OSError:
                    pass
                self.close_connection = True

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"


def at_terminal(command, answers, env=None, seconds=60):
    """Runs a command at a terminal of its own; answers: (text to wait for, text to type). (status, all output)"""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, env or os.environ)
    seen, waiting, end = b"", list(answers), time.time() + seconds
    while time.time() < end:
        if waiting and waiting[0][0].encode() in seen:
            os.write(terminal, waiting.pop(0)[1].encode())
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
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    return status, seen.decode(errors="replace")
