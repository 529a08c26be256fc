# SPDX-License-Identifier: MIT
"""Several models in one server: opened at first use, closed beyond --max-memory, replaced on SIGHUP, as key files are;
adapters with a strength of each request."""
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import client
from client import Server, check, refused

TALES = os.environ["SOURCE"] + "/tools/tales/tales.ndf"


def run_alone(model, *more):
    command = os.environ["WHIT"].split() + ["run", "-m", model, "--raw", "-p", "the land", "--temp", "0", "-n", "24", *more]
    whole = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
    return whole.rstrip("\n")


def test_swapping():
    server = Server("-m", "one=one.ndf", "-m", "two=two.gguf", "-c", "256")
    models = {m["id"]: m["meta"] for m in server.get("/v1/models")["data"]}
    check(sorted(models) == ["one", "two"] and models["one"]["is_open"] and not models["two"]["is_open"], models)
    page = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    check(server.ask("GET", "/props?model=two", headers=page)[0] == 403, "an image of another site opens a model")
    check(not server.get("/v1/models")["data"][1]["meta"]["is_open"], "an image of another site opened a model")
    one, two = server.text(model="one"), server.text(model="two:latest")
    check(one != two and server.text() == one and server.text(model="one") == one, one, two)
    check(run_alone("one.ndf").endswith(one) and run_alone("two.gguf").endswith(two), "another text than alone", one, two)
    check(server.post("/v1/completions", {"model": "none", "prompt": "a"}, 404)["error"]["param"] == "model", "404")
    for path, body in (("/api/generate", {"model": "two", "prompt": "the land", "stream": False, "raw": True,
                                          "options": {"temperature": 0, "num_predict": 24}}),):
        check(server.post(path, body)["response"] == two, "Ollama's API asks another model")
    check([m["name"] for m in server.get("/api/tags")["models"]] == ["one", "two"], "/api/tags")
    written = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(os.stat("one.ndf").st_mtime))
    for listed in (server.get("/api/tags")["models"][0], server.post("/api/show", {"model": "one"})):
        check(listed["modified_at"].startswith(written), "modified_at", listed["modified_at"], written)
    check(server.get("/props?model=two")["model_path"] == "two", "/props?model=")
    page = server.ask("GET", "/metrics")[1].decode()
    for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"):
        check(f'\nvllm:{name}{{model_name="two"}} ' in page and f"# TYPE vllm:{name} gauge" in page, name)
    server.end()
    # Both do not fit: one is closed when the other is wanted, again and again, also under load.
    limit = max(m["n_bytes"] for m in models.values()) // (1 << 20) + 1
    check(sum(m["n_bytes"] for m in models.values()) > limit << 20, "the limit does not bite", models, limit)
    server = Server("-m", "one=one.ndf", "-m", "two=two.gguf", "-c", "256", "--max-memory", str(limit))
    for i in range(6):
        name = ["one", "two"][i % 2]
        check(server.text(model=name) == {"one": one, "two": two}[name], "after a swap: another text", name)
        is_open = {m["id"]: m["meta"]["is_open"] for m in server.get("/v1/models")["data"]}
        check(is_open == {"one": name == "one", "two": name == "two"}, is_open)
    counts = {200: 0, 503: 0}

    def load(name):
        for _ in range(30):
            status, text = server.ask("POST", "/v1/completions", {"model": name, "prompt": "the land", "max_tokens": 24,
                                                                  "temperature": 0})
            counts[status] += 1
            check(status == 503 or json.loads(text)["choices"][0]["text"] == {"one": one, "two": two}[name], name)
    # Counters go on where a model was closed.
    for name in ("one", "two"):
        check(server.metric("requests_total", name) == 3 and server.metric("tokens_predicted_total", name) == 72, name)
        check(server.metric("slots", name) == (4 if name == "two" else 0), "slots of", name)
    threads = [threading.Thread(target=load, args=(name,)) for name in ("one", "two", "one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(counts[200] > 0, counts)
    # A closed model whose file is new stays closed.
    server.text(model="one")
    os.utime("two.gguf")
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_line("two was replaced by the new version of its file")
    check(server.metric("slots", "two") == 0 and server.text(model="two") == two, "a new file of a closed model")
    server.end()
    check("max-memory" in refused("-m", "one.ndf", "--max-memory", "1", "-c", "256", "-np", "64"), "--max-memory")
    check("two models" in refused("-m", "one.ndf", "-m", "one.ndf"), "two of one name")
    check("nowhere" in refused("-m", "one.ndf", "-m", "nowhere.ndf"), "a model that is not there")
    # No reply could name it.
    for arguments in (["-m", b"\xff.ndf"], ["-m", b"\xff=one.ndf"], ["-m", "one.ndf", "-m", b"\xff.ndf"],
                      ["-m", "one.ndf", "--alias", b"\xff"], ["-m", "one.ndf", "--adapter", b"\xff.ndf"]):
        check("name is not UTF-8" in refused(*arguments), arguments)


def test_adapters():
    server = Server("-m", "one=one.ndf", "--adapter", "verse=verse.ndf", "-c", "256")
    plain, verse = server.text(), server.text(model="verse")
    check(plain != verse and server.text(adapters={"verse": 0}) == plain, plain, verse)
    check(server.text(adapters={"verse": 1}) == verse == server.text(lora=[{"id": 0, "scale": 1}]), verse)
    plain = server.text()
    listed = server.get("/lora-adapters")
    check(listed[0]["id"] == 0 and listed[0]["name"] == "verse" and listed[0]["scale"] == 0, listed)
    server.post("/lora-adapters", [{"id": 0, "scale": 1}])
    check(server.get("/lora-adapters")[0]["scale"] == 1 and server.text() == verse and server.text(lora=[]) == plain != verse,
          "an adapter that is on by itself")
    server.post("/v1/embeddings", {"input": "a"})
    server.post("/v1/embeddings", {"input": "a", "adapters": None, "lora": None})
    server.post("/v1/embeddings", {"input": "a", "adapters": {"verse": 1}}, 400)
    for wrong in ([{"id": 7, "scale": 1}], [{"id": 0, "scale": 17}], [{"id": 0}], [1]):
        server.post("/lora-adapters", wrong, 400)
    server.post("/lora-adapters", {"id": 0, "scale": 1}, 400)
    server.post("/lora-adapters", [])
    check(server.text() == plain, "an adapter that was switched off")
    check(run_alone("one.ndf", "--adapter", "verse.ndf").endswith(verse), "another text than alone", verse)
    check(run_alone("one.ndf", "--adapter", "verse.ndf:-0.5").endswith(server.text(adapters={"verse": -0.5})), "-0.5")
    check([m["id"] for m in server.get("/v1/models")["data"]] == ["one", "verse"], "/v1/models")
    for wrong in ({"adapters": {"nobody": 1}}, {"adapters": {"verse": "much"}}, {"adapters": {"verse": 17}},
                  {"adapters": ["verse"]}, {"lora": [{"id": 1}]}):
        server.post("/v1/completions", {"prompt": "a", "max_tokens": 1, **wrong}, 400)
    server.end()
    # A key's list names adapters, too: without its name there an adapter is not for the key.
    with open("keys", "w", encoding="ascii") as keys:
        keys.write("plain - one\nboth - one,verse\nverse - verse\nall\n")
    server = Server("-m", "one=one.ndf", "--adapter", "verse=verse.ndf", "-c", "256", "--keys", "keys")
    for wanted in ({"model": "verse"}, {"adapters": {"verse": 1}}, {"lora": [{"id": 0, "scale": 1}]}):
        for key, expected in (("plain", 403), ("both", 200)):
            body = {"prompt": "a", "max_tokens": 1, **wanted}
            check(server.ask("POST", "/v1/completions", body, {"X-Api-Key": key})[0] == expected, key, wanted)
    for key, n in (("plain", 0), ("both", 1)):
        check(len(json.loads(server.ask("GET", "/lora-adapters", headers={"X-Api-Key": key})[1])) == n, "adapters of", key)
    # Neither does it get one that is set for all, nor does an adapter's name close its model.
    check(server.ask("POST", "/lora-adapters", [{"id": 0, "scale": 1}], {"X-Api-Key": "all"})[0] == 200, "for all")
    body = {"prompt": "the land", "max_tokens": 24, "temperature": 0}
    for key, text in (("plain", plain), ("both", verse), ("all", verse)):
        got = json.loads(server.ask("POST", "/v1/completions", body, {"X-Api-Key": key})[1])["choices"][0]["text"]
        check(got == text, "with an adapter for all", key, got)
    for path in ("/models/load", "/models/unload"):
        check(server.ask("POST", path, {"model": "verse"}, {"X-Api-Key": "verse"})[0] == 403, path, "by an adapter's name")
    server.end()
    server = Server("-m", "one=one.ndf", "--adapter", "verse=verse.ndf", "-c", "256")
    # Vectors are the model's alone, and those of an adapter are refused.
    for path, key in (("/v1/embeddings", "input"), ("/api/embed", "input"), ("/api/embeddings", "prompt")):
        vectors = server.post(path, {key: "the land"})
        for same in ({"model": "one"}, {"adapters": {"verse": 0}}, {"adapters": {}}):
            got = server.post(path, {key: "the land", **same})
            check({**got, "total_duration": 0} == {**vectors, "total_duration": 0}, path, same)
        for wrong in ({"model": "verse"}, {"adapters": {"verse": 1}}, {"adapters": {"nobody": 1}},
                      {"lora": [{"id": 0, "scale": 1}]}):
            check("adapter" in str(server.post(path, {key: "the land", **wrong}, 400)["error"]), path, wrong)
    # Together, each as alone: what one has computed with an adapter is never another's beginning.
    rng = random.Random(3)
    asked = [{"prompt": "the land and the ice " * rng.randrange(1, 12), "n": 16,
              "adapters": rng.choice([{}, {"verse": 1}, {"verse": 0.5}, {"verse": -2}])} for _ in range(48)]
    alone = [server.text(**one) for one in asked]
    together = [None] * len(asked)

    def one(i):
        time.sleep(rng.random() * 0.2)
        together[i] = server.text(**asked[i])
    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(asked))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(alone == together and len(set(alone)) > 8, [(a, b, c) for a, b, c in zip(asked, alone, together) if b != c][:2])
    server.end()
    check("verse.ndf" in refused("-m", "two.gguf", "--adapter", "verse=verse.ndf"), "an adapter of another model")
    check("is called verse" in refused("-m", "verse=one.ndf", "--adapter", "verse=verse.ndf"), "two of one name")
    # Its name is that of the model that takes it, whichever it is, also with Ollama's ending.
    server = Server("-m", "two=two.gguf", "-m", "one=one.ndf", "--adapter", "verse=verse.ndf", "-c", "256")
    check(server.text(model="verse") == verse == server.text(model="verse:latest"), "not the adapter's model")
    check(server.text(model="one") == plain != verse, "the model alone")
    asked = {"prompt": "the land", "raw": True, "stream": False, "options": {"num_predict": 24, "temperature": 0}}
    for fields, text in (({"model": "verse"}, verse), ({"model": "one"}, plain),
                         ({"model": "one", "adapters": {"verse": 1}}, verse)):
        check(server.post("/api/generate", {**asked, **fields})["response"] == text, "Ollama's clients", fields)
    server.post("/v1/completions", {"model": "two", "prompt": "a", "max_tokens": 1, "adapters": {"verse": 1}}, 400)
    server.end()


def test_adapters_by_name():
    server = Server("-m", "one=talks.ndf", "--adapter", "verse=talking.ndf", "-c", "256")
    # Every API selects the adapter by its name: in a member, an older member, or the path.
    talk, greedy = [{"role": "user", "content": "the land"}], {"temperature": 0, "num_predict": 24}
    chats = {name: server.post("/v1/chat/completions", {"model": name, "messages": talk, "temperature": 0, "max_tokens": 24})
             ["choices"][0]["message"]["content"] for name in ("one", "verse")}
    check(chats["one"] != chats["verse"], chats)
    contents = {"contents": [{"parts": [{"text": "the land"}]}], "generationConfig": {"temperature": 0, "maxOutputTokens": 24}}
    for name in ("one", "verse"):
        said = server.post(f"/v1beta/models/{name}:generateContent", contents)
        check(said["candidates"][0]["content"]["parts"][0]["text"] == chats[name], "Gemini's API answers without the adapter", name)
        for member in ("model", "name"):
            said = server.post("/api/chat", {member: name, "messages": talk, "stream": False, "options": greedy})
            check(said["message"]["content"] == chats[name], "Ollama's API answers without the adapter", member, name)
    one = {"content": {"parts": [{"text": "a"}]}}
    server.post("/v1beta/models/verse:embedContent", one, 400)
    server.post("/v1beta/models/one:embedContent", {**one, "model": "models/one"})
    server.post("/v1beta/models/one:batchEmbedContents", {"requests": [{**one, "model": "one"}, one]})
    # The path decides: proxies that rename models leave the names in a body as they were.
    server.post("/v1beta/models/one:embedContent", {**one, "model": "models/verse"})
    server.post("/v1beta/models/one:batchEmbedContents", {"requests": [one, {**one, "model": "models/verse"}]})
    server.post("/v1beta/models/one:countTokens", {"generateContentRequest": {**contents, "model": "models/two"}})
    said = server.post("/v1beta/models/one:generateContent", {**contents, "model": "models/verse"})
    check(said["candidates"][0]["content"]["parts"][0]["text"] == chats["one"], "the adapter of the body", said)
    server.end()


def test_session_options():
    """What run takes, serve takes."""
    for act in ("i8", "f32", "q2"):
        server = Server("-m", "signs.ndf", "--act", act, "-ub", "7", "--exact-head", "-c", "256")
        check(run_alone("signs.ndf", "--act", act).endswith(server.text()), "another text than run has", act)
        server.end()
    texts = {run_alone("signs.ndf", "--act", act) for act in ("i8", "f32", "q2")}
    check(len(texts) > 1, "the model does not tell activations apart")
    server = Server("-m", "one.ndf", "-c", "256")
    again = {"logit_bias": {"70": 50}}  # and again
    free, dry = server.text(**again), {**again, "dry_multiplier": 50}
    check(server.text(**dry) != free, "DRY is ignored")
    check(server.text(**dry, dry_allowed_length=200) == free, "dry_allowed_length is ignored")
    check(server.text(**dry, dry_penalty_last_n=0) == free, "dry_penalty_last_n is ignored")
    check(server.text(temperature=1, seed=1, mirostat=2, mirostat_tau=0.01) != server.text(temperature=1, seed=1),
          "mirostat is ignored")
    for breakers in (["\n", ":", "\"", "*"], ["*", "\"", ":", "\n"], None):
        check(server.text(**dry, dry_sequence_breakers=breakers) == server.text(**dry), "DRY's own breakers", breakers)
    for breakers in ([], ["\n", ":", "*"], ["\n", ":", "\"", "*", "x"], ["\n", ":", "\"", "*."], "\n:\"*", ["\n", ":", 1, "*"]):
        server.post("/v1/completions", {"prompt": "a", "max_tokens": 1, **dry, "dry_sequence_breakers": breakers}, 400)
    check(server.text(**again, dry_sequence_breakers=["x"]) == free, "breakers without DRY")
    for wrong in ({"dry_allowed_length": -1}, {"dry_penalty_last_n": 0.5}, {"mirostat": 3}, {"mirostat_tau": "x"}):
        server.post("/v1/completions", {"prompt": "a", "max_tokens": 1, **wrong}, 400)
    server.end()


def stream_slowly(server, into):
    """An answer that takes a while."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    connection.request("POST", "/v1/completions", json.dumps({"prompt": "Once", "max_tokens": 3000, "temperature": 0,
                                                              "ignore_eos": True, "stream": True}))
    text = connection.getresponse().read().decode()
    into.append(text.endswith("[DONE]\n\n"))
    into.append("".join(json.loads(line[6:])["choices"][0]["text"] for line in text.split("\n\n")[:-2]))


def test_replaced():
    shutil.copy(TALES, "served.ndf")
    server = Server("-m", "served.ndf", "-c", "3200")
    before, whole = server.text("Once upon a time"), []
    stream_slowly(server, whole)
    answers, deadline = [], time.time() + 120
    thread = threading.Thread(target=stream_slowly, args=(server, answers))
    shutil.copy("one.ndf", "next.ndf")
    n_before = server.metric("requests_total")
    thread.start()
    while server.metric("requests_total") == n_before and time.time() < deadline:
        time.sleep(0.005)
    os.replace("next.ndf", "served.ndf")
    server.process.send_signal(signal.SIGHUP)
    while server.text("Once upon a time") == before and time.time() < deadline:
        time.sleep(0.02)
    check(run_alone("one.ndf").endswith(server.text()), "the new file is not served")
    thread.join()
    check(answers == whole, "a request in flight is lost, or changes its model", len(answers))
    # What is no model changes nothing.
    with open("next.ndf", "w", encoding="ascii") as out:
        out.write("nothing" * 100)
    os.replace("next.ndf", "served.ndf")
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_line("is unchanged")
    check(run_alone("one.ndf").endswith(server.text()), "a damaged file is taken", server.said)
    server.end()


def test_new_keys():
    """SIGHUP reads key files again, in the sandbox too, also one that an editor replaced. A mistake changes nothing, and
    a key's minute does not begin anew."""

    def write(name, text):
        with open(name + ".new", "w", encoding="ascii") as out:
            out.write(text)
        os.replace(name + ".new", name)

    def statuses(*keys):
        return [server.ask("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1},
                           {"Authorization": "Bearer " + key})[0] for key in keys]

    def reload(said):
        server.said.clear()
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_line(said)

    write("shared", "anna sk-anna\n")
    write("table", "sk-slow ben * 1\n")
    server = Server("-c", "128", "--api-key-file", "shared", "--keys", "table")
    check(statuses("sk-anna", "sk-slow", "sk-slow", "sk-cora") == [200, 200, 429, 401], "keys of the start")
    with open("shared", "a", encoding="ascii") as out:
        out.write("cora sk-cora\n")
    reload("read 3 keys again")
    check(statuses("sk-anna", "sk-cora", "sk-slow") == [200, 200, 429], "a key that was added")
    write("shared", "cora sk-cora\n")
    reload("read 2 keys again")
    check(statuses("sk-anna", "sk-cora") == [401, 200], "a file that was replaced")
    for text in ("a b c\n", "# nobody\n", None):
        if text:
            write("shared", text)
        else:
            os.remove("shared")
        reload("the keys are unchanged: shared: ")
        check(statuses("sk-anna", "sk-cora") == [401, 200], text)
    server.end()


test_swapping()
test_adapters()
test_adapters_by_name()
test_session_options()
test_replaced()
test_new_keys()
sys.exit(1 if client.failures else 0)
