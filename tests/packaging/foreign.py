#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The program of another system, by its emulator: it answers as this machine's does, notices a client that leaves, and
pulls a model.

    foreign.py EMULATOR PROGRAM WHIT HUB_SERVE TINY_MODEL
"""
import atexit
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

emulator, program, native, hub_serve, tiny_model = sys.argv[1:]
for tool in (native, hub_serve, tiny_model):
    if not os.access(tool, os.X_OK):
        print("[ SKIPPED ] no", tool)
        sys.exit(77)

PROMPT = {"prompt": "Once upon a time", "max_tokens": 40, "seed": 5, "temperature": 0.8, "logprobs": 2}
CHAT = {"messages": [{"role": "user", "content": "Tell me of a fox."}], "max_tokens": 30}
REQUESTS = [("/v1/completions", PROMPT), ("/v1/completions", {**PROMPT, "stream": True}),
            ("/v1/chat/completions", {**CHAT, "seed": 5}),
            ("/v1/messages", {**CHAT, "model": "tales", "temperature": 0}),
            ("/api/chat", {**CHAT, "stream": False, "options": {"seed": 5, "num_predict": 30}}),
            ("/tokenize", {"content": "a fox"}), ("/v1/completions", {"prompt": 7})]


class Server:
    def __init__(self, *command):
        self.process = subprocess.Popen([*command, "serve", "-m", "tales", "--port", "0", "-c", "512", "-np", "2"],
                                        stderr=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)
        for line in self.process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                self.address = found.group(0)
                return
        sys.exit("FAILED: no address")

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        try:
            return urllib.request.urlopen(urllib.request.Request(self.address + path, data), timeout=60).read().decode()
        except urllib.error.HTTPError as refused:
            return "%d %s" % (refused.code, refused.read().decode())


def without_chance(text):
    """The reply without names, dates and times, which differ at each request; of a stream the text."""
    if text.startswith("data:"):
        chunks = [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: {")]
        return "".join(chunk["choices"][0]["text"] for chunk in chunks)
    text = re.sub(r'"(id|created|created_at)":("[^"]*"|\d+)', "", text)
    return re.sub(r'"(\w+_(ms|per_second|duration))":[\d.e+-]+|"timings":\{[^}]*\}', "", text)


foreign, here = Server(emulator, program), Server(native)
for path, body in REQUESTS:
    found, expected = (without_chance(server.ask(path, body)) for server in (foreign, here))
    if found != expected:
        sys.exit("FAILED: %s: %s\nwhere this machine says %s" % (path, found, expected))
assert "<html" in foreign.ask("/")

# A client that leaves frees its slot: the answer would have taken the rest of the context.
reply = urllib.request.urlopen(urllib.request.Request(
    foreign.address + "/v1/completions", json.dumps({**PROMPT, "max_tokens": 400, "stream": True, "n": 1}).encode()))
reply.read(100)
reply.close()
until = time.monotonic() + 60
while json.loads(foreign.ask("/health"))["slots_processing"]:
    if time.monotonic() > until:
        sys.exit("FAILED: the slot is not free")
    time.sleep(0.1)

# A download from a hub on this machine, found again by its name.
with tempfile.TemporaryDirectory() as folder:
    files = pathlib.Path(folder, "files")
    files.mkdir()
    subprocess.run([tiny_model, files / "tiny.gguf"], check=True, stdout=subprocess.DEVNULL)
    hub = subprocess.Popen([hub_serve, "owner/tiny-GGUF", files], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True)
    atexit.register(hub.kill)
    address = hub.stdout.readline().split()[-1]
    place = dict(os.environ, XDG_CACHE_HOME=("Z:" if program.endswith(".exe") else "") + folder, HF_ENDPOINT=address)
    for command in (["pull", "owner/tiny-GGUF"], ["inspect", "owner/tiny-GGUF"]):
        done = subprocess.run([emulator, program, *command], env=place, capture_output=True, text=True, timeout=120)
        if done.returncode:
            sys.exit("FAILED: %s: %s" % (command, done.stderr))
