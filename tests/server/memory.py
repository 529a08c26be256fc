# SPDX-License-Identifier: MIT
"""Memory that requests take: large replies are sent while they are made, answers of a request share a grammar, and what
would take more than --request-memory is refused."""
import json
import os
import random
import socket
import sys
import time

import client
from client import Server, check, refused

SANITIZED = bool(os.environ.get("SANITIZED"))  # whose memory says nothing


def megabytes(server, key="VmHWM"):
    with open("/proc/%d/status" % server.process.pid, encoding="ascii") as status:
        return int(next(line for line in status if line.startswith(key)).split()[1]) / 1024


def test_large_replies(server):
    """Pieces of a long text, vectors of many: sent in chunks, right to the last."""
    rng = random.Random(1)
    text = "".join(rng.choice("qxzjkv") for _ in range(400000))
    before = megabytes(server)
    pieces = server.post("/tokenize", {"content": text, "with_pieces": True})["tokens"]
    grown = megabytes(server) - before
    check("".join(piece["piece"] for piece in pieces).strip() == text, "pieces are not the text")
    check(SANITIZED or grown < 40, "pieces of 400 kB took", grown, "MB")
    ids = [piece["id"] for piece in pieces]
    check(server.post("/tokenize", {"content": text})["tokens"] == ids, "tokens are not those of pieces")
    check(server.post("/detokenize", {"tokens": ids})["content"].strip() == text, "tokens are not the text")
    check(server.post("/detokenize", {"tokens": []})["content"] == "" and server.post("/tokenize", {"content": ""})["tokens"] == [],
          "nothing")
    few = server.post("/v1/embeddings", {"input": ["a", "b"]})
    many = server.post("/v1/embeddings", {"input": ["a", "b"] * 200})
    check([one["embedding"] for one in many["data"]] == [few["data"][i % 2]["embedding"] for i in range(400)] and
          [one["index"] for one in many["data"]] == list(range(400)), "vectors of many")
    check(many["usage"]["prompt_tokens"] == 200 * few["usage"]["prompt_tokens"] and few["object"] == "list", few["usage"])
    check(server.post("/api/embed", {"input": ["a", "b"]})["embeddings"] == [one["embedding"] for one in few["data"]] and
          server.post("/api/embeddings", {"prompt": "a"})["embedding"] == few["data"][0]["embedding"], "Ollama's vectors")


def test_long_logs(server):
    """Log-probabilities of a long prompt, whole and streamed, are the same."""
    body = {"prompt": "the little dog was happy and sad " * 40, "max_tokens": 100, "echo": True, "logprobs": 5, "temperature": 0,
            "ignore_eos": True}
    whole = server.post("/v1/completions", body)["choices"][0]
    lines = server.ask("POST", "/v1/completions", {**body, "stream": True})[1].decode().split("\n\n")
    pieces = [json.loads(line[6:])["choices"][0] for line in lines if line.startswith("data: {")]
    check(len(whole["logprobs"]["tokens"]) > 300, len(whole["logprobs"]["tokens"]))
    check("".join(piece["text"] for piece in pieces) == whole["text"], "the text")
    for key in whole["logprobs"]:
        check([x for piece in pieces for x in (piece["logprobs"] or {key: []})[key]] == whole["logprobs"][key], key)


def test_shared_grammar():
    """A schema is compiled once for all answers of a request; each is held to it."""
    rng = random.Random(2)
    words = ["".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(18)) for _ in range(20000)]
    grown = []
    for n in (1, 32):
        server = Server("-c", "256", "-np", "4")
        before = megabytes(server)
        choices = server.post("/v1/completions", {"prompt": ["a"] * n, "max_tokens": 40, "json_schema": {"enum": words}})["choices"]
        grown.append(megabytes(server) - before)
        check(len(choices) == n and all(json.loads(one["text"]) in words for one in choices), "an answer outside the enum", choices)
        server.end()
    check(SANITIZED or grown[1] < grown[0] + 30, "a grammar for each answer", grown)


def open_body(server, n_all, n_sent):
    """A connection in the middle of its body."""
    s = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % n_all + b" " * n_sent)
    return s


def test_budget():
    """A quarter of --request-memory for a request, all of it for all together."""
    server = Server("-c", "256", "-np", "2", "--request-memory", "32")
    small = {"prompt": "a", "max_tokens": 1}
    error = server.post("/v1/completions", {**small, "x": "y" * (9 << 20)}, 413)["error"]
    check("--request-memory" in error["message"], error)
    check(server.post("/v1/messages", {**small, "x": "y" * (9 << 20)}, 413)["error"]["type"] == "request_too_large", "413")
    server.post("/tokenize", {"content": "y" * (3 << 20)}, 413)  # four bytes for a token, and there may be as many
    program = {"prompt": ["a"] * 2, "max_tokens": 1, "program": "logits = logits + 1.0"}
    server.post("/v1/completions", program, 413)
    server.post("/v1/completions", small)
    held = [open_body(server, 8 << 20, 7 << 20) for _ in range(4)]
    deadline = time.time() + 60
    status = 200
    while status == 200 and time.time() < deadline:  # until what they sent has arrived
        connection = client.http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("POST", "/v1/completions", json.dumps({**small, "x": "y" * (3 << 20)}))
        reply = connection.getresponse()
        status, retry, text = reply.status, reply.headers["Retry-After"], reply.read()
        connection.close()
    check(status == 503 and retry == "1" and b"--request-memory" in text, status, retry, text)
    server.post("/v1/completions", small)
    for s in held:
        s.close()
    while server.ask("POST", "/v1/completions", {**small, "x": "y" * (3 << 20)})[0] != 200 and time.time() < deadline:
        time.sleep(0.05)
    server.post("/v1/completions", {**small, "x": "y" * (3 << 20)})  # all of it was given back
    server.end()


common = Server("-c", "1024")
test_large_replies(common)
test_long_logs(common)
common.end()
test_shared_grammar()
test_budget()
if not SANITIZED:  # slots that no machine can hold: what they cost, and what to change
    said = refused("-np", "256", "-c", "20000000")
    check("256 slots (-np) of 20000000 tokens (-c) take" in said and "MB each, and" in said and "MB are free: " in said, said)
sys.exit(1 if client.failures else 0)
