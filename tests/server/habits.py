# SPDX-License-Identifier: MIT
"""What people's clients do by habit, and what each finds then: its own form of error, its own names, its own HTTP."""
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.parse

import client
from client import Server, check, processor_s

TEMPLATE = r"""{%- for m in messages %}{{- '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{%- endfor %}
{%- if mood %}{{- '[' + mood + ']' }}{%- endif %}{%- if reasoning_effort %}{{- '(' + reasoning_effort + ')' }}{%- endif %}
{%- if tools %}{{- tools | tojson }}{%- endif %}{%- if enable_thinking is defined %}{{- enable_thinking }}{%- endif %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}"""
# Of results, their ids, which it wants.
IDS_TEMPLATE = TEMPLATE.replace("m.content", "(m.content or '')").replace("{{- '<|im_start|>' + m.role", r"""{%- if m.role == 'tool' %}
{%- if not m.tool_call_id %}{{- raise_exception('a result needs its id') }}{%- endif %}{{- m.tool_call_id }}{%- endif %}
{{- '<|im_start|>' + m.role""")
HI = [{"role": "user", "content": "hi"}]
CHAT, ALLOWED = "/v1/chat/completions", "https://chat.example.org"


def ask(server, method, path, body=None, headers=None):
    """(status, headers, body)"""
    connection = client.http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    connection.request(method, path, body if body is None else json.dumps(body), headers or {})
    reply = connection.getresponse()
    got = reply.status, reply.headers, reply.read()
    connection.close()
    return got


def test_lists(server):
    for path in ("/", "/health", "/v1/models", "/metrics"):
        status, headers, body = ask(server, "HEAD", path)
        whole = ask(server, "GET", path)
        check(status == 200 and not body and headers["Content-Type"] == whole[1]["Content-Type"], path, status, body)
    check(ask(server, "HEAD", "/nowhere")[0] == 404, "HEAD of nothing")
    for model in server.get("/v1/models")["data"]:
        one = server.get("/v1/models/" + urllib.parse.quote(model["id"], safe=""))
        check(one == model, model, one)
    status, text = server.ask("GET", "/v1/models/..%2f..%2fetc%2fpasswd")
    check(status == 404 and json.loads(text)["error"]["code"] == "model_not_found", status, text)
    # A model that was made here names no architecture of a source: its configuration has the family.
    shown = server.post("/api/show", {"model": "tales"})
    check(shown["details"]["family"] == "llama" and shown["model_info"]["llama.context_length"] == 512, shown)
    tags = {m["name"]: m["details"] for m in server.get("/api/tags")["models"]}
    check(tags["tales"]["family"] == "llama" and "tools" in tags, tags)


def test_errors(server):
    """An unknown model, as each vendor's client reads it."""
    wanted = {"model": "nobody", "messages": HI, "max_tokens": 4, "input": "a"}
    for path in (CHAT, "/v1/completions", "/v1/embeddings", "/v1/responses"):
        error = server.post(path, wanted, 404)["error"]
        check(error["code"] == "model_not_found" and error["param"] == "model" and "nobody" in error["message"], error)
    for path in ("/api/chat", "/api/generate", "/api/embed", "/api/show", "/api/nothing"):
        check(isinstance(server.post(path, wanted, 404)["error"], str), path)
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        got = server.post(path, wanted, 404)
        check(got["type"] == "error" and got["error"]["type"] == "not_found_error" and got["request_id"], got)
    long = {"model": "tales", "messages": [{"role": "user", "content": "a cat " * 2000}], "max_tokens": 4}
    error = server.post(CHAT, long, 400)["error"]
    check(error["code"] == "context_length_exceeded" and "maximum context length is 512 tokens" in error["message"], error)
    check(server.post("/v1/messages", long, 400)["error"]["type"] == "invalid_request_error", "too long a message")


GOT = ("/", "/health", "/v1/models", "/metrics", "/slots", "/v1/props", "/api/version", "/api/tags", "/api/ps")
POSTED = (CHAT, "/v1/completions", "/embeddings", "/v1/messages", "/messages/count_tokens", "/v1/responses", "/completion",
          "/infill", "/tokenize", "/detokenize", "/apply-template", "/api/chat", "/api/generate", "/api/show", "/api/embed",
          "/api/embeddings")


def test_methods(server, extra=""):
    """A path that is there says what it takes; one that is not is not there for any method."""
    one = "/v1/models/" + urllib.parse.quote(server.get("/models")["data"][0]["id"], safe="")
    for paths, allow, wrong in (((*GOT, one), "GET, HEAD", ("POST", "PUT", "DELETE", "WHAT")),
                                (POSTED, "POST", ("GET", "HEAD", "PUT", "PATCH"))):
        for path in paths:
            for method in wrong:
                status, headers, text = ask(server, method, path, None if method == "HEAD" else {"model": "nobody"})
                check(status == 405 and headers["Allow"] == allow + extra, method, path, status, headers["Allow"])
                check(method == "HEAD" or b"takes " + allow[:4].rstrip(",").encode() in text, method, path, text)
    for method in ("GET", "POST", "DELETE"):
        for path in ("/nowhere", "/v1", "/models/", "/v1/api/tags", "/api/", "/v1/chat/completions/"):
            status, headers, _ = ask(server, method, path)
            check(status == 404 and "Allow" not in headers, method, path, status, headers)
    check(extra or ask(server, "OPTIONS", CHAT)[0] == 405, "OPTIONS without --cors")
    for path in (*GOT, one):
        check(ask(server, "GET", path)[0] == 200, path)
    for path in POSTED:
        check(ask(server, "POST", path, {"prompt": 5, "model": 5})[0] in (200, 400), path)


def test_zero_bytes(server):
    """No text has a zero byte; where one does, each vendor's error names the place."""
    hi, zero = {"role": "user", "content": "hi"}, "a\0b"
    for path, body, place in (
            (CHAT, {"messages": [hi, {**hi, "content": zero}]}, "messages[1].content"),
            (CHAT, {"messages": [hi], "stop": ["x", zero]}, "stop[1]"),
            (CHAT, {"model": "tales" + zero, "messages": [hi]}, "model"),
            ("/v1/completions", {"prompt": [zero]}, "prompt[0]"), ("/v1/completions", {"prompt": "a", "x": {"é" * 30: zero}}, "x...."),
            ("/v1/embeddings", {"input": zero}, "input"), ("/v1/responses", {"input": zero}, "input"),
            ("/completion", {"prompt": zero}, "prompt"), ("/infill", {"input_prefix": zero}, "input_prefix"),
            ("/tokenize", {"content": zero}, "content"), ("/apply-template", {"messages": [{**hi, "content": zero}]}, "content"),
            ("/v1/messages", {"max_tokens": 4, "messages": [{**hi, "content": [{"type": "text", "text": zero}]}]},
             "messages[0].content[0].text"),
            ("/v1/messages/count_tokens", {"system": zero, "messages": [hi]}, "system"),
            ("/api/chat", {"messages": [{**hi, "content": zero}]}, "messages[0].content"),
            ("/api/generate", {"prompt": zero}, "prompt"), ("/api/embed", {"input": zero}, "input"), ("/api/show", {"x": zero}, "x")):
        error = server.post(path, body, 400)["error"]
        message = error if path.startswith("/api/") else error["message"]
        check(place + ": a text contains a zero byte" in message and "leave it out" in message, path, error)
        check("messages" in path or path.startswith("/api/") or error["param"].endswith(place), path, error)
    deep = zero
    for _ in range(200):
        deep = {"k": [deep]}
    error = server.post("/v1/completions", {"prompt": "a", "x": deep}, 400)["error"]
    check(error["param"] == "..." + ".k[0]" * 4, error)
    message = server.post(CHAT, {"messages": [hi], zero: 1}, 400)["error"]["message"]
    check("line 1 of the request: a key contains a zero byte" in message, message)


def test_bytes():
    """Paths of any bytes: the error says what it is about, and the log has the request."""
    if os.path.exists("habits.log"):
        os.remove("habits.log")
    server = Server("-c", "512", "--log", "habits.log")
    for path in ("/v1/models/x" + "%C3%A9" * 80, "/v1/models/%FF%FEname", "/%FF%80"):
        status, text = server.ask("GET", path)
        check(status == 404 and json.loads(text)["error"]["message"].startswith(("there is no model ", "this server has no route ")), path, status, text)
    server.end()
    with open("habits.log", encoding="utf-8") as log:
        lines = [json.loads(line) for line in log]
    check([line.get("path") for line in lines] == ["/v1/models/x" + "é" * 80, "/v1/models/\ufffd\ufffdname", "/\ufffd\ufffd"]
          and all(line["method"] == "GET" and line["status"] == 404 for line in lines), lines)


def token_bytes(entry):
    """Of a token and of its text, which are the same."""
    escaped = re.fullmatch(r"bytes:((\\x[0-9a-f]{2})+)", entry["token"])
    own = bytes.fromhex(escaped[1].replace("\\x", "")) if escaped else entry["token"].encode()
    check(own == bytes(entry["bytes"]), entry)
    return own


def test_token_bytes(server):
    """Of a model that writes bytes at random: parts of characters have their bytes, with which the text is whole."""
    body = {"model": "tools", "max_tokens": 120, "temperature": 3, "seed": 3, "ignore_eos": True}
    chat = server.post(CHAT, {**body, "messages": HI, "logprobs": True, "top_logprobs": 3})["choices"][0]
    entries = chat["logprobs"]["content"]
    whole = b"".join(token_bytes(entry) for entry in entries)
    check(chat["message"]["content"].startswith(whole.decode(errors="replace")[:40]), chat["message"], whole)
    parts = [entry for entry in entries if entry["token"].startswith("bytes:")]
    check(len(parts) > 4 and all(token_bytes(top) is not None for entry in entries for top in entry["top_logprobs"]), parts)
    # The older form has no bytes, but texts that can be told apart, and places in the text.
    done = server.post("/v1/completions", {**body, "prompt": "a€", "logprobs": 20, "echo": True, "max_tokens": 2})["choices"][0]
    logs = done["logprobs"]
    check(logs["tokens"][:4] == ["a", "bytes:\\xe2", "bytes:\\x82", "bytes:\\xac"], logs["tokens"])
    check(logs["text_offset"][:5] == [0, 1, 2, 2, 2], logs["text_offset"])
    check(all(len(tops) == 20 for tops in logs["top_logprobs"][1:]), "texts of different tokens that are the same")
    events = server.ask("POST", "/v1/completions", {**body, "prompt": "a€", "logprobs": 1, "stream": True})[1].decode()
    streamed = [json.loads(line[6:])["choices"][0]["logprobs"] for line in events.split("\n\n") if line.startswith("data: {")]
    got = server.post("/v1/completions", {**body, "prompt": "a€", "logprobs": 1})["choices"][0]["logprobs"]
    for key in ("tokens", "text_offset"):
        check([x for one in streamed if one for x in one[key]] == got[key], key, got[key])
    check(got["text_offset"][0] == 0, got["text_offset"])
    pieces = server.post("/tokenize", {"model": "tools", "content": "a€", "with_pieces": True})["tokens"]
    check([one["piece"] for one in pieces] == ["a", [0xE2], [0x82], [0xAC]], pieces)


def test_ids(server):
    ids = set()
    for path in (CHAT, "/v1/messages", "/v1/responses"):
        status, headers, text = ask(server, "POST", path, {"messages": HI, "input": "hi", "max_tokens": 4})
        check(status == 200 and headers["X-Request-Id"] == json.loads(text)["id"], path, headers, text)
        check(headers["request-id"] == headers["X-Request-Id"], path, headers)
        ids.add(headers["X-Request-Id"])
    stream = ask(server, "POST", CHAT, {"messages": HI, "max_tokens": 4, "stream": True})
    check(json.loads(stream[2].split(b"\n")[0][6:])["id"] == stream[1]["X-Request-Id"], stream)
    ids.update(ask(server, "GET", "/health")[1]["X-Request-Id"] for _ in range(3))
    # A replica that has answered as many requests in the same second gives other ids.
    replicas = [Server("-c", "64"), Server("-c", "64")]
    given = [[ask(one, "GET", "/health")[1]["X-Request-Id"] for _ in range(8)] for one in replicas]
    check(len(set(given[0] + given[1])) == 16, "two replicas give one id", given)
    for one in replicas:
        one.end()
    check(len(ids) == 6 and all(ids), "not an id for each request", ids)


def test_answers(server):
    """No bound, written as -1; the stop sequence that it was; an answer that was begun."""
    free = server.post(CHAT, {"messages": HI, "seed": 1, "temperature": 0})
    check(server.post(CHAT, {"messages": HI, "seed": 1, "temperature": 0, "max_tokens": -1})["choices"] == free["choices"],
          "max_tokens -1")
    server.post(CHAT, {"messages": HI, "max_tokens": -2}, 400)
    text = free["choices"][0]["message"]["content"]
    body = {"messages": HI, "max_tokens": 60, "temperature": 0}
    check(server.post("/v1/messages", body)["stop_reason"] == "end_turn", body)
    for stops in (["nowhere", text[4:7]], [text[4:7], "nowhere"], ["", "nowhere", text[3:9], text[4:7]]):
        first = min((s for s in stops if s and s in text), key=text.index)
        got = server.post("/v1/messages", {**body, "stop_sequences": stops})
        check((got["stop_reason"], got["stop_sequence"]) == ("stop_sequence", first), stops, got)
        check("".join(b["text"] for b in got["content"]) == text[:text.index(first)], text, got)
        events = server.ask("POST", "/v1/messages", {**body, "stop_sequences": stops, "stream": True})[1].decode()
        delta = json.loads(re.search(r"data: (.*\"message_delta\".*)", events).group(1))["delta"]
        check((delta["stop_reason"], delta["stop_sequence"]) == ("stop_sequence", first), stops, delta)
    got = server.post("/v1/messages", {**body, "stop_sequences": ["nowhere"]})
    check((got["stop_reason"], got["stop_sequence"]) == ("end_turn", None), got)
    # Any beginning of the greedy answer goes on as the answer itself.
    for n in (2, 5, len(text) // 2):
        begun = HI + [{"role": "assistant", "content": text[:n].rstrip()}]
        got = server.post("/v1/messages", {**body, "messages": begun})
        check("".join(b["text"] for b in got["content"]).split() and got["usage"]["input_tokens"] +
              got["usage"]["cache_read_input_tokens"] < len(server.post("/tokenize", {"content": server.post(
                  "/apply-template", {"messages": begun})["prompt"]})["tokens"]) + 1, n, got)
    for kind in ("enabled", "adaptive", "disabled"):
        server.post("/v1/messages", {**body, "thinking": {"type": kind, "budget_tokens": 1024}})
    several = {"messages": HI, "n": 3, "seed": 5, "max_tokens": 30, "temperature": 1.2, "stop": ["!", "the"]}
    whole = server.post(CHAT, several)["choices"]
    parts = [""] * 3
    for line in server.ask("POST", CHAT, {**several, "stream": True})[1].decode().split("\n\n"):
        for choice in json.loads(line[6:])["choices"] if line.startswith("data: {") else []:
            parts[choice["index"]] += choice["delta"].get("content", "")
    check(parts == [choice["message"]["content"] for choice in whole], parts, whole)


def test_template(server):
    """What a chat request tells its template."""
    def prompt(**fields):
        return server.post("/apply-template", {"model": "tools", "messages": HI, **fields})["prompt"]
    plain = prompt()
    check(plain == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", plain)
    check("[glad]" in prompt(chat_template_kwargs={"mood": "glad"}), "a variable of the template")
    check("(low)" in prompt(reasoning_effort="low"), "reasoning_effort")
    check("False" in prompt(reasoning_effort="none") and "True" in prompt(chat_template_kwargs={"enable_thinking": True}),
          "thinking")
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    check('"weather"' in prompt(tools=[tool]), "tools in /apply-template")
    begun = HI + [{"role": "assistant", "content": "Well"}]
    check(prompt(messages=begun, continue_final_message=True).endswith("<|im_start|>assistant\nWell"), "a beginning")
    check(prompt(add_generation_prompt=False).endswith("hi<|im_end|>\n"), "add_generation_prompt")
    server.post("/apply-template", {"model": "tools", "messages": HI, "chat_template_kwargs": 5}, 400)
    counted = server.post("/v1/messages/count_tokens", {"model": "tools", "messages": begun})["input_tokens"]
    check(counted == len(server.post("/tokenize", {"model": "tools", "content": prompt(
        messages=begun, continue_final_message=True)})["tokens"]), "count_tokens of an answer that was begun", counted)


def test_shapes(server):
    """A field of another shape than the API has is refused, not left out."""
    tool = {"name": "f", "input_schema": {"type": "object"}}
    for path, body in (
            ("/v1/responses", {"input": [{"role": "user", "content": {"type": "input_text", "text": "hi"}}]}),
            ("/v1/responses", {"input": "hi", "tools": {"type": "function", "name": "f"}}),
            ("/v1/responses", {"input": [{"type": "function_call_output", "call_id": "a", "output": 5}]}),
            ("/v1/messages", {"max_tokens": 4, "messages": HI, "system": {"type": "text", "text": "hi"}}),
            ("/v1/messages", {"max_tokens": 4, "messages": HI, "tools": tool}),
            ("/v1/messages", {"max_tokens": 4, "messages": [{"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": {"type": "text", "text": "hi"}}]}]})):
        server.post(path, body, 400)
    bounds = {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "minProperties": 3, "maxProperties": 1}
    server.post("/v1/completions", {"prompt": "a", "max_tokens": 4, "json_schema": bounds}, 400)


def test_responses(server):
    """What a limit cut says so; the effort reaches the template."""
    body = {"model": "tales", "input": "hi", "max_output_tokens": 3, "temperature": 0}
    got = server.post("/v1/responses", body)
    check((got["status"], got["output"][-1]["status"]) == ("incomplete", "incomplete"), got)
    events = server.ask("POST", "/v1/responses", {**body, "stream": True})[1].decode()
    item = json.loads(re.search(r"data: (.*\"response.output_item.done\".*)", events).group(1))["item"]
    check(item["status"] == "incomplete", item)
    got = server.post("/v1/responses", {**body, "max_output_tokens": 400})
    check((got["status"], got["output"][-1]["status"]) == ("completed", "completed"), got)

    def n_read(effort):
        return server.post("/v1/responses", {"model": "tools", "input": "hi", "max_output_tokens": 2, "reasoning": {
            "effort": effort}})["usage"]["input_tokens"]
    check(n_read("an-effort-of-many-letters") > n_read("low"), "reasoning.effort in the template")


def test_formed(server):
    """Of a template that opens the thinking: an answer that a schema holds has none, and is the content."""
    body = {"model": "thinker", "messages": HI, "max_tokens": 60, "temperature": 0}
    free = server.post(CHAT, {**body, "ignore_eos": True})["choices"][0]["message"]
    check(free.get("reasoning_content"), "the template does not open the thinking", free)
    schema = {"enum": ["yes", "no"]}
    for form in ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}},
                 {"json_schema": schema}):
        message = server.post(CHAT, {**body, **form})["choices"][0]["message"]
        check(json.loads(message["content"] or "{}") in schema["enum"] and "reasoning_content" not in message, form, message)
        text = ""
        for line in server.ask("POST", CHAT, {**body, **form, "stream": True})[1].decode().split("\n\n"):
            for choice in json.loads(line[6:])["choices"] if line.startswith("data: {") else []:
                text += choice["delta"].get("content", "")
        check(text == message["content"], form, text, message)
    message = server.post(CHAT, {**body, "response_format": {"type": "json_object"}})["choices"][0]["message"]
    check(message["content"].startswith("{") and "reasoning_content" not in message, message)
    asked = {"model": "thinker", "messages": HI, "format": schema, "options": {"temperature": 0}}
    message = server.post("/api/chat", {**asked, "stream": False})["message"]
    check(json.loads(message["content"] or "{}") in schema["enum"] and "thinking" not in message, message)
    lines = server.ask("POST", "/api/chat", asked)[1].decode().splitlines()
    text = "".join(json.loads(line)["message"]["content"] for line in lines)
    check(text == message["content"], lines)
    made = server.post("/v1/responses", {"model": "thinker", "input": "hi", "temperature": 0, "text": {
        "format": {"type": "json_schema", "name": "x", "schema": schema}}})["output"]
    check([item["type"] for item in made] == ["message"] and json.loads(made[0]["content"][0]["text"]) in schema["enum"], made)


def test_line_ends(server):
    """A stream has no character but its own line feeds that str.splitlines() takes for the end of a line."""
    said = "a\u2028b\u2029c\u0085d"
    schema = {"const": said}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    for path, more, find in (
            ("/api/chat", {"messages": HI, "format": schema}, lambda one: one["message"]["content"]),
            ("/api/generate", {"prompt": "hi", "format": schema}, lambda one: one["response"]),
            (CHAT, {"messages": HI, "response_format": form, "stream": True},
             lambda one: one["choices"][0]["delta"].get("content") or ""),
            ("/v1/completions", {"prompt": "hi", "json_schema": schema, "stream": True},
             lambda one: one["choices"][0]["text"])):
        text = server.ask("POST", path, {"model": "thinker", "temperature": 0, "max_tokens": 200, **more})[1].decode()
        lines = [line.removeprefix("data: ") for line in text.splitlines()]
        made = "".join(find(json.loads(line)) for line in lines if line.startswith("{"))
        check(json.loads(made or "0") == said, path, text)


def test_results(server):
    """Ollama's results say which function they are of; a template that wants ids has those of the calls."""
    ids = ["a", "b" * 20, "c" * 50]  # prompts of other ids have another length
    calls = [{"function": {"name": name, "arguments": {}}} for name in ("look", "find", "look")]
    named = [{**call, "id": id} for call, id in zip(calls, ids)]

    def n_read(calls, results):
        messages = HI + [{"role": "assistant", "content": "", "tool_calls": calls}]
        messages += [{"role": "tool", "content": "yes", **result} for result in results]
        return server.post("/api/chat", {"model": "ids", "messages": messages, "options": {"num_predict": 1},
                                         "stream": False})["prompt_eval_count"]
    for names, of in ((["look"], [0]), (["find"], [1]), (["look", "look"], [0, 2]), (["find", "look"], [1, 0]),
                      ([None], [0]), ([None, None], [0, 1]), (["find", None, "look"], [1, 0, 2]), (["other", "look"], [0, 2])):
        results = [{"tool_name": name} if name else {} for name in names]
        same = [{"tool_call_id": ids[at]} for at in of]
        check(n_read(named, results) == n_read(named, same), names, of)
        check(n_read(calls, results) > 0, "calls without ids", names)
    many = [{"function": {"name": "look", "arguments": {}}}] * 3000
    before_s = processor_s(server)
    server.ask("POST", "/api/chat", {"model": "ids", "messages": HI + [{"role": "assistant", "content": "", "tool_calls": many}] +
                                     [{"role": "tool", "content": "yes"}] * 3000, "options": {"num_predict": 1}, "stream": False})
    check(processor_s(server) - before_s < 60, "many calls and results")
    check(n_read(named, [{"tool_call_id": ids[0]}, {"tool_name": "look"}]) ==
          n_read(named, [{"tool_call_id": ids[0]}, {"tool_call_id": ids[2]}]), "beside a result with an id")


def test_seeds(server):
    """Ollama's seed of -1 is drawn, its null is none given; a prompt of one token has its entry in a stream."""
    body = {"model": "tales", "prompt": "Once", "raw": True, "stream": False}
    texts = {server.post("/api/generate", {**body, "options": {"seed": -1, "temperature": 2, "num_predict": 24}})["response"]
             for _ in range(4)}
    check(len(texts) > 1, "a seed of -1 is not drawn", texts)
    got = server.post("/api/generate", {**body, "options": {"num_predict": None, "temperature": 0}})
    check(got["response"] == server.post("/api/generate", {**body, "options": {"temperature": 0}})["response"], got)
    one = {"model": "tales", "prompt": server.post("/tokenize", {"model": "tales", "content": " a"})["tokens"][-1:],
           "echo": True, "logprobs": 1, "max_tokens": 2, "temperature": 0}
    whole, parts = server.post("/v1/completions", one)["choices"][0]["logprobs"], []
    for line in server.ask("POST", "/v1/completions", {**one, "stream": True})[1].decode().split("\n\n"):
        for choice in json.loads(line[6:])["choices"] if line.startswith("data: {") else []:
            parts += (choice["logprobs"] or {"tokens": []})["tokens"]
    check(parts == whole["tokens"] and len(parts) == 3, parts, whole)


def test_many_answers():
    """More than there are slots and places in the queue: never possible, so no 503."""
    server = Server("-c", "512", "-np", "1", "--queue", "2")
    body = {"prompt": "Once", "max_tokens": 2}
    message = server.post("/v1/completions", {**body, "n": 4}, 400)["error"]["message"]
    check("1 slots" in message and "2 wait" in message, message)
    check(len(server.post("/v1/completions", {**body, "n": 3})["choices"]) == 3, "as many as fit")
    server.end()


def test_end():
    """Embeddings, asked for without a pause, end with the server."""
    server = Server("-c", "512")
    connection = client.http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    statuses = []
    try:
        for i in range(100000):
            if i == 3:
                server.process.send_signal(client.signal.SIGTERM)
            connection.request("POST", "/v1/embeddings", json.dumps({"input": "once upon a time"}))
            reply = connection.getresponse()
            reply.read()
            statuses.append(reply.status)
            if reply.status != 200:
                break
    except OSError:
        statuses.append(503)  # closed: the same
    check(statuses[-1] == 503, statuses[-3:])
    check(server.process.wait(60) == 0, "the server did not end")


def test_successor():
    """A server that ends leaves the name of its Unix socket to the next one."""
    path, processes = "habits.socket", []
    for name in (path, path + ".out"):
        if os.path.exists(name):
            os.unlink(name)

    def start():
        command = os.environ["WHIT"].split() + ["serve", "--socket", path, "-c", "512", "-t", "1", "--no-sandbox"]
        processes.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        for line in processes[-1].stderr:
            if path in line:
                return
        check(False, "no server on", path)

    def request(text):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(120)
        s.connect(path)
        s.sendall(text)
        return s
    start()
    body = json.dumps({"prompt": "Once", "max_tokens": 400, "stream": True, "ignore_eos": True}).encode()
    long = request(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    check(b"200 OK" in long.recv(4096), "a long answer")
    processes[0].send_signal(client.signal.SIGTERM)
    deadline = time.time() + 120
    while os.path.exists(path) and time.time() < deadline:  # until it listens no more
        time.sleep(0.01)
    start()
    while long.recv(65536):
        pass
    check(processes[0].wait(60) == 0, "the first server did not end")
    check(b"200 OK" in request(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").recv(4096), "its successor")
    processes[1].send_signal(client.signal.SIGTERM)
    check(processes[1].wait(60) == 0 and not os.path.exists(path), "the second server did not end well")


def test_socket_names():
    """A file that is no socket stays as it is, and a folder that is not there is named as the reason."""
    with open("notes.txt", "w", encoding="ascii") as out:
        out.write("kept")
    check("in use" in client.refused("--socket", "notes.txt", "-c", "512"), "a file in the socket's place")
    with open("notes.txt", encoding="ascii") as notes:
        check(notes.read() == "kept", "the file was removed")
    check("No such file" in client.refused("--socket", "nowhere/habits.socket", "-c", "512"), "a folder that is not there")


def test_origins():
    """A browser's own question (preflight), and pages that may not ask."""
    server = Server("-c", "512", "--cors", ALLOWED)
    wanted = "authorization,content-type,x-stainless-lang,anthropic-version,x-whit-prefix"
    status, headers, _ = ask(server, "OPTIONS", CHAT, headers={
        "Origin": ALLOWED, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": wanted})
    check(status == 204 and headers["Access-Control-Allow-Origin"] == ALLOWED, status, headers)
    check(headers["Access-Control-Allow-Headers"] == wanted and "POST" in headers["Access-Control-Allow-Methods"], headers)
    body = {"messages": HI, "max_tokens": 2}
    status, headers, _ = ask(server, "POST", CHAT, body, {"Origin": ALLOWED, "Sec-Fetch-Site": "cross-site"})
    check(status == 200 and headers["Access-Control-Allow-Origin"] == ALLOWED, status, headers)
    exposed = headers["Access-Control-Expose-Headers"].split(", ")
    check("X-Request-Id" in exposed and "request-id" in exposed, headers)
    test_methods(server, ", OPTIONS")
    check(ask(server, "POST", CHAT, body, {"Origin": "http://elsewhere.example:8080"})[0] == 403, "a name made to lead here")
    named = ALLOWED.split("//")[1]
    for host, expected in ((named, 200), (named.upper() + ":8080", 200), ("elsewhere.example", 403), ("x" + named, 403)):
        check(ask(server, "GET", "/slots", headers={"Host": host})[0] == expected, "GET under", host)
    server.end()
    # A server of a network: browsers send no Sec-Fetch-Site there, and Origin alone tells whose page it is.
    server = Server("-c", "512", "--host", "0.0.0.0", "--cors", ALLOWED)
    for origin, expected in (("http://gpu.lan:8080", 200), ("http://GPU.lan:80", 200), ("http://localhost:3000", 200),
                             ("http://a.localhost", 200), ("http://127.0.0.1:1", 200), ("http://[::1]:1", 200), ("app://notes.md", 200),
                             (ALLOWED, 200), ("https://elsewhere.example", 403), ("http://10.1.2.3:8080", 403),
                             ("http://gpu.lan.example", 403), ("http://127.gpu.example", 403), ("http://notlocalhost", 403), ("null", 403)):
        status = ask(server, "POST", CHAT, body, {"Origin": origin, "Host": "gpu.lan:8080"})[0]
        check(status == expected, "a page of", origin, status)
    check(ask(server, "POST", CHAT, body, {"Origin": "http://10.1.2.3", "Host": "gpu.lan", "Sec-Fetch-Site": "same-origin"})[0] == 200,
          "its own page behind a proxy")
    server.end()
    # No public name leads to an address of this machine alone, however that is written.
    if socket.has_ipv6:
        server = Server("-c", "512", "--host", "::ffff:127.0.0.1")
        check(ask(server, "GET", "/slots", headers={"Host": "elsewhere.example"})[0] == 403, "a name that was made to lead here")
        server.end()
    with open("keys", "w", encoding="ascii") as keys:
        keys.write("secret\n")
    server = Server("-c", "512", "--api-key-file", "keys")
    check(ask(server, "GET", "/health", headers={"Host": "own.example"})[0] == 200 and
          ask(server, "GET", "/slots", headers={"Host": "own.example", "X-Api-Key": "secret"})[0] == 200,
          "a server with keys knows every name")
    for path, form in ((CHAT, "code"), ("/api/chat", None), ("/v1/messages", "type")):
        status, headers, text = ask(server, "POST", path, body)
        error = json.loads(text)["error"]
        check(status == 401 and headers["WWW-Authenticate"] == "Bearer", path, status, headers)
        check(isinstance(error, str) if form is None else error[form] in ("invalid_api_key", "authentication_error"), error)
    for path in ("/health", "/v1/health", "/models", "/v1/models", "/"):
        check(ask(server, "GET", path)[0] == 200, path, "asks for a key")
    check(ask(server, "GET", "/v1/props")[0] == 401, "/v1/props without a key")
    server.end()
    # A table of keys: which models each may use, and how many requests a minute.
    with open("keys", "w", encoding="ascii") as keys:
        keys.write("# KEY NAME MODELS RATE\nall # a comment\nfirst anna one #\n slow0 - * 2\nslow1 - * 2\nslow2 - * 2\nboth ben two,one 100 # 1 2 3\n")
    if os.path.exists("keys.log"):
        os.remove("keys.log")
    server = Server("-c", "512", "-m", "one=tales", "-m", "two=tales", "--keys", "keys", "--log", "keys.log")
    # A model is not opened for a key that may not use it, since another might be closed for it.
    slots = [len(json.loads(ask(server, "GET", "/slots", headers={"X-Api-Key": "all"})[2]))]
    for path in ("/v1/completions", "/models/load", "/tokenize"):
        for name in ("two", "two:latest"):
            status = ask(server, "POST", path, {"model": name, "prompt": "a", "content": "a"}, {"X-Api-Key": "first"})[0]
            check(status == 403, path, name, status)
    slots.append(len(json.loads(ask(server, "GET", "/slots", headers={"X-Api-Key": "all"})[2])))
    check(slots[0] == slots[1] > 0, "slots of a model that the key may not use", slots)
    for key, model, expected in (("all", "two", 200), ("first", "one", 200), ("first", "two", 403), ("both", "two", 200),
                                 ("both", "one", 200), ("none", "one", 401)):
        status, _, text = ask(server, "POST", "/v1/completions", {"model": model, "prompt": "a", "max_tokens": 1},
                              {"Authorization": "Bearer " + key})
        check(status == expected, key, model, status, text)
    for path, member in (("/v1/models", "data"), ("/api/tags", "models"), ("/v1beta/models", "models")):
        for key, n in (("first", 1), ("both", 2)):
            _, _, text = ask(server, "GET", path, headers={"X-Api-Key": key})
            check(len(json.loads(text)[member]) == n, path, key, text)
    for path, wanted in (("/models/load", {"model": "two"}), ("/models/unload", {"model": "two"}), ("/lora-adapters", []), ("/api/show", {"model": "two"})):
        check(ask(server, "POST", path, wanted, {"X-Api-Key": "first"})[0] == 403, path, "of another's model")
    # A key for some models closes none of them, since other keys use them, too.
    def open_models():
        return {m["name"] for m in json.loads(ask(server, "GET", "/api/ps", headers={"X-Api-Key": "all"})[2])["models"]}
    check(open_models() == {"one", "two"}, open_models())
    status, _, text = ask(server, "POST", "/models/unload", {"model": "one"}, {"X-Api-Key": "first"})
    check(status == 403 and "may not close a model" in str(text), "unload by a limited key", status, text)
    for path, asked in (("/api/generate", {"prompt": "a"}), ("/api/generate", {"prompt": ""}), ("/api/chat", {"messages": []})):
        closing = {"model": "one", "keep_alive": 0, "stream": False, "options": {"num_predict": 1}, **asked}
        status, _, text = ask(server, "POST", path, closing, {"X-Api-Key": "first"})
        check(status == 200 and json.loads(text)["done_reason"] != "unload", path, asked, status, text)
    check(open_models() == {"one", "two"}, "a limited key closed a model", open_models())
    check(ask(server, "POST", "/models/unload", {"model": "one"}, {"X-Api-Key": "all"})[0] == 200, "unload by an unlimited key")
    check(open_models() == {"two"}, open_models())
    check(ask(server, "POST", "/models/load", {"model": "one"}, {"X-Api-Key": "first"})[0] == 200, "load by a limited key")
    # What other keys' models do is not shown.
    page = {key: ask(server, "GET", "/metrics", headers={"X-Api-Key": key})[2].decode() for key in ("first", "both")}
    check('model="one"' in page["first"] and 'model="two"' not in page["first"] and '"two"' not in page["first"], page["first"])
    check('model="one"' in page["both"] and 'model="two"' in page["both"], page["both"])
    n_slots = [len(json.loads(ask(server, "GET", "/slots", headers={"X-Api-Key": key})[2])) for key in ("first", "both", "all")]
    check(n_slots[0] > 0 and n_slots[1] == n_slots[2] == 2 * n_slots[0], "slots", n_slots)
    check(ask(server, "GET", "/v1beta/models/two", headers={"X-Goog-Api-Key": "first"})[0] == 404, "a model of another's")
    for action in ("save", "restore", "erase"):
        status, _, text = ask(server, "POST", "/slots/0?action=" + action, {"filename": "a"}, {"X-Api-Key": "first"})
        check(status == 403, action, status, text)
    # Another request is allowed after half a minute: a machine that was too busy asks with another key of this rate.
    for key in ("slow0", "slow1", "slow2"):
        began = time.monotonic()
        slow = [ask(server, "POST", "/v1/completions", {"model": "one", "prompt": "a", "max_tokens": 1}, {"X-Api-Key": key}) for _ in range(3)]
        seen = ask(server, "GET", "/slots", headers={"X-Api-Key": key})[0]
        # Whatever computes, opens or closes a model counts.
        counted = {}
        for method, path in (("POST", "/tokenize"), ("POST", "/detokenize"), ("POST", "/apply-template"), ("POST", "/models/load"),
                             ("POST", "/models/unload"), ("POST", "/api/show"), ("GET", "/props?model=one")):
            asked = {"model": "one", "content": "a", "tokens": [1], "messages": HI} if method == "POST" else None
            counted[path] = ask(server, method, path, asked, {"X-Api-Key": key})[0]
        if time.monotonic() - began < 20:
            break
    check([one[0] for one in slow] == [200, 200, 429] and 10 < int(slow[2][1]["Retry-After"]) <= 30, slow)
    check(seen == 200, "looking counts")
    check(set(counted.values()) == {429}, "do not count", counted)
    server.end()
    # The log tells whose requests were refused.
    lines = [json.loads(line) for line in open("keys.log", encoding="utf-8")]
    check({line.get("name") for line in lines if line["status"] == 403} == {"anna"}, [line for line in lines if line["status"] == 403])
    check(all("key" in line and "name" not in line for line in lines if line["status"] == 429), "a key without a name")
    check(not any("key" in line for line in lines if line["status"] == 401), "a key that is not the server's")
    for line, reason in (("a b c d e", "more than the four words KEY NAME MODELS RATE"), ("a b c d", "requests a minute"), ("a b c -1", "requests a minute"), ("#", "no key"),
                         ("anna sk-1", "'anna' is not a key"), ("k n no-such-model", "called 'no-such-model'"), ("k n one,two", "called 'two'")):
        with open("keys", "w", encoding="ascii") as keys:
            keys.write(line + "\n")
        check(reason in client.refused("--keys", "keys", "-c", "512", "-m", "one=tales"), line)
    for line in ("sk-1 anna", "production-of-the-northern-town short"):
        with open("keys", "w", encoding="ascii") as keys:
            keys.write(line + "\n")
        check("is not a key" in client.refused("--api-key-file", "keys", "-c", "512"), line)
    # A comment is neither a key nor a name.
    with open("keys", "w", encoding="ascii") as keys:
        keys.write("s3cret #anna\nben other # of the north\n")
    server = Server("-c", "512", "--api-key-file", "keys")
    check([ask(server, "GET", "/slots", headers={"X-Api-Key": key})[0] for key in ("s3cret", "other", "#anna", "ben")]
          == [200, 200, 401, 401], "a comment in a file of keys")
    server.end()
    # An origin that no browser sends would let nobody in.
    for origin in ("chat.example.org", "https://chat.example.org/", "https://", "https://a.example,https://b.example"):
        check("is not an origin" in client.refused("--cors", origin, "-c", "512"), origin)
    with open("keys", "w", encoding="ascii") as keys:
        keys.write("secret\n")
    server = Server("-c", "512", "--api-key-file", "keys")
    # With a key, who asks is known, from wherever the page came.
    check(ask(server, "POST", CHAT, body, {"Origin": "https://own.example", "X-Api-Key": "secret"})[0] == 200, "a proxy's page")
    server.end()


def exchange(server, *parts):
    """What comes back until the server closes; each part waits for an answer to what was sent before it."""
    text = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as s:
        for i, part in enumerate(parts):
            if i:
                text += s.recv(65536)
            s.sendall(part)
        while part := s.recv(65536):
            text += part
    return text


def test_http(server):
    """HTTP as it is also written."""
    body = json.dumps({"prompt": "Once", "max_tokens": 2, "temperature": 0}).encode()
    head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
    sized = b"Content-Length: %d\r\n" % len(body)
    # Several requests in one piece, answered in their order.
    three = exchange(server, (head + sized + b"\r\n" + body) * 2 + b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    check(three.count(b"HTTP/1.1 200 OK") == 3 and three.count(b'"text_completion"') == 2 and three.endswith(b"}") and
          b'"status":"ok"' in three.rsplit(b"\r\n\r\n", 1)[1], three)
    # A body in small chunks; one that waits to be asked for.
    chunks = b"".join(b"%x\r\n%c\r\n" % (1, c) for c in body) + b"0\r\n\r\n"
    check(exchange(server, head + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
          .startswith(b"HTTP/1.1 200"), "a body in chunks")
    asked = exchange(server, head + sized + b"Connection: close\r\nExpect: 100-continue\r\n\r\n", body)
    check(asked.startswith(b"HTTP/1.1 100") and b"HTTP/1.1 200" in asked, asked[:200])
    # HTTP/1.0 knows no chunks: the stream ends where the connection does.
    body = body[:-1] + b', "stream": true}'
    old = exchange(server, b"POST /v1/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    head, events = old.split(b"\r\n\r\n", 1)
    check(b"200 OK" in head and b"chunked" not in head and events.endswith(b"data: [DONE]\n\n"), old)


for name, template in (("habits", TEMPLATE), ("thinker", TEMPLATE.replace("assistant\\n'", "assistant\\n<think>\\n'")),
                       ("ids", IDS_TEMPLATE)):
    with open(name + ".jinja", "w", encoding="utf-8") as out:
        out.write(template)
    subprocess.run([*os.environ.get("EMULATOR", "").split(), os.environ["BUILD"] + "/tests/make_folder", "qwen3-0.6b",
                    name + "_model", "--layers", "1", "--divide", "8", "--vocab", "300", "--template", name + ".jinja"],
                   check=True, stdout=subprocess.DEVNULL)
both = Server("-m", "tales", "-m", "tools=habits_model", "-m", "thinker=thinker_model", "-m", "ids=ids_model", "-c", "512")
for test in (test_lists, test_errors, test_methods, test_zero_bytes, test_token_bytes,
             test_ids, test_answers, test_template, test_http, test_shapes, test_responses, test_formed,
             test_line_ends, test_results, test_seeds):
    test(both)
both.end()
test_many_answers()
test_end()
test_successor()
test_socket_names()
test_origins()
test_bytes()
sys.exit(1 if client.failures else 0)
