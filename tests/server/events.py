# SPDX-License-Identifier: MIT
"""A subscriber reconstructs from KV events what a replica holds: every prompt's cached tokens are those that it
predicts, and the number of blocks is the replica's own, with evictions, gaps, a kill and a restart from a cache."""
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time

import client
from client import Server, check, reserve_port
from fleet import BLOCK, Subscriber

EVENTS = int(os.environ["EVENTS"])
rng = random.Random(5)
N_VOCAB = 200


PORTS = [reserve_port() for _ in range(2)]
ENDPOINTS = ["tcp://127.0.0.1:%d" % port for port, _ in PORTS]


def start(*more):
    return Server("-c", "512", "-np", "3", "--kv-events", ENDPOINTS[0], "--kv-replay", ENDPOINTS[1],
                  "--alias", "tales", "--advertise", "replica:8080", *more)


def prompt():
    """From a tree with few branches; never so long that an answer of one token fills a block."""
    ids = []
    for at in range(rng.randrange(1, 7)):
        branch = random.Random(at * 10 + rng.randrange(3 if at < 2 else 6))
        ids += [10 + branch.randrange(N_VOCAB) for _ in range(BLOCK)]
    return ids + [10 + rng.randrange(N_VOCAB) for _ in range(rng.randrange(1, 60))]


def ask(server, ids, **more):
    done = server.post("/v1/completions", {"prompt": ids, "max_tokens": 1, "temperature": 0, **more})
    return done["usage"]["prompt_tokens_details"]["cached_tokens"]


def compare(server, subscriber):
    """The subscriber knows what the replica has. A replica that has just been started may still read its folder."""
    deadline = time.time() + 60
    while True:
        subscriber.receive()
        subscriber.replay()
        has = server.metric("kv_blocks")
        if len(subscriber.held) == has or time.time() > deadline:
            break
    check(len(subscriber.held) == has, "it holds", has, "not", len(subscriber.held))


def listen(server, subscriber):
    """Asks until events come by the subscription itself, which connects again some time after a restart."""
    deadline = time.time() + 60
    while subscriber.heard + 1 < subscriber.next and time.time() < deadline:
        ask(server, prompt())
        subscriber.receive(100)


def play(server, subscriber, n_events):
    before = subscriber.n_events
    while subscriber.n_events < before + n_events and not client.failures:
        ids = prompt()
        known = subscriber.chain(ids)
        cached = ask(server, ids)
        check(cached // BLOCK == known // BLOCK, "cached", cached, "predicted", known, "of", len(ids))
        compare(server, subscriber)


shutil.rmtree("kept", ignore_errors=True)
server = start("--cache-dir", "kept")
subscriber = Subscriber(*ENDPOINTS)
compare(server, subscriber)
play(server, subscriber, EVENTS // 2)
check(subscriber.n_removed > EVENTS // 12, "few evictions", subscriber.n_removed)
topic = subscriber.topic.decode()
check(not topic or topic == "kv@replica:8080@tales", topic)

# Answers of several clients at once, of many tokens, some of which leave.
threads = [threading.Thread(target=lambda: [ask(server, prompt(), max_tokens=90) for _ in range(4)]) for _ in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
compare(server, subscriber)
late = Subscriber(*ENDPOINTS)
late.replay()
check(late.held == subscriber.held, "a late subscriber knows something else")
late.close()

# Killed, and started again: the new numbers are a gap, and the replay begins with an empty cache.
server.process.kill()
server.process.wait()
server = start("--cache-dir", "kept")
compare(server, subscriber)
check(subscriber.n_lost == 1, "the restart was not seen", subscriber.n_lost)
play(server, subscriber, EVENTS // 4)
listen(server, subscriber)
server.end()
deadline = time.time() + 60
while subscriber.held and time.time() < deadline:
    subscriber.receive(100)
check(not subscriber.held, "after its end it holds", len(subscriber.held))

# Beginnings from the folder are told, too.
server = start("--cache-dir", "kept")
deadline = time.time() + 60
while not subscriber.held and time.time() < deadline:
    subscriber.replay()  # what was published before it was connected again
    time.sleep(0.02)
check(subscriber.held, "nothing is found again after the restart")
compare(server, subscriber)
play(server, subscriber, EVENTS // 4)
status, page = server.ask("GET", "/metrics")
check(subscriber.loras == {(None, None)}, subscriber.loras)
check(b'vllm:cache_config_info{model_name="tales",block_size="64",num_gpu_blocks="24"} 1' in page, "cache_config_info")
server.end()
subscriber.close()

# Blocks that an adapter had a part in name it, unless several had.
with open("text", "w", encoding="ascii") as out:
    out.write("Once upon a time there was a little dog. " * 40)
made = [subprocess.run([*os.environ["WHIT"].split(), "tune", "--text", "text", "--steps", "1", "--rank", "2", "-c", "32", "--seed", str(i),
                        "--sequences", "1", "-t", "1", "-o", "adapter%d.ndf" % i], stderr=subprocess.PIPE, check=False) for i in (1, 2)]
check(all(one.returncode == 0 for one in made), made)
server = start("--adapter", "first=adapter1.ndf", "--adapter", "second=adapter2.ndf")
told = Subscriber(*ENDPOINTS)
ids = prompt()[-5 * BLOCK:] + [10] * 2 * BLOCK  # within the context
for fields in ({}, {"model": "second"}, {"adapters": {"first": 1, "second": 0.5}}):
    check(ask(server, ids, **fields) < BLOCK, "another adapter's blocks are taken", fields)
compare(server, told)
check(told.loras == {(None, None), (2, "second")}, told.loras)
check(b'max_lora="2",running_lora_adapters="",waiting_lora_adapters=""' in server.ask("GET", "/metrics")[1], "lora info")
server.end()
told.close()

# The endpoint is taken: one line, and no server.
with socket.socket() as taken:
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.bind(("127.0.0.1", PORTS[0][0]))
    taken.listen()
    said = client.refused("--kv-events", ENDPOINTS[0])
    check("another program listens" in said, said)
print("%d events followed, %d stored, %d removed, %d gaps" %
      (subscriber.n_events, subscriber.n_stored, subscriber.n_removed, subscriber.n_gaps))
sys.exit(1 if client.failures else 0)
