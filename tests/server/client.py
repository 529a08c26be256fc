# SPDX-License-Identifier: MIT
"""What the tests of whit serve share: starting one, asking it, checking."""
import atexit
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

failures = 0
# What a request may take; prompts of 20,000 tokens take minutes on a busy machine.
ASK_SECONDS = 7200 if "LONG" in os.environ else 300
# A program that takes milliseconds of processor time for each token, so that an answer outlasts what is tested meanwhile.
SLOW = "let x = 1\nfor i in 0..1000000 { x = x * x + i }\nstate[0] = float(x)"


def reserve_port():
    """A port, and the socket that keeps it: bound and not listening, so that no other program gets the port, and a
    server that reuses addresses may listen there."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return holder.getsockname()[1], holder


def check(ok, *what):
    global failures
    if not ok:
        failures += 1
        print("FAILED:", *what)


class Server:
    """`whit serve` with these arguments; its lines on stderr are in `said`."""

    def __init__(self, *arguments):
        self.said = []
        command = os.environ["WHIT"].split() + ["serve", "--port", "0", "-t", "2", *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)  # whatever goes wrong: else the test would never end
        for line in self.process.stderr:
            self.said.append(line)
            found = re.search(r"http://(?:127\.0\.0\.1|0\.0\.0\.0|\[::ffff:127\.0\.0\.1\]):(\d+)", line)
            if found:
                self.port = int(found.group(1))
                threading.Thread(target=self.listen, daemon=True).start()
                return
            print(line.rstrip())
        sys.exit("the server did not start")

    def listen(self):
        for line in self.process.stderr:
            self.said.append(line)

    def wait_for_line(self, text):
        """Until it has said that on stderr."""
        deadline = time.time() + 120
        while not any(text in line for line in self.said) and time.time() < deadline:
            time.sleep(0.02)
        check(any(text in line for line in self.said), "it never said", text, self.said)

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ASK_SECONDS)
        connection.request(method, path, body if body is None else json.dumps(body), headers or {})
        reply = connection.getresponse()
        text = reply.read()
        connection.close()
        return reply.status, text

    def get(self, path):
        return json.loads(self.ask("GET", path)[1])

    def metric(self, name, model=None):
        """Of one model, or the first."""
        pattern = r"^whit:%s\{model=\"%s\"\} (\S+)$" % (name, re.escape(model) if model else "[^\"]*")
        return float(re.search(pattern, self.ask("GET", "/metrics")[1].decode(), re.M).group(1))

    def post(self, path, body, status=200):
        got, text = self.ask("POST", path, body)
        check(got == status, path, str(body)[:200], "gave", got, text[:300])
        return json.loads(text)

    def text(self, prompt="the land", n=24, **fields):
        body = {"prompt": prompt, "max_tokens": n, "temperature": 0, **fields}
        return self.post("/v1/completions", body)["choices"][0]["text"]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        check(self.process.wait(120) == 0, "the server did not end well", self.said[-3:])


def processor_s(server):
    """Seconds of processor time that a server has taken, which the load of the machine does not change."""
    with open("/proc/%d/stat" % server.process.pid, encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def refused(*arguments):
    """What a server that cannot start says; its exit status is not 0, and it says one line beside that of the sandbox."""
    command = os.environ["WHIT"].split() + ["serve", "--port", "0", *arguments]
    ended = subprocess.run(command, stderr=subprocess.PIPE, timeout=600, text=True, check=False)
    said = [line for line in ended.stderr.splitlines() if "in a sandbox" not in line and "no sandbox" not in line]
    check(ended.returncode not in (0, 77) and ended.returncode > 0 and len(said) == 1, arguments, ended)
    return "".join(said)
