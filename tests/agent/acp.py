# SPDX-License-Identifier: MIT
"""An editor that hosts the agent: the client's side of the Agent Client Protocol."""
import json
import queue
import subprocess
import threading

from checks import wanted
from endpoint import Endpoint


class Editor:
    """answers: what the endpoint of the agent replays; None: the options `more` name the model. Permissions are answered
    by `say_yes`: True, False, or None for no answer."""

    def __init__(self, whit, env, answers, *more, project="p"):
        self.endpoint = Endpoint(answers or [])
        url = [] if answers is None else ["--url", self.endpoint.url]
        self.process = subprocess.Popen([whit, "agent", "--acp", *url, "--project", project, *more], env=env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.got, self.updates, self.asked, self.say_yes, self.n = queue.Queue(), [], [], True, 0
        self.has_asked = threading.Event()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            m = json.loads(line)
            if m.get("method") == "session/update":
                self.updates.append(m["params"]["update"])
            elif m.get("method") == "session/request_permission":
                self.asked.append(m["params"])
                self.last_asked = m["id"]
                self.has_asked.set()
                if self.say_yes is None:
                    continue
                outcome = {"outcome": "selected", "optionId": "yes" if self.say_yes else "no"}
                self.send({"id": m["id"], "result": {"outcome": outcome}})
            else:
                self.got.put(m)

    def send(self, m):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **m}) + "\n")
        self.process.stdin.flush()

    def ask(self, method, **params):
        self.n += 1
        self.send({"id": self.n, "method": method, "params": params})
        return self.n

    def answer(self):
        return self.got.get(timeout=60)

    def result(self, method, **params):
        self.ask(method, **params)
        return self.answer().get("result")

    def refusal(self, method, **params):
        self.ask(method, **params)
        return self.answer().get("error", {}).get("message", "")

    def task(self, session, text):
        return self.result("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=60)
        self.endpoint.server.shutdown()

    def end(self):
        self.process.stdin.close()
        self.errors = self.process.stderr.read()
        wanted(self.process.wait(timeout=60) == 0, f"the end: {self.errors}")
        self.endpoint.server.shutdown()
