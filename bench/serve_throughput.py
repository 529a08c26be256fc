#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares a server with `whit bench`: a random model of BitNet 2B4T's shape with the Llama 3 tokenizer.

    bench/serve_throughput.py VOCABULARY [--build build] [--scratch FOLDER] [--rounds 5] [--threads 2] [--only streams]
                              [--streams 8,4,1] [--tokens 128] [--codec t2] [--head i8s] [--priority 0]

VOCABULARY is a folder with the tokenizer.json of Llama 3. SCRATCH (build/bench-serve) takes 2.2 GB while the model is
made and 0.9 GB afterwards, where it stays for the next time. In each round the server and `whit bench` run in turn,
so that both meet the same load; ratios are medians over the rounds. With --priority both compute at that real-time
priority, for a machine with other work. Prints

- streams of 128 tokens, tokens per second, over `whit bench` of as many columns: of the server the median of pieces of
  a few tokens while all streams run, and from the first request to the last answer's end. CPU time a token beside it.
- a second request on a beginning of 2,000 tokens: time to its first token, over what `whit bench` takes for the tokens
  that were not cached at that depth; the same after a restart with --cache-dir.
"""
import argparse
import json
import os
import random
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time

from serve import Server, make_model, run_first

BEGINNING, OWN = 2000, 40
arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("vocabulary")
arguments.add_argument("--build", default="build")
arguments.add_argument("--scratch")
arguments.add_argument("--rounds", type=int, default=5)
arguments.add_argument("--threads", type=int, default=2)
arguments.add_argument("--only", choices=("streams", "beginnings"))
arguments.add_argument("--streams", default="8,4,1")
arguments.add_argument("--tokens", type=int, default=128)
arguments.add_argument("--temperature", type=float, default=0)
arguments.add_argument("--codec", default="t2")
arguments.add_argument("--head", default="i8s")
arguments.add_argument("--priority", type=int, default=0)
options = arguments.parse_args()
whit = os.path.join(options.build, "whit")
scratch = options.scratch or os.path.join(options.build, "bench-serve")
model = os.path.join(scratch, "%s-%s.ndf" % (options.codec, options.head))


def start_server(*more):
    return Server(whit, model, options.threads, *more, priority=options.priority)


def bench(n_prompt, n_tokens, depth=0, columns=1, rounds=1):
    """Tokens per second and CPU seconds of all that it did."""
    command = run_first(options.priority) + [
        whit, "bench", "-m", model, "-p", str(n_prompt), "-n", str(n_tokens), "-d", str(depth), "-r", str(rounds), "-t",
        str(options.threads), "--columns", str(columns), "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = json.loads(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done[-1]["tps_median"], after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def stream(server, i, n_tokens, texts, marks):
    """One streamed answer. The client sleeps until all of it is there, so as to take nothing from the server; that of
    stream 0 wakes up every few tokens and notes how many have come."""
    body = json.dumps({"prompt": [1000 + i, 2000 + i], "max_tokens": n_tokens, "ignore_eos": True, "stream": True,
                       "temperature": options.temperature}).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 19 if i else 1 << 10)
        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" %
                  len(body) + body)
        text = b""
        while part := s.recv(1 << 20):
            text += part
            if i == 0:
                marks.append((time.monotonic(), text.count(b"data: {")))
    texts[i] = text


def streams(server, n, n_tokens):
    """Tokens per second from the first request to the last end, and while all streams run (median); CPU a token."""
    texts, marks = [b""] * n, []
    threads = [threading.Thread(target=stream, args=(server, i, n_tokens, texts, marks)) for i in range(n)]
    cpu, begun = server.cpu_s(), time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = time.monotonic() - begun
    if not all(b"data: [DONE]" in text for text in texts):
        sys.exit("an answer is not whole: %s" % min(texts, key=len)[-300:])
    rates = [n * (k1 - k0) / (t1 - t0) for (t0, k0), (t1, k1) in zip(marks[1:], marks[2:-1]) if k1 > k0]
    return n * n_tokens / taken, statistics.median(rates or [0]), (server.cpu_s() - cpu) / (n * n_tokens)


def throughput(n):
    rounds = []
    for _ in range(options.rounds):
        server = start_server("-np", str(n), "-c", str(options.tokens + 64))
        streams(server, n, 4)  # pages are in memory, threads exist
        whole, steady, cpu_s = streams(server, n, options.tokens)
        server.end()
        rounds.append((steady, bench(0, 4, 0, n, 9)[0], whole, cpu_s))
    ratios = [steady / reference for steady, reference, _, _ in rounds]
    ratio = statistics.median(ratios)
    print("%d streams: %.1f tokens/s (%.1f with both ends), bench %.1f, ratio %.3f (%s; bar 0.95): %s; "
          "%.1f ms of CPU a token" % (
              n, statistics.median(r[0] for r in rounds), statistics.median(r[2] for r in rounds),
              statistics.median(r[1] for r in rounds), ratio, ", ".join("%.2f" % r for r in ratios),
              "met" if ratio >= 0.95 else "MISSED", statistics.median(r[3] for r in rounds) * 1000), flush=True)


def first_token_s(server, prompt):
    begun = time.monotonic()
    done = server.post({"prompt": prompt, "max_tokens": 1, "temperature": 0, "ignore_eos": True})
    return time.monotonic() - begun, done["usage"]["prompt_tokens_details"]["cached_tokens"]


def beginnings():
    rng = random.Random(1)
    folder = os.path.join(scratch, "kept")
    shutil.rmtree(folder, ignore_errors=True)
    flags = ["-np", "2", "-c", "2304", "--cache-dir", folder]
    beginning = [rng.randrange(100, 100000) for _ in range(BEGINNING)]

    def request():
        return beginning + [rng.randrange(100, 100000) for _ in range(OWN)]
    server = start_server(*flags)
    first_token_s(server, request())
    for kind, bar in (("a second request", 1.2), ("after a restart", 1.5)):
        ratios, times = [], []
        for _ in range(options.rounds):
            if bar > 1.2:
                server.end()
                server = start_server(*flags)
            taken, n_cached = first_token_s(server, request())
            n_new = BEGINNING + OWN - n_cached
            if n_new > OWN + 63:
                sys.exit("%s: %d tokens were computed" % (kind, n_new))
            reference, _ = bench(n_new, 0, n_cached)
            times.append((taken, n_new / reference, n_new))
            ratios.append(taken * reference / n_new)
        ratio = statistics.median(ratios)
        print("%s on %d tokens: first token after %.0f ms, its %d tokens take %.0f, ratio %.2f (bar %.1f): %s" % (
            kind, BEGINNING, statistics.median(t[0] for t in times) * 1000, times[0][2],
            statistics.median(t[1] for t in times) * 1000, ratio, bar, "met" if ratio <= bar else "MISSED"), flush=True)
    server.end()


make_model(options.build, model, "bitnet-2b4t", options.vocabulary,
           codecs=("--codec", options.codec, "--head", options.head))
if options.only != "beginnings":
    for number in options.streams.split(","):
        throughput(int(number))
if options.only != "streams":
    beginnings()
