# SPDX-License-Identifier: MIT
"""64 streaming clients for SOAK_SECONDS, with some that leave, read 100 bytes a second, never finish their request,
send too much or nonsense: no crash, memory stays flat, nobody waits much longer than others."""
import bisect
import datetime
import itertools
import json
import os
import random
import socket
import statistics
import sys
import threading
import time

import client
from client import Server, check

SECONDS, CLIENTS, SLOTS = float(os.environ.get("SOAK_SECONDS", "15")), 64, 8
if os.path.exists("soak.log"):  # of an older run
    os.unlink("soak.log")
server = Server("-np", str(SLOTS), "-c", "1024", "--queue", "256", "--log", "soak.log")
until = time.time() + SECONDS
waits, totals, counts = [], [], {"whole": 0, "left": 0, "slow": 0, "half-open": 0, "oversized": 0, "nonsense": 0}
lock = threading.Lock()


def resident():
    for line in open("/proc/%d/status" % server.process.pid, encoding="ascii"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def connect(body, length=None):
    s = socket.create_connection(("127.0.0.1", server.port), timeout=120)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
              % (length or len(data)) + data)
    return s


def ask(rng):
    return {"prompt": "Once upon a time there was " + rng.choice(["a cat", "a dog", "Tim", "a big old tree"]) *
            rng.randrange(1, 6), "max_tokens": rng.randrange(8, 65), "stream": True, "ignore_eos": True,
            "seed": rng.randrange(1 << 30)}


def count(kind):
    with lock:
        counts[kind] += 1


def read_all(s, begun):
    text, first = b"", None
    while part := s.recv(65536):
        text += part
        if first is None and b"data: " in text:
            first = time.time() - begun
    return text, first


def whole(rng):
    begun = time.time()
    with connect(ask(rng)) as s:
        text, first = read_all(s, begun)
    check(b"data: [DONE]" in text, "an answer is not whole", text[-300:])
    with lock:
        waits.append(first or 0)
        totals.append(time.time() - begun)
    count("whole")


def leave(rng):
    with connect(ask(rng)) as s:
        if rng.random() < 0.5:
            s.recv(100)
    count("left")


def slow(rng):
    with connect(ask(rng)) as s:
        end = min(time.time() + 20, until)
        while time.time() < end and s.recv(10):
            time.sleep(0.1)
    count("slow")


def half_open(rng):
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as s:
        s.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: 900\r\n" + (b"\r\n{" if rng.random() < 0.5 else b""))
        time.sleep(min(5, max(0, until - time.time())))
    count("half-open")


def oversized(rng):
    s = connect(b" " * (1 << 16), 17 << 20)
    try:
        for _ in range(17 << 4):
            s.sendall(b" " * (1 << 16))
        s.shutdown(socket.SHUT_WR)
        s.recv(4096)
    except OSError:
        pass  # it may answer and close before all is sent
    s.close()
    count("oversized")


def nonsense(rng):
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as s:
        try:
            s.sendall(rng.choice([bytes(rng.randrange(256) for _ in range(300)), b"GET\r\n\r\n", b"\0" * 4000,
                                  b"POST /v1/completions HTTP/1.1\r\nContent-Length: 3\r\n\r\n{{{",
                                  b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 8000 + b"\r\n"]))
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass
        except OSError:
            pass
    count("nonsense")


def run(i):
    rng = random.Random(i)
    kinds = [whole] * 40 + [leave] * 6 + [slow] * (2 if i % 8 == 0 else 0) + [half_open] * (i % 8 == 1) + \
        [oversized] * (i % 16 == 2) + [nonsense] * 2
    while time.time() < until:
        rng.choice(kinds)(rng)


threads = [threading.Thread(target=run, args=(i,)) for i in range(CLIENTS)]
for thread in threads:
    thread.start()
samples = []
while time.time() < until:
    time.sleep(min(2, SECONDS / 50))
    samples.append(resident())
for thread in threads:
    thread.join()
deadline = time.time() + 120
while server.metric("requests_processing") and time.time() < deadline:
    time.sleep(0.05)
check(server.metric("requests_processing") == 0, "requests go on without clients")
check(server.get("/health")["status"] == "ok", "/health")
# From minute two of ten on; in the median, since bodies of requests come and go.
later = samples[len(samples) // 5:]
quarter = max(1, len(later) // 4)
first, last = statistics.median(later[:quarter]), statistics.median(later[-quarter:])
if SECONDS >= 300:
    check(last <= first * 1.01, "memory grows", first, last)
waits.sort()
mean = sum(totals) / max(1, len(totals))


def shares():
    """(times the fair share, wait) of every whole answer, by the server's clock: 64 clients of this script have one
    interpreter between them. Its fair share is what the answers take on average that were under way while it waited,
    so that a machine that stands still for a while favours none."""
    answers = []
    with open("soak.log", encoding="utf-8") as log:
        for line in map(json.loads, log):
            if line.get("finish") == ["length"]:
                end = datetime.datetime.fromisoformat(line["time"].replace("Z", "+00:00")).timestamp()
                answers.append((end - line["total_us"] / 1e6, end, line["queue_us"] / 1e6))
    begins, ends = sorted((b, e - b) for b, e, _ in answers), sorted((e, e - b) for b, e, _ in answers)
    begun, ended = ([0, *itertools.accumulate(took for _, took in times)] for times in (begins, ends))
    for begin, _, wait in answers:
        n_begun, n_ended = bisect.bisect(begins, (begin + wait, 1e9)), bisect.bisect(ends, (begin, 0))
        yield wait / ((begun[n_begun] - ended[n_ended]) / (n_begun - n_ended)), wait


share, queued = max(shares()), max(wait for _, wait in shares())
check(waits and (share[0] <= 2 or share[1] <= 1), "a request waits longer than twice the fair share", share, mean)


def percentile(p):
    return waits[min(len(waits) - 1, int(len(waits) * p))] * 1000


print("%s; first token after %.0f, %.0f, %.0f ms (50, 95, 99 %%), at most %.0f; in the queue %.0f at most, and %.2f times "
      "the fair share; an answer takes %.0f ms; resident %d to %d kB, %d after a fifth and %d at the end" %
      (", ".join("%d %s" % (n, kind) for kind, n in counts.items()), percentile(0.5), percentile(0.95), percentile(0.99),
       waits[-1] * 1000, queued * 1000, share[0], mean * 1000, min(samples), max(samples), first, last))
server.end()
sys.exit(1 if client.failures else 0)
