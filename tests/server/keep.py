# SPDX-License-Identifier: MIT
"""--cache-dir: beginnings are found again after a restart and a kill, damage and a full disk cost nothing but them."""
import os
import shutil
import subprocess
import sys
import time

import client
from client import Server, check, refused

PROMPT = "Once upon a time there was a little dog who liked to play in the big park. " * 24
BODY = {"prompt": PROMPT, "max_tokens": 16, "temperature": 0}


def ask(server, **more):
    done = server.post("/v1/completions", {**BODY, **more})
    return done["choices"][0]["text"], done["usage"]


def files():
    return sorted("kept/" + name for name in os.listdir("kept") if name.endswith(".ndf"))


def inodes():
    return {os.stat(path).st_ino for path in files()}


def full_disk():
    """With a folder that has no room; in a name space of its own, where the machine allows one."""
    arguments = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=16k none small && exec \"$@\"", "sh"]
    os.makedirs("small", exist_ok=True)
    if subprocess.run([*arguments, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        print("not tested: a full disk, without name spaces")
        return
    program = os.environ["WHIT"]
    os.environ["WHIT"] = " ".join(["sh", "full.sh", program])
    with open("full.sh", "w", encoding="ascii") as out:
        out.write("exec unshare -rm sh -c 'mount -t tmpfs -o size=16k none small && exec \"$@\"' sh \"$@\"\n")
    server = Server("-c", "1024", "--cache-dir", "small/kept", "--no-sandbox")
    text, _ = ask(server)
    deadline = time.time() + 120
    while not any("cannot be stored" in line for line in server.said) and time.time() < deadline:
        time.sleep(0.05)
    check(any("cannot be stored" in line for line in server.said), "a full disk is not told of", server.said)
    again, usage = ask(server)
    check(again == text and usage["prompt_tokens_details"]["cached_tokens"] > 256, "what it holds is lost", usage)
    server.end()
    os.environ["WHIT"] = program


shutil.rmtree("kept", ignore_errors=True)
server = Server("-c", "1024", "-np", "2")
text, usage = ask(server)
n = usage["prompt_tokens"]
check(n > 256, "the prompt is too short to tell", n)
server.end()

server = Server("-c", "1024", "-np", "2", "--cache-dir", "kept")
check(ask(server)[0] == text, "another text")
other = Server("-c", "1024", "-np", "2", "--cache-dir", "kept")  # beside it
check(ask(other)[0] == text, "another text")
other.end()
server.end()
check(files() and all(os.stat(path).st_mode & 0o777 == 0o600 for path in files()), files())
size = sum(os.path.getsize(path) for path in files())

server = Server("-c", "1024", "-np", "2", "--cache-dir", "kept")
again, usage = ask(server)
check(again == text, "after a restart: another text", again, text)
check(usage["prompt_tokens_details"]["cached_tokens"] >= n - 64, "not found again", usage)
before = inodes()
changed, usage = ask(server, prompt=PROMPT + "And then")
check(usage["prompt_tokens_details"]["cached_tokens"] >= n - 64, "not found again", usage)
deadline = time.time() + 120
while inodes() == before and time.time() < deadline:
    time.sleep(0.05)  # until it is idle and writes down what the slots hold, into a new file each
server.process.kill()
server.process.wait()
server = Server("-c", "1024", "-np", "2", "--cache-dir", "kept")
again, usage = ask(server, prompt=PROMPT + "And then")
check(again == changed and usage["prompt_tokens_details"]["cached_tokens"] >= n - 64, "lost by a kill", usage)
server.end()
check(sum(os.path.getsize(path) for path in files()) < 3 * size + 4096, "the folder grows", files())

# Another cache type has files of its own; other beginnings take the place of the old ones.
server = Server("-c", "1024", "-np", "2", "--kv", "i8", "--cache-dir", "kept")
check(ask(server)[1]["prompt_tokens_details"]["cached_tokens"] == 0, "blocks of another type")
server.end()
for path in files():
    with open(path, "r+b") as file:
        file.seek(os.path.getsize(path) // 2)
        file.write(b"damage" * 20)
server = Server("-c", "1024", "-np", "2", "--cache-dir", "kept")
check(ask(server)[0] == text, "damage changes the text")
server.end()
with open("no_folder", "w", encoding="ascii") as out:
    out.write("a file")
check("no_folder" in refused("--cache-dir", "no_folder"), "a file as a folder")
# Two names of one file keep what each of them holds.
shutil.rmtree("twins", ignore_errors=True)
TALES = os.environ["SOURCE"] + "/tools/tales/tales.ndf"
for round in range(2):
    server = Server("-m", "a=" + TALES, "-m", "b=" + TALES, "-c", "1024", "-np", "1", "--cache-dir", "twins")
    for name, prompt in (("a", PROMPT), ("b", "Another one. " + PROMPT)):
        usage = ask(server, prompt=prompt, model=name)[1]
        check(not round or usage["prompt_tokens_details"]["cached_tokens"] > 256, "lost by its twin", name, usage)
    server.end()
    check(len([name for name in os.listdir("twins") if name.endswith(".ndf")]) == 2, os.listdir("twins"))
    check(not any("kept" in line for line in server.said), server.said)
# Servers that share the folder at the same time say so, and lose nothing of each other.
shutil.rmtree("shared", ignore_errors=True)
for round in range(2):
    servers = [Server("-c", "1024", "-np", "1", "--cache-dir", "shared") for _ in range(3)]
    for i, server in enumerate(servers):
        usage = ask(server, prompt="Number %d. " % i + PROMPT)[1]
        check(not round or usage["prompt_tokens_details"]["cached_tokens"] > 256, "lost by a neighbour", i, usage)
        told = [line for line in server.said if "another server also uses shared" in line]
        check(len(told) == (i > 0) and all("number %d," % (i + 1) in line for line in told), "not told", i, server.said)
    for server in servers:
        server.end()
        check(not any("cannot be stored" in line or "was not restored" in line for line in server.said), server.said)
for packed in ("k4v2", "k2v2", "bitmap"):
    for round in range(2):
        server = Server("-c", "1024", "-np", "1", "--kv", packed, "--cache-dir", "packed")
        usage = ask(server)[1]
        check(not round or usage["prompt_tokens_details"]["cached_tokens"] >= n - 1, "a packed cache is not kept", packed, usage)
        server.end()
full_disk()
sys.exit(1 if client.failures else 0)
