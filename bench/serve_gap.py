#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long a new prompt of 4,000 tokens holds seven answers up: gaps between two tokens, as clients see them.

    bench/serve_gap.py VOCABULARY [--shape tinyllama-1.1b] [--layers N] [--divide N] [--build build] [--scratch FOLDER]
                       [--threads 2] [--budgets 0,50,100,150] [--prompt 4000] [--rounds 3] [--codec t2] [--head i8s]
                       [--seconds N] [--priority 0]

VOCABULARY is a folder with a tokenizer.json. A random model of the shape (tests/make_folder lists them; --divide makes
its widths smaller) is made in SCRATCH (build/bench-gap) and stays for the next time. For each --step-budget a server
of eight slots starts; seven streams generate, then the prompt arrives. Prints the largest gap and the 99th percentile
of gaps between two tokens of the seven streams while the prompt is computed, how long it took to its first token, and
how many prompt tokens a step took (from /metrics); medians over the rounds. --seconds ends a prompt after that time.
--priority is as in serve_throughput.py.
"""
import argparse
import http.client
import json
import os
import random
import statistics
import threading
import time

from serve import Server, make_model

STREAMS = 7
arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("vocabulary")
arguments.add_argument("--shape", default="tinyllama-1.1b")
arguments.add_argument("--layers", default="0")
arguments.add_argument("--divide", default="1")
arguments.add_argument("--build", default="build")
arguments.add_argument("--scratch")
arguments.add_argument("--threads", type=int, default=2)
arguments.add_argument("--budgets", default="0,50,100,150")
arguments.add_argument("--prompt", type=int, default=4000)
arguments.add_argument("--rounds", type=int, default=3)
arguments.add_argument("--seconds", type=float, default=3600)
arguments.add_argument("--priority", type=int, default=0)
arguments.add_argument("--codec")
arguments.add_argument("--head")
options = arguments.parse_args()
whit = os.path.join(options.build, "whit")
scratch = options.scratch or os.path.join(options.build, "bench-gap")
codecs = [text for name in ("codec", "head") if getattr(options, name) for text in ("--" + name, getattr(options, name))]
model = os.path.join(scratch, "-".join([options.shape, options.layers, options.divide] + codecs[1::2]) + ".ndf")


def open_stream(server, prompt, n_tokens):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=3600)
    connection.request("POST", "/v1/completions", json.dumps(
        {"prompt": prompt, "max_tokens": n_tokens, "ignore_eos": True, "stream": True, "temperature": 0,
         "timings_per_token": True}))
    return connection, connection.getresponse()


def follow(server, i, stop, times):
    """Notes when each piece of an answer arrives, and the number of tokens up to it, until `stop`.

    A token that ends within a character comes with the next one, so a piece may have several tokens.
    """
    connection, reply = open_stream(server, [100 + i, 200 + i], 1900)
    for line in reply:
        if line.startswith(b"data: {"):
            times.append((time.monotonic(), json.loads(line[6:]).get("timings", {}).get("predicted_n", 0)))
        if stop.is_set():
            break
    connection.close()


def measure(server, seed):
    """Gaps in ms while the prompt is computed, and seconds to its first token."""
    rng = random.Random(seed)
    stop, times = threading.Event(), [[] for _ in range(STREAMS)]
    threads = [threading.Thread(target=follow, args=(server, i, stop, times[i])) for i in range(STREAMS)]
    for thread in threads:
        thread.start()
    while any(len(t) < 20 for t in times):
        time.sleep(0.02)
    begun = time.monotonic()
    connection, reply = open_stream(server, [rng.randrange(100, 30000) for _ in range(options.prompt)], 1)
    connection.sock.settimeout(options.seconds)
    try:
        while not reply.readline().startswith(b"data: {"):
            pass
    except TimeoutError:
        pass
    ended = time.monotonic()
    stop.set()
    connection.sock.close()
    for thread in threads:
        thread.join()
    gaps = sorted((b - a) * 1000 / (m - n) for t in times for (a, n), (b, m) in zip(t, t[1:])
                  if b > begun and a < ended and m > n)
    return gaps[-1], gaps[len(gaps) * 99 // 100], ended - begun, len(gaps)


make_model(options.build, model, options.shape, options.vocabulary, "--layers", options.layers,
           "--divide", options.divide, codecs=codecs)
print("seven streams and a prompt of %d tokens, %s, %d threads" % (options.prompt, options.shape, options.threads))
print("--step-budget  largest gap  99 of 100  first token  tokens of the streams meanwhile  prompt tokens a step")
for budget in (int(text) for text in options.budgets.split(",")):
    server = Server(whit, model, options.threads, "-np", str(STREAMS + 1), "-c", str(options.prompt + 2000),
                    "--step-budget", str(budget), "--spec", "0", priority=options.priority)
    rounds = [measure(server, seed) for seed in range(options.rounds)]
    pieces = server.metric("step_prompt_tokens_sum") / server.metric("step_prompt_tokens_count")
    print("%10d ms  %8.0f ms  %6.0f ms  %9.1f s  %31d  %20.1f" % (
        (budget,) + tuple(statistics.median(r[k] for r in rounds) for k in range(4)) + (pieces,)), flush=True)
    server.end()
