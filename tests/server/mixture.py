# SPDX-License-Identifier: MIT
"""Random requests for RANDOM_SECONDS at a server of eight slots, some of them broken, while others leave in the middle:
each is answered as a server of one slot answers it, to the last token and log-probability, and none ends either."""
import copy
import json
import os
import queue
import random
import socket
import subprocess
import sys
import threading
import time

import client
from client import Server, check

SECONDS, THREADS = float(os.environ.get("RANDOM_SECONDS", "4")), 8
# The short form asks the same each time; a long one draws its requests.
SEED = int(os.environ.get("RANDOM_SEED", "0")) or (random.randrange(1, 1 << 30) if SECONDS > 4 else 1)
WORDS = ["the", "land", "Once", " upon", "€", "é", "a b", "\n", "{\"a\": 1}", "<|im_start|>", "x" * 40, "😀"]
TEMPLATE = r"""{%- for m in messages %}{{- '<|im_start|>' + m.role + '\n' + (m.content or '') + '<|im_end|>\n' }}{%- endfor %}
{%- if tools %}{{- '<tool_call>' }}{{- tools | tojson }}{%- endif %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}{%- endif %}"""
SCHEMAS = [{"type": "integer", "minimum": -5, "maximum": 18446744073709551615}, {"enum": ["a", "é", 5, None]},
           {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "string", "maxLength": 6}}, "required": ["a"]},
           {"type": "array", "items": {"type": "number"}, "maxItems": 3}, {"type": "string", "pattern": "^[a-c]{2,5}$"}]
GRAMMARS = ["root ::= [a-z]+ \".\"", "root ::= \"yes\" | \"no\" | root2\nroot2 ::= \"may\" \"be\"?", "root ::= (\"é\" | \"\\n\"){1,9}"]
PROGRAMS = ["logits = logits * 0.5", "let y = 1 / (3 - step)", "logits[300 - 1] = 9.0", "logits = logits * 1e300 * 1e300"]
# What differs between two servers that say the same.
OWN = {"id", "created", "created_at", "timings", "total_duration", "load_duration", "prompt_eval_duration", "eval_duration",
       "cached_tokens", "cache_read_input_tokens", "input_tokens", "item_id", "call_id", "tokens_cached", "request_id", "completed_at"}


def text(rng, most=12):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, most)))


def settings(rng):
    """Any of the settings of a completion, a few at a time."""
    choices = {
        "temperature": lambda: rng.choice([0, 0.7, 1.5]), "top_k": lambda: rng.choice([0, 1, 40]), "top_p": rng.random,
        "min_p": lambda: rng.random() / 5, "typical_p": lambda: 0.5 + rng.random() / 2, "repeat_penalty": lambda: 1 + rng.random(),
        "presence_penalty": lambda: rng.random() * 2, "frequency_penalty": lambda: rng.random(), "xtc_probability": rng.random,
        "xtc_threshold": lambda: 0.1, "dry_multiplier": lambda: 0.8, "mirostat": lambda: rng.choice([0, 2]),
        "dynatemp_range": lambda: 0.5, "top_n_sigma": lambda: 1.5, "stop": lambda: [rng.choice(["e", " a", "xx"])],
        "logit_bias": lambda: rng.choice([{"5": 3, "40": -100}, [[7, 2.5], [60, False]]]), "ignore_eos": lambda: True,
        "program": lambda: rng.choice(PROGRAMS), "adapters": lambda: {"wild": 1},
        "json_schema": lambda: rng.choice(SCHEMAS), "grammar": lambda: rng.choice(GRAMMARS)}
    picked = rng.sample(sorted(choices), rng.randrange(0, 5))
    if "json_schema" in picked and "grammar" in picked:
        picked.remove("grammar")
    return {"seed": rng.randrange(1 << 30), "max_tokens": rng.randrange(0, 40), **{key: choices[key]() for key in picked}}


def completion(rng):
    prompt = rng.choice([lambda: text(rng), lambda: [rng.randrange(3, 300) for _ in range(rng.randrange(1, 90))],
                         lambda: [text(rng, 4) for _ in range(rng.randrange(1, 4))]])()
    body = {"prompt": prompt, **settings(rng)}
    for key, value, chance in (("n", rng.randrange(1, 4), 0.2), ("logprobs", rng.randrange(0, 6), 0.4), ("echo", True, 0.3)):
        if rng.random() < chance:
            body[key] = value
    return "/v1/completions", body


def messages(rng):
    said = [{"role": "user", "content": text(rng)}]
    if rng.random() < 0.3:
        said += [{"role": "assistant", "content": text(rng, 4)}, {"role": "user", "content": text(rng, 3)}]
    return said


def tool(rng):
    return {"name": "f", "description": text(rng, 3), "parameters": {"type": "object", "properties": {"a": rng.choice(SCHEMAS)}}}


def chat(rng):
    body = {"messages": messages(rng), **settings(rng)}
    if rng.random() < 0.3:
        body.update(tools=[{"type": "function", "function": tool(rng)}], tool_choice=rng.choice(["auto", "required", "none"]))
    if rng.random() < 0.3:
        body["chat_template_kwargs"] = {"enable_thinking": rng.random() < 0.5}
    if rng.random() < 0.3:
        body.update(logprobs=True, top_logprobs=rng.randrange(0, 5))
    return "/v1/chat/completions", body


def other(rng):
    """Other vendors' forms, and the endpoints without an answer."""
    of = settings(rng)
    common = {key: of[key] for key in ("seed", "temperature", "top_p", "top_k") if key in of}
    n = rng.randrange(1, 30)
    return rng.choice([
        lambda: ("/v1/messages", {**common, "messages": messages(rng), "max_tokens": n, "tools": [
            {"name": "f", "input_schema": {"type": "object"}}] if rng.random() < 0.3 else []}),
        lambda: ("/v1/responses", {**common, "input": text(rng), "max_output_tokens": n, "instructions": text(rng, 3)}),
        lambda: ("/api/chat", {"messages": messages(rng), "stream": False, "options": {**common, "num_predict": n}}),
        lambda: ("/api/generate", {"prompt": text(rng), "stream": False, "raw": True, "options": {**common, "num_predict": n}}),
        lambda: ("/completion", {**common, "prompt": text(rng), "n_predict": n, "n_probs": rng.randrange(0, 4)}),
        lambda: ("/v1/embeddings", {"input": [text(rng) for _ in range(rng.randrange(1, 5))]}),
        lambda: ("/tokenize", {"content": text(rng, 99), "with_pieces": rng.random() < 0.5}),
        lambda: ("/detokenize", {"tokens": [rng.randrange(0, 300) for _ in range(rng.randrange(0, 99))]}),
        lambda: ("/apply-template", {"messages": messages(rng)}),
        lambda: ("/v1/messages/count_tokens", {"messages": messages(rng)})])()


def break_it(rng, value):
    """Something else in a random place."""
    junk = [None, True, -1, 2.5, 1e30, 18446744073709551616, "", "x", "\0", [], {}, [[]], {"a": None}, 10 ** 60, "é" * 3000]
    at = value
    while isinstance(at, (dict, list)) and at:
        key = rng.choice(sorted(at) if isinstance(at, dict) else range(len(at)))
        if rng.random() < 0.4 or not isinstance(at[key], (dict, list)) or not at[key]:
            at[key] = copy.deepcopy(rng.choice(junk))
            return
        at = at[key]


def some_request(rng):
    path, body = rng.choice([completion, completion, chat, chat, other])(rng)
    body["model"] = rng.choice(["tools", "one", "tools"]) if path not in ("/v1/chat/completions",) else "tools"
    if path in ("/v1/messages", "/v1/responses", "/apply-template", "/v1/messages/count_tokens", "/api/chat"):
        body["model"] = "tools"
    body = copy.deepcopy(body)  # schemas are shared
    if rng.random() < 0.25:
        break_it(rng, body)
    if path.startswith("/api/") and isinstance(body.get("options", {}), (dict, type(None))):
        body["options"] = {"seed": 7, **(body.get("options") or {})}
    for one in (body, body.get("options")):
        if isinstance(one, dict) and "seed" in one and (isinstance(one["seed"], bool) or not isinstance(one["seed"], (int, float)) or one["seed"] < 0):
            one["seed"] = 7  # else one is drawn
    if "stream" not in body and path in ("/v1/completions", "/v1/chat/completions", "/completion") and rng.random() < 0.4:
        body["stream"] = True
    return path, body


def scrubbed(value):
    if isinstance(value, dict):
        return {key: scrubbed(one) for key, one in value.items() if key not in OWN}
    return [scrubbed(one) for one in value] if isinstance(value, list) else value


def joined(events):
    """A stream as one value: texts of each answer, its log-probabilities and how it ended, however it was cut."""
    answers = {}
    for event in events:
        for choice in event.get("choices", [event]):
            one = answers.setdefault(choice.get("index", 0), {"text": "", "logs": {}, "calls": {}, "rest": []})
            delta = choice.get("delta", choice)
            for key in ("content", "text", "reasoning_content"):
                if isinstance(delta.get(key), str):
                    one["text"] += delta[key] if key != "reasoning_content" else "[%s]" % delta[key]
            for call in delta.get("tool_calls", []):
                one["calls"][call["index"]] = one["calls"].get(call["index"], "") + json.dumps(call["function"].get("name", "")) + \
                    call["function"].get("arguments", "")
            logs = choice.get("logprobs") or {"content": choice.get("completion_probabilities", [])}
            for key, values in logs.items():
                one["logs"][key] = one["logs"].get(key, []) + (values or [])
            one["rest"] += [choice[key] for key in ("finish_reason", "stop_type", "error") if choice.get(key)]
    for one in answers.values():
        one["text"] = one["text"].replace("][", "")
        one["calls"] = {i: call.replace('""', "") for i, call in one["calls"].items()}
    return answers


def ask(server, path, body):
    status, got = server.ask("POST", path, body)
    if got.startswith(b'{"model"') and got.count(b"\n") > 1:  # Ollama's lines
        events = [json.loads(line) for line in got.decode().splitlines()]
        said = "".join(event.get("response", "") + event.get("message", {}).get("content", "") for event in events)
        return status, said, scrubbed(events[-1])
    if not got.startswith(b"data: "):
        return status, scrubbed(json.loads(got))
    lines = [line[6:] for line in got.decode().split("\n\n") if line.startswith("data: {")]
    return status, joined([scrubbed(json.loads(line)) for line in lines])


def leave(server, rng):
    path, body = some_request(rng)
    data = json.dumps({**body, "stream": rng.random() < 0.5}).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as s:
        s.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(data)) +
                  data[:rng.choice([len(data), len(data) // 2])])
        if rng.random() < 0.5:
            s.settimeout(0.05)
            try:
                s.recv(100)
            except OSError:
                pass


def run(i):
    try:
        ask_on(random.Random(SEED * 100 + i))
    except Exception as error:  # a thread that ends early tests nothing
        check(False, "seed", SEED, "thread", i, repr(error))
        raise


def ask_on(rng):
    while time.time() < until:
        if rng.random() < 0.15:
            leave(eight, rng)
            continue
        path, body = some_request(rng)
        done.put((path, body, ask(eight, path, body)))


with open("random.jinja", "w", encoding="utf-8") as file:
    file.write(TEMPLATE)
subprocess.run([*os.environ.get("EMULATOR", "").split(), os.environ["BUILD"] + "/tests/make_folder", "qwen3-0.6b", "random_model",
                "--layers", "1", "--divide", "8", "--vocab", "300", "--template", "random.jinja"], check=True,
               stdout=subprocess.DEVNULL)
common = ["-m", "tools=random_model", "-m", "one=one.ndf", "--adapter", "wild=wild.ndf", "-c", "512", "--request-memory", "128"]
eight, alone = Server(*common, "-np", "8", "-ub", "33"), Server(*common, "-np", "1", "--queue", "4096")
until = time.time() + SECONDS
done = queue.Queue(64)
threads = [threading.Thread(target=run, args=(i,)) for i in range(THREADS)]
for thread in threads:
    thread.start()
n_same, n_refused, statuses = 0, 0, {}
while any(thread.is_alive() for thread in threads) or not done.empty():
    try:
        one_path, one_body, found = done.get(timeout=0.1)
    except queue.Empty:
        continue
    expected = ask(alone, one_path, one_body)
    check(found == expected, "seed", SEED, one_path, json.dumps(one_body)[:600], "\n  is ", str(found)[:600], "\n  not", str(expected)[:600])
    known = found[0] in (200, 400, 404, 413) or "not finite" in str(found[1])
    check(known, "seed", SEED, one_path, json.dumps(one_body)[:600], found)
    n_same += found == expected
    statuses[found[0]] = statuses.get(found[0], 0) + 1
for one in (eight, alone):
    while one.metric("requests_processing") and time.time() < until + 120:
        time.sleep(0.05)
    check(one.metric("requests_processing") == 0, "requests are left")
    one.post("/v1/completions", {"prompt": "a", "max_tokens": 1, "x": "y" * (12 << 20)})  # no memory is left claimed
    one.end()
print("%d requests answered alike, by status: %s; seed %d" % (n_same, statuses, SEED))
sys.exit(1 if client.failures else 0)
