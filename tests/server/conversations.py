# SPDX-License-Identifier: MIT
"""Conversations that are named by a header find the slot that holds them, though others begin as they do."""
import json
import os
import sys

import client
from client import Server, check

SHARED = "the land and the ice and the sea and the sun " * 6


def turn(server, name, text, header="x-session-id", key=None):
    """(tokens of the prompt, those from the cache)"""
    headers = {header: name} if name else {}
    if key:
        headers["Authorization"] = "Bearer " + key
    body = {"prompt": text, "max_tokens": 4, "temperature": 0, "ignore_eos": True}
    status, reply = server.ask("POST", "/v1/completions", body, headers)
    check(status == 200, status, reply[:200])
    usage = json.loads(reply)["usage"]
    return usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


def test_named(header):
    server = Server("-np", "2", "-c", "512", "-m", "tales")
    texts = {"one": SHARED + "a cat" * 20, "two": SHARED + "a dog" * 20}
    for name, text in texts.items():
        turn(server, name, text, header)
    for _ in range(2):  # by turns: each finds its own again, not what both begin with
        for name in texts:
            texts[name] += " again"
            n, cached = turn(server, name, texts[name], header)
            check(n - cached < 12, header, name, n, cached)
    # A third takes the slot that was used longest ago, and the other conversation is still there.
    turn(server, "three", SHARED + "a fish" * 20, header)
    n, cached = turn(server, "two", texts["two"] + " again", header)
    check(n - cached < 12, header, "two, beside a third", n, cached)
    # The answers are what they are without a name.
    named = json.loads(server.ask("POST", "/v1/completions", {"prompt": SHARED, "max_tokens": 12, "temperature": 0}, {header: "x"})[1])
    check(named["choices"][0]["text"] == server.text(SHARED, 12), named)
    server.end()


def test_keys():
    """The same name of two keys is two conversations: neither takes the other's slot."""
    server = Server("-np", "2", "-c", "512", "-m", "tales", "--api-key", "anna,ben")
    texts = {"anna": "a cat " * 40, "ben": "the sea " * 40}
    for key, text in texts.items():
        turn(server, "default", text, key=key)
    for key, text in texts.items():
        n, cached = turn(server, "default", text + "again", key=key)
        check(n - cached < 12, key, n, cached)
    server.end()


def test_slots():
    server = Server("-np", "3", "-c", "512", "-m", "tales")
    first, second = SHARED + "a cat" * 20, SHARED + "a dog" * 20
    for text, slot in ((first, 2), (second, 0)):
        server.post("/completion", {"prompt": text, "n_predict": 2, "id_slot": slot})
    again = server.post("/completion", {"prompt": first + " again", "n_predict": 2, "id_slot": 2})
    check(again["tokens_evaluated"] - again["tokens_cached"] < 12, again["tokens_evaluated"], again["tokens_cached"])
    server.post("/completion", {"prompt": "a", "n_predict": 1, "id_slot": -2}, 400)
    server.end()


def test_files():
    """A slot saved, erased and restored; files stay within --cache-dir."""
    server = Server("-np", "2", "-c", "512", "-m", "tales", "--cache-dir", "slots")
    text = SHARED + "a cat" * 20

    def cached(slot):
        return server.post("/completion", {"prompt": text + " again", "n_predict": 2, "temperature": 0, "id_slot": slot})

    whole = server.post("/completion", {"prompt": text, "n_predict": 2, "id_slot": 0})
    saved = server.post("/slots/0?action=save", {"filename": "cat.bin"})
    check(saved["id_slot"] == 0 and saved["filename"] == "cat.bin" and 64 <= saved["n_saved"] <= whole["tokens_evaluated"] and
          saved["n_saved"] % 64 == 0, saved)
    plain = cached(0)
    status, erased = server.ask("POST", "/slots/0?action=erase")
    check(status == 200 and json.loads(erased)["n_erased"] > 64, erased)
    again = cached(0)
    check(again["tokens_cached"] <= plain["tokens_cached"] and again["content"] == plain["content"], again)
    server.ask("POST", "/slots/0?action=erase")
    back = server.post("/slots/0?action=restore", {"filename": "cat.bin"})
    check(back["n_restored"] == saved["n_saved"], back)
    again = cached(0)
    check(again["tokens_cached"] >= saved["n_saved"] and again["content"] == plain["content"], again, saved)
    for name in ("../cat.bin", "/etc/passwd", ".hidden", "", "a/b", None, 5):
        server.post("/slots/0?action=save", {"filename": name}, 400)
    os.mkdir("slots/saved-folder")
    for action, name in (("save", "folder"), ("restore", "folder")):
        why = server.post(f"/slots/0?action={action}", {"filename": name}, 500)["error"]["message"]
        check(why.startswith(name + ": ") and "slots" not in why, "a failure of the disk", why)
    os.rmdir("slots/saved-folder")
    server.post("/slots/0?action=restore", {"filename": "nobody"}, 404)
    with open("slots/saved-damaged", "w", encoding="ascii") as damaged:
        damaged.write("damaged" * 99)
    why = server.post("/slots/0?action=restore", {"filename": "damaged"}, 400)["error"]["message"]
    check(why.startswith("damaged: ") and "slots" not in why, "a reply names a folder", why)
    server.post("/slots/9?action=save", {"filename": "cat.bin"}, 400)
    server.post("/slots/x?action=erase", {}, 400)
    server.post("/slots/0?action=burn", {}, 400)
    server.end()
    bare = Server("-np", "1", "-c", "512", "-m", "tales")
    bare.post("/slots/0?action=save", {"filename": "cat.bin"}, 501)
    bare.end()


for one in ("x-session-id", "X-Claude-Code-Session-Id", "session_id"):
    test_named(one)
test_keys()
test_slots()
test_files()
sys.exit(client.failures > 0)
