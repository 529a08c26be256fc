# SPDX-License-Identifier: MIT
"""The store of pulled models over HTTP (see store.sh)."""
import http.client
import json
import os
import sys

import client
from client import Server, check

KEY = {"Authorization": "Bearer secret"}


def ask(server, method, path, body=None, key=KEY):
    status, text = server.ask(method, path, body, key)
    lines = [json.loads(line) for line in text.decode().split("\n") if line]
    return status, lines


def answer(server, model):
    return ask(server, "POST", "/api/generate", {"model": model, "prompt": "the land", "stream": False, "options": {"num_predict": 4, "temperature": 0}})


check("needs a key" in client.refused("--allow-pull", "-c", "128"), "a store without a key")
plain = Server("-c", "128", "--api-key", "secret")
for method, path in (("POST", "/api/pull"), ("POST", "/api/copy"), ("POST", "/api/create"), ("DELETE", "/api/delete")):
    check(ask(plain, method, path, {"model": "x", "source": "x", "destination": "y", "from": "x"})[0] == 403, path, "without --allow-pull")
check(ask(plain, "POST", "/api/delete", {})[0] == 405 and ask(plain, "GET", "/api/pull")[0] == 405, "other methods")

with open("keys", "w") as keys:
    keys.write("secret\nlimited x tales\n")
server = Server("-c", "128", "--keys", "keys", "--allow-pull")
own = ask(server, "GET", "/api/tags")[1][0]["models"][0]["name"]
check(ask(server, "POST", "/api/pull", {"model": "owner/tiny-GGUF:f32"}, {})[0] == 401, "pull without a key")
check(ask(server, "POST", "/api/pull", {"model": "owner/tiny-GGUF:f32"}, {"X-Api-Key": "limited"})[0] == 403, "pull with a limited key")
check(answer(server, "owner/tiny-GGUF:f32")[0] == 404, "a model that is not here")
# Pulled with progress, and served by its name.
status, lines = ask(server, "POST", "/api/pull", {"model": "owner/tiny-GGUF:f32"})
check(status == 200 and lines[0] == {"status": "pulling manifest"} and lines[-1] == {"status": "success"}, status, lines)
told = [line for line in lines if "total" in line]
check(told and told[-1]["completed"] == told[-1]["total"] == os.path.getsize("files/tiny-f32.gguf"), told)
status, first = answer(server, "owner/tiny-GGUF:f32")
check(status == 200 and first[0]["eval_count"] == 4, first)
check([m["name"] for m in ask(server, "GET", "/api/tags")[1][0]["models"]] == [own, "owner/tiny-GGUF:f32"], "the list")
check(ask(server, "POST", "/api/pull", {"name": "owner/tiny-GGUF:f32", "stream": False}) == (200, [{"status": "success"}]), "again")
for name, said in (("owner/nothing", "owner/nothing"), ("owner/tiny-GGUF", "other-q8_0.gguf"), ("../x", "x")):
    status, lines = ask(server, "POST", "/api/pull", {"model": name, "stream": False})
    check(status in (400, 404) and said in lines[0]["error"], name, lines)
check(ask(server, "POST", "/api/pull", {})[0] == 400, "no name")
# A second name for it, which also `whit` knows; a name that is taken, or is none, is refused.
check(ask(server, "POST", "/api/copy", {"source": "owner/tiny-GGUF:f32", "destination": "mine"})[0] == 200, "copy")
check(answer(server, "mine")[1][0]["response"] == first[0]["response"], "the copy's answer")
check(answer(server, "mine:latest")[0] == 200, "Ollama's :latest")
check(ask(server, "POST", "/api/create", {"model": "yours", "from": "mine", "stream": False}) == (200, [{"status": "success"}]), "create")
check(answer(server, "yours")[1][0]["response"] == first[0]["response"], "the made one's answer")
for path, body in (("/api/copy", {"source": "mine", "destination": "yours"}), ("/api/copy", {"source": "mine", "destination": "a b"}),
                   ("/api/copy", {"source": "mine", "destination": "../a"}), ("/api/create", {"model": "z", "from": "mine", "system": "Be brief."}),
                   ("/api/create", {"model": "z"})):
    check(ask(server, "POST", path, body)[0] == 400, path, body)
check(ask(server, "POST", "/api/copy", {"source": "absent", "destination": "z"})[0] == 404, "a copy of nothing")
# Deleted: gone for the server and from the disk; the copies stay. One that the server was started with stays, too.
check(ask(server, "DELETE", "/api/delete", {"model": "owner/tiny-GGUF"})[0] == 200, "delete")
check(answer(server, "owner/tiny-GGUF:f32")[0] == 404 and answer(server, "mine")[0] == 200, "after the removal")
check("owner/tiny-GGUF:f32" not in [m["name"] for m in ask(server, "GET", "/api/tags")[1][0]["models"]], "a removed model is listed")
check(ask(server, "DELETE", "/api/delete", {"model": "yours"})[0] == 200 and answer(server, "yours")[0] == 404, "the made one is gone")
check(ask(server, "DELETE", "/api/delete", {"model": "yours"})[0] == 404, "delete again")
# A name that was deleted and made again is one model in the metrics: Prometheus refuses a series that occurs twice.
check(ask(server, "POST", "/api/create", {"model": "yours", "from": "mine", "stream": False})[0] == 200 and answer(server, "yours")[0] == 200, "made again")
series = [line.rsplit(" ", 1)[0] for line in server.ask("GET", "/metrics", None, KEY)[1].decode().split("\n") if line and line[0] != "#"]
check(any('"yours"' in one for one in series) and len(series) == len(set(series)), "metrics after a model was made again")
check(ask(server, "DELETE", "/api/delete", {"model": "yours"})[0] == 200, "deleted again")
check(ask(server, "DELETE", "/api/delete", {"model": own})[0] == 400, "its own model")
check(sorted(name for name in os.listdir("cache/whit/hub") if not name.startswith(".")) == ["mine"], os.listdir("cache/whit/hub"))
# A client that leaves stops its download; meanwhile another change waits its turn, and answers go on.
connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
connection.request("POST", "/api/pull", json.dumps({"model": "owner/tiny-GGUF:large"}), KEY)
reply = connection.getresponse()
reply.readline()
check(ask(server, "POST", "/api/copy", {"source": "mine", "destination": "other"})[0] == 503, "two at once")
check(answer(server, "mine")[0] == 200, "an answer beside a download")
reply.close()
connection.close()
status, deadline = 503, client.time.time() + 120
while status == 503 and client.time.time() < deadline:
    client.time.sleep(0.05)
    status = ask(server, "POST", "/api/copy", {"source": "mine", "destination": "other"})[0]
check(status == 200, "after a client left", status)
check(not os.path.exists("cache/whit/hub/owner--tiny-GGUF/large.gguf"), "a stopped download is complete")
server.process.terminate()
check(server.process.wait(timeout=60) == 0, "the server ends with its helper")
again = Server("-c", "128", "--keys", "keys", "--allow-pull")
check(answer(again, "other")[1][0]["response"] == first[0]["response"], "after a restart")
again.end()
# A model that the server was started with stays under each of its names.
with open("keys", "w") as keys:
    keys.write("secret\n")
named = Server("-c", "128", "-m", "own=mine", "--keys", "keys", "--allow-pull")
for name in ("own", "mine", "mine@main", "mine:latest", os.environ["HF_ENDPOINT"] + "/mine", "mine:tiny-f32.gguf", "mine:f32"):
    status, lines = ask(named, "DELETE", "/api/delete", {"model": name})
    check(status in (400, 404) and os.path.exists("cache/whit/hub/mine/tiny-f32.gguf"), "deleted as", name, status, lines)
check(ask(named, "DELETE", "/api/delete", {"model": "other"})[0] == 200, "a copy of it")
sys.exit(client.failures > 0)
