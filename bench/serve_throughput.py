#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a server makes of what the machine gives: a random model of BitNet 2B4T's shape with the Llama 3 tokenizer.

    bench/serve_throughput.py VOCABULARY [--build build] [--scratch FOLDER] [--rounds 5] [--threads 2] [--only streams]

VOCABULARY is a folder with the tokenizer.json of Llama 3. SCRATCH (build/bench-serve) takes 2.2 GB while the model is
made and 1.1 GB afterwards, where it stays for the next time. In each round the server and `whit bench` run one behind
the other, so that both meet the same load; ratios are medians over the rounds. Prints

- 8 streams of 128 tokens, tokens per second, over `whit bench --columns 8`; one stream over one column. Of the
  server from the first request to the last answer's end, prompts and HTTP included. CPU time a token beside it.
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

from serve import Server, make_model

TOKENS, STREAMS, BEGINNING, OWN = 128, 8, 2000, 40
arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("vocabulary")
arguments.add_argument("--build", default="build")
arguments.add_argument("--scratch")
arguments.add_argument("--rounds", type=int, default=5)
arguments.add_argument("--threads", type=int, default=2)
arguments.add_argument("--only", choices=("streams", "beginnings"))
options = arguments.parse_args()
whit = os.path.join(options.build, "whit")
scratch = options.scratch or os.path.join(options.build, "bench-serve")
model = os.path.join(scratch, "model.ndf")


def start_server(*more):
    return Server(whit, model, options.threads, *more)


def bench(n_prompt, n_tokens, depth=0, columns=1):
    """Tokens per second and CPU seconds of all that it did."""
    command = [whit, "bench", "-m", model, "-p", str(n_prompt), "-n", str(n_tokens), "-d", str(depth), "-r", "1", "-t",
               str(options.threads), "--columns", str(columns), "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = json.loads(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done[-1]["tps_median"], after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def stream(server, i, texts):
    """One streamed answer. The client sleeps until all of it is there, so as to take nothing from the server."""
    body = json.dumps({"prompt": [1000 + i, 2000 + i], "max_tokens": TOKENS, "ignore_eos": True, "stream": True,
                       "temperature": 0}).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1 << 19)
        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" %
                  len(body) + body)
        text = b""
        while part := s.recv(1 << 20):
            text += part
    texts[i] = text


def streams(server, n):
    texts = [b""] * n
    threads = [threading.Thread(target=stream, args=(server, i, texts)) for i in range(n)]
    cpu, begun = server.cpu_s(), time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = time.monotonic() - begun
    if not all(b"data: [DONE]" in text for text in texts):
        sys.exit("an answer is not whole: %s" % min(texts, key=len)[-300:])
    return n * TOKENS / taken, (server.cpu_s() - cpu) / (n * TOKENS)


def throughput():
    server = start_server("-np", str(STREAMS), "-c", "256")
    streams(server, STREAMS)  # pages are in memory, threads exist
    for n, bar in ((STREAMS, 0.90), (1, 0.97)):
        rounds = []
        for _ in range(options.rounds):
            tps, cpu = streams(server, n)
            reference, _ = bench(0, TOKENS, 0, n)
            again, cpu_again = streams(server, n)
            rounds.append(((tps + again) / 2, reference, (cpu + cpu_again) / 2))
        ratio = statistics.median(tps / reference for tps, reference, _ in rounds)
        print("%d streams: %.1f tokens/s, bench %.1f, ratio %.3f (bar %.2f): %s; %.1f ms of CPU a token" % (
            n, statistics.median(r[0] for r in rounds), statistics.median(r[1] for r in rounds), ratio, bar,
            "met" if ratio >= bar else "MISSED", statistics.median(r[2] for r in rounds) * 1000), flush=True)
    server.end()


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


make_model(options.build, model, "bitnet-2b4t", options.vocabulary)
if options.only != "beginnings":
    throughput()
if options.only != "streams":
    beginnings()
