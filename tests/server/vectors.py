# SPDX-License-Identifier: MIT
"""Vectors and scores of models that continue no text, in the forms of OpenAI, Jina and Ollama."""
import json
import sys

import client
from client import Server, check

TEXTS = [line.rstrip("\n") for line in open("texts")]
VECTORS = [json.loads(line)["embedding"] for line in open("vectors.jsonl")]
PROMPTED, BARE, BARE_PROMPTED = ([json.loads(line)["embedding"] for line in open(name + ".jsonl")]
                                 for name in ("prompted", "bare", "bare_prompted"))
SCORES = [json.loads(line) for line in open("scores.jsonl")]


def near(a, b):
    return len(a) == len(b) and all(abs(x - y) < 1e-6 for x, y in zip(a, b))


def test_vectors():
    server = Server("-m", "embed=bert-embed", "-np", "2")
    many = server.post("/v1/embeddings", {"input": TEXTS * 15})["data"]
    check(all(near(row["embedding"], VECTORS[i % len(TEXTS)]) for i, row in enumerate(many)), "vectors of many texts")
    check(many[0]["embedding"] == many[len(TEXTS)]["embedding"], "a vector depends on its place")
    cut = server.post("/v1/embeddings", {"input": TEXTS[0], "dimensions": 8})["data"][0]["embedding"]
    length = sum(x * x for x in VECTORS[0][:8]) ** 0.5
    check(near(cut, [x / length for x in VECTORS[0][:8]]), "dimensions")
    check(near(server.post("/api/embed", {"input": TEXTS})["embeddings"][1], VECTORS[1]), "/api/embed")
    check(near(server.post("/api/embeddings", {"prompt": TEXTS[1]})["embedding"], VECTORS[1]), "/api/embeddings")
    check(server.post("/api/show", {})["capabilities"] == ["embedding"], "capabilities")
    for path, body in (("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
                       ("/v1/completions", {"prompt": "a"}), ("/v1/rerank", {"query": "a", "documents": ["b"]})):
        status, text = server.ask("POST", path, body)
        check(400 <= status < 600 and b"message" in text, path, status, text)
    check(near(server.post("/v1/embeddings", {"input": TEXTS[0]})["data"][0]["embedding"], VECTORS[0]), "after refusals")
    server.end()


def vectors_of(server, **fields):
    return [row["embedding"] for row in server.post("/v1/embeddings", {"input": TEXTS, **fields})["data"]]


def test_prompts():
    server = Server("-m", "embed=bert-embed")
    check(all(map(near, vectors_of(server, prompt_name="query"), PROMPTED)), "a named prompt")
    check(all(map(near, vectors_of(server, prompt_name="document"), VECTORS)), "an empty prompt")
    done = server.post("/api/embed", {"input": TEXTS, "prompt_name": "query"})
    check(near(done["embeddings"][2], PROMPTED[2]), "Ollama's")
    for bad, what in ({"prompt_name": "absent"}, "no prompt of this name"), ({"prompt_name": 3}, "prompt_name"), (
            {"prompt_name": "query", "input": [5, 6]}, "not before token ids"):
        said = server.post("/v1/embeddings", {"input": TEXTS, **bad}, 400)["error"]["message"]
        check(what in said, bad, said)
    server.end()
    check(not any(map(near, BARE, BARE_PROMPTED)), "the prompt changes nothing")
    server = Server("-m", "embed=bare-embed")
    check(all(map(near, vectors_of(server), BARE)), "include_prompt false without a prompt")
    check(all(map(near, vectors_of(server, prompt_name="query"), BARE_PROMPTED)), "include_prompt false")
    server.end()


def test_scores():
    server = Server("-m", "rank=bert-rerank")
    body = {"query": "how to cook rice", "documents": TEXTS}
    done = server.post("/v1/rerank", body)
    wanted = [(row["index"], row["relevance_score"]) for row in SCORES]
    found = [(row["index"], row["relevance_score"]) for row in done["results"]]
    check([i for i, _ in found] == [i for i, _ in wanted] and near([s for _, s in found], [s for _, s in wanted]), done)
    check(done["object"] == "list" and done["usage"]["prompt_tokens"] == done["usage"]["total_tokens"] > 0, done)
    best = server.post("/rerank", {**body, "top_n": 1, "return_documents": True})["results"]
    check(len(best) == 1 and best[0]["document"]["text"] == TEXTS[best[0]["index"]], best)
    same = server.post("/reranking", {**body, "documents": [{"text": text} for text in TEXTS]})["results"]
    check(same == done["results"], "documents as objects", same)
    bare = server.post("/v1/rerank", {"query": body["query"], "texts": TEXTS, "return_text": True})
    check([(row["index"], row["score"]) for row in bare] == found and bare[0]["text"] == TEXTS[bare[0]["index"]], bare)
    long = server.post("/v1/rerank", {"query": "a", "documents": ["word " * 500]})
    check(len(long["results"]) == 1, "a document that is cut", long)
    for bad in ({}, {"query": "a"}, {"documents": TEXTS}, {**body, "documents": []}, {**body, "documents": [1]},
                {**body, "query": 3}, {**body, "top_n": 0}, {**body, "top_n": "x"}, {**body, "documents": ["a"] * 3000},
                {**body, "documents": {"a": 1}}):
        check("message" in server.post("/v1/rerank", bad, 400)["error"], str(bad)[:80])
    said = server.post("/v1/rerank", {"query": "word " * 5000, "documents": ["a"] * 40}, 400)["error"]
    check(said["param"] == "query" and "more tokens than the context" in said["message"], said)
    server.post("/v1/embeddings", {"input": "a"}, 400)
    server.end()
    server = Server("-m", "rank=bert-rerank", "--request-memory", "16")
    said = server.post("/v1/rerank", {"query": "a", "documents": ["b" * (1 << 20)]}, 413)["error"]
    check("message" in said, said)
    server.end()


test_vectors()
test_prompts()
test_scores()
sys.exit(1 if client.failures else 0)
