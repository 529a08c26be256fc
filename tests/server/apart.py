# SPDX-License-Identifier: MIT
"""One request never harms another: an answer whose logits are not finite ends alone, whatever is stepped with it."""
import json
import sys
import threading

import client
from client import Server, check


def test_wild_adapter():
    """An adapter that overflows, beside answers that must be what they are without it."""
    server = Server("-m", "one=one.ndf", "--adapter", "wild=wild.ndf", "-c", "256", "-np", "4")
    bodies = [{"prompt": "the land", "max_tokens": 200, "seed": i, "ignore_eos": True, "temperature": 1}
              for i in range(3)]
    alone = [server.post("/v1/completions", body)["choices"][0]["text"] for body in bodies]
    together = [None] * 3
    over = threading.Event()

    def one(i):
        together[i] = server.ask("POST", "/v1/completions", bodies[i])

    def poison():
        while not over.is_set():
            error = server.post("/v1/completions", {"prompt": "the", "max_tokens": 5, "model": "wild"}, 500)["error"]
            check("not finite" in error["message"] and "/" not in error["message"], "a wild adapter", error)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(3)]
    wild = threading.Thread(target=poison)
    wild.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    over.set()
    wild.join()
    for i in range(3):
        status, text = together[i]
        check(status == 200, "a neighbour failed", text)
        check(status == 200 and json.loads(text)["choices"][0]["text"] == alone[i], "a neighbour changed", i)
    check(server.text() == server.text(), "after it")
    server.end()


test_wild_adapter()
sys.exit(1 if client.failures else 0)
