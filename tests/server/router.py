# SPDX-License-Identifier: MIT
"""Three replicas and a small router that reads their KV events and metrics: requests with a known prefix reach the
replica that has it, answers are one server's own, a drain loses nothing, a kill only what the replica had begun."""
import http.client
import json
import random
import re
import signal
import socket
import sys
import threading
import time

import client
from client import SLOW, Server, check, reserve_port
from fleet import BLOCK, Subscriber

rng = random.Random(3)
N_REPLICAS, N_PREFIXES = 3, 9
SLOWER = SLOW.replace("1000000", "4000000")  # an answer lasts seconds


class Replica:
    def __init__(self, number):
        self.ports = [reserve_port() for _ in range(2)]
        endpoints = ["tcp://127.0.0.1:%d" % port for port, _ in self.ports]
        self.server = Server("-c", "512", "-np", "2", "-t", "1", "--alias", "tales", "--advertise", "replica-%d:8080" % number,
                             "--kv-events", endpoints[0], "--kv-replay", endpoints[1])
        self.events = Subscriber(*endpoints)
        self.lives = True

    def load(self):
        page = self.server.ask("GET", "/metrics")[1].decode()
        return sum(float(re.search(r"^vllm:%s\{.*\} (\S+)$" % name, page, re.M).group(1))
                   for name in ("num_requests_running", "num_requests_waiting"))


class Router:
    def __init__(self, replicas):
        self.replicas, self.lock = replicas, threading.Lock()
        self.n_known = self.n_reached = self.n_retried = self.n_cut = 0

    def choose(self, ids, without):
        """The replica that has most of the prompt, of equals the one with the least load; what it has of it."""
        best = None
        for replica in self.replicas:
            if not replica.lives or replica in without:
                continue
            replica.events.receive()
            try:
                rank = (replica.events.chain(ids), -replica.load(), rng.random())
            except OSError:
                continue
            if best is None or rank > best[0]:
                best = rank, replica
        return (best[1], best[0][0]) if best else (None, 0)

    def complete(self, ids, n_tokens):
        """The text; None where the replica that had begun it was killed."""
        without = []
        while True:
            with self.lock:
                replica, known = self.choose(ids, without)
            if not replica:
                return None
            try:
                connection = http.client.HTTPConnection("127.0.0.1", replica.server.port, timeout=120)
                body = {"prompt": ids, "max_tokens": n_tokens, "temperature": 0, "ignore_eos": True}
                connection.request("POST", "/v1/completions", json.dumps(body), {"X-Request-Id": "r%d" % id(ids)})
                reply = connection.getresponse()
                check(reply.getheader("X-Request-Id") == "r%d" % id(ids), "the id is lost")
                done = json.loads(reply.read())
            except ConnectionRefusedError:
                without.append(replica)  # nothing was begun
                continue
            except (OSError, http.client.HTTPException):
                with self.lock:
                    self.n_cut += 1
                return None
            if reply.status == 503:
                without.append(replica)
                with self.lock:
                    self.n_retried += 1
                continue
            check(reply.status == 200, reply.status, done)
            with self.lock:
                cached = done["usage"]["prompt_tokens_details"]["cached_tokens"]
                self.n_known += known > 0
                self.n_reached += known > 0 and cached >= known
            return done["choices"][0]["text"]


def look_at_drain():
    """/health of a server that ends, while it still answers a request."""
    server = Server("-c", "512", "-np", "2", "-t", "1")
    kept, spare, stream = (http.client.HTTPConnection("127.0.0.1", server.port, timeout=120) for _ in range(3))
    for connection in (kept, spare):
        connection.request("GET", "/health")
        reply = connection.getresponse()
        check(reply.status == 200 and json.loads(reply.read())["state"] == "ready", "not ready")
    stream.request("POST", "/v1/completions",
                   json.dumps({"prompt": "A", "max_tokens": 400, "ignore_eos": True, "stream": True, "program": SLOWER}))
    answer = stream.getresponse()
    answer.read(1)  # it has begun
    server.process.send_signal(signal.SIGTERM)
    deadline = time.time() + 60
    while time.time() < deadline:
        kept.request("GET", "/health")
        reply = kept.getresponse()
        state = json.loads(reply.read())["state"]
        if reply.status == 503:
            break
        if reply.will_close:  # the signal came between the text and the headers; nothing new is accepted from now on
            kept = spare
    check((reply.status, state) == (503, "draining"), "while it ends", reply.status, state)
    kept.close()
    spare.close()
    check(answer.read().endswith(b"data: [DONE]\n\n"), "the drain cut an answer")
    stream.close()
    check(server.process.wait(120) == 0, "it did not end well")


def look_at_graceful_drain():
    """With --drain requests are answered after SIGTERM, on connections that then close, until the time is over or a
    second signal comes; afterwards none is accepted."""
    server = Server("-c", "512", "-np", "2", "-t", "1", "--drain", "3600")
    kept = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    kept.request("GET", "/health")
    check(kept.getresponse().read() and kept.sock, "a connection was not kept")
    server.process.send_signal(signal.SIGTERM)
    deadline = time.time() + 60
    while server.ask("GET", "/health")[0] == 200 and time.time() < deadline:
        pass
    status, text = server.ask("GET", "/health")
    check((status, json.loads(text)["state"]) == (503, "draining"), "while it drains", status, text)
    body = json.dumps({"prompt": "A", "max_tokens": 4, "ignore_eos": True})
    kept.request("POST", "/v1/completions", body)
    reply = kept.getresponse()
    check(reply.status == 200 and reply.getheader("Connection") == "close", "a kept connection", reply.status)
    check(json.loads(reply.read())["usage"]["completion_tokens"] == 4, "an answer while it drains")
    check(server.ask("POST", "/v1/completions", json.loads(body))[0] == 200, "a new connection while it drains")
    server.end()
    brief = Server("-c", "512", "-np", "2", "-t", "1", "--drain", "1")
    brief.end()
    for ended in (server, brief):
        try:
            ended.ask("GET", "/health")
            check(False, "a connection after the drain")
        except OSError:
            pass


def look_at_queue():
    """Requests that came while the server did not run, and that it finds together with the signal to end: each one is
    answered, if only by a 503."""
    server = Server("-c", "512", "-np", "2", "-t", "1")
    server.process.send_signal(signal.SIGSTOP)
    asked = []
    for _ in range(40):
        asked.append(socket.create_connection(("127.0.0.1", server.port), timeout=120))
        asked[-1].sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    server.process.send_signal(signal.SIGTERM)
    server.process.send_signal(signal.SIGCONT)
    for connection in asked:
        reply = b""
        while part := connection.recv(4096):
            reply += part
        check(reply.split()[1:2] in ([b"200"], [b"503"]), "a connection in the queue got", reply)
        connection.close()
    check(server.process.wait(120) == 0, "it did not end well")


look_at_drain()
look_at_graceful_drain()
look_at_queue()
prefixes = [[10 + rng.randrange(200) for _ in range(2 * BLOCK)] for _ in range(N_PREFIXES)]
prompts = [prefixes[i % N_PREFIXES] + [10 + rng.randrange(200) for _ in range(1 + i)] for i in range(27)]
alone = Server("-c", "512", "-np", "2", "-t", "1")
expected = [alone.post("/v1/completions", {"prompt": ids, "max_tokens": 8, "temperature": 0, "ignore_eos": True})
            ["choices"][0]["text"] for ids in prompts]
alone.end()

def ask_in_turn(ids):
    """The text, once the events of the answer have arrived."""
    text, deadline = router.complete(ids, 8), time.time() + 60
    for replica in router.replicas:
        while len(replica.events.held) != replica.server.metric("kv_blocks") and time.time() < deadline:
            replica.events.receive(10)
    return text


router = Router([Replica(i) for i in range(N_REPLICAS)])
texts = [ask_in_turn(ids) for ids in prompts]
check(texts == expected, "answers differ from one server's")
check(router.n_known >= 15, "few prefixes were known", router.n_known)
check(router.n_reached >= 0.95 * router.n_known, "known prefixes reached their replica in", router.n_reached, "of",
      router.n_known)
said = "%d of %d requests with a known prefix reached it" % (router.n_reached, router.n_known)
check(len({len(r.events.held) > 0 for r in router.replicas}) == 1, "a replica has nothing")


def ask_all(n_tokens):
    """All prompts by three clients at once; their texts."""
    found = [None] * len(prompts)

    def run(first):
        for i in range(first, len(prompts), 3):
            found[i] = router.complete(prompts[i], n_tokens)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    return found, threads


# A drain: what runs is answered, the rest goes elsewhere.
found, threads = ask_all(8)
router.replicas[0].server.end()
router.replicas[0].lives = False
for thread in threads:
    thread.join()
check(found == expected and router.n_cut == 0, "the drain lost answers", router.n_cut,
      sum(a != b for a, b in zip(found, expected)))

# A kill: at most what the replica had begun, one answer for each client.
found, threads = ask_all(8)
router.replicas[1].server.process.kill()
router.replicas[1].server.process.wait()
router.replicas[1].lives = False
for thread in threads:
    thread.join()
wrong = [i for i, text in enumerate(found) if text != expected[i]]
check(len(wrong) == router.n_cut <= 3 and all(found[i] is None for i in wrong), "the kill lost", wrong, router.n_cut)
router.replicas[2].server.end()
print("%s; %d refused by a drain and asked elsewhere, %d cut by a kill" % (said, router.n_retried, router.n_cut))
sys.exit(1 if client.failures else 0)
