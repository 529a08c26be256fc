# SPDX-License-Identifier: MIT
"""Requests of odd forms: numbers of any size, known members with impossible values, other vendors' lists, HTTP that can
be read in two ways. Each is answered or refused, never half understood."""
import json
import os
import socket
import subprocess
import sys

import client
from client import Server, check

TEMPLATE = r"""{%- for m in messages %}{{- '<|im_start|>' + m.role + '\n' + (m.content or '') }}
{%- for c in m.tool_calls or [] %}{{- '<tool_call>' + (c.function.arguments | tojson) + '</tool_call>' }}{%- endfor %}{{- '<|im_end|>\n' }}{%- endfor %}
{%- if tools %}{{- tools | tojson }}{%- endif %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}{%- endif %}"""
HI = [{"role": "user", "content": "hi"}]
GEMINI_HI = [{"role": "user", "parts": [{"text": "hi"}]}]
CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
WIDE = 18446744073709551615


def function(**parameters):
    return {"type": "function", "function": {"name": "f", "description": "d", "parameters": parameters}}


def test_wide_integers(server):
    """Integers beyond 63 bits are JSON, wherever they stand."""
    prompt = {"model": "tools", "messages": HI, "tools": [function(type="object", properties={"id": {"maximum": WIDE}})]}
    check('{"maximum": 18446744073709551615}' in server.post("/apply-template", prompt)["prompt"], "a tool with such a maximum")
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "x", "type": "function", "function": {
        "name": "f", "arguments": json.dumps({"ids": [WIDE, WIDE - 1, -WIDE, 10 ** 39]})}}]}
    told = server.post("/apply-template", {"model": "tools", "messages": [*HI, call], "tools": prompt["tools"]})["prompt"]
    check("[18446744073709551615, 18446744073709551614, -18446744073709551615, 1%s]" % ("0" * 39) in told, told)
    for path, body in (
            (CHAT, prompt),
            (TEXT, {"prompt": "a", "seed": WIDE}), (TEXT, {"prompt": "a", "x": [-9223372036854775809, 10 ** 200]}),
            ("/v1/messages", {"messages": [*HI, {"role": "assistant", "content": [
                {"type": "tool_use", "id": "x", "name": "f", "input": {"id": WIDE}}]}, {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "x", "content": "ok"}]}]}),
            ("/api/chat", {"stream": False, "messages": [*HI, {"role": "assistant", "tool_calls": [
                {"function": {"name": "f", "arguments": {"id": 123456789012345678901}}}]}]}),
            (TEXT, {"prompt": "a", "json_schema": {"type": "integer", "maximum": WIDE}})):
        server.post(path, {"model": "tools", "max_tokens": 3, **body})
    status, text = ask_text(server, TEXT, '{"prompt": "a", "x": 1e999}')
    check(status == 400, "a number beyond all", text)
    # Digits of fractions, of exponents and in texts are none of their own; ids stay whole numbers beside a wide one.
    many = "1" * 40
    status, text = ask_text(server, TEXT, '{"prompt": [3, 4], "max_tokens": 1, "x": [0.%s, 1e-%s, "%s", %s, -%s]}' % (
        many, "0" * 30 + "1", many, many, many))
    check(status == 200, text)
    same = [server.post(TEXT, {"prompt": "a", "seed": WIDE, "max_tokens": 8})["choices"][0]["text"] for _ in range(2)]
    check(same[0] == same[1], "a wide seed", same)


def ask_text(server, path, text):
    connection = client.http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    connection.request("POST", path, text)
    reply = connection.getresponse()
    got = reply.status, reply.read()
    connection.close()
    return got


def test_values(server):
    """A known member with a value that cannot be followed is refused; null is as if it were absent."""
    chat, text = {"messages": HI}, {"prompt": "a"}
    said = {"role": "user", "content": "hi"}
    for path, base, members in (
            (TEXT, text, {"logprobs": ("3", 2.5, -1, 21, []), "echo": ("yes", 1), "ignore_eos": ("yes",),
                          "stream_options": ("x", []), "top_logprobs": (2,), "lora": ({}, "x"), "adapters": ([],),
                          "suffix": (5,), "model": (5, []), "grammar": (5,), "response_format": ("json",)}),
            (TEXT, {**text, "stream": True}, {"stream_options": ({"include_usage": "yes"},)}),
            (CHAT, chat, {"logprobs": ("yes",), "top_logprobs": (2, "2"), "reasoning_effort": (5,),
                          "continue_final_message": ("yes",), "add_generation_prompt": (1,), "tool_choice": ("always",),
                          "parallel_tool_calls": ("no",)}),
            ("/completion", text, {"n_probs": ("3", 1.5, -1), "n_predict": ("x",), "stream": ("yes",)}),
            ("/infill", {"input_prefix": "a"}, {"input_extra": ({}, "x")}),
            ("/v1/responses", {"input": "hi"}, {"instructions": (["a"], 5), "text": ("x", {"format": 5}),
                                                "reasoning": ("low", {"effort": 5}), "previous_response_id": (5,)}),
            ("/v1/messages", {"messages": [said]}, {"stop_sequences": ("x", {}), "thinking": (True, {"type": "x"}),
                                                    "tool_choice": ("auto",), "stream": ("yes",)}),
            ("/api/chat", {"messages": [said], "stream": False}, {"options": ([], "x"), "think": (5,)}),
            ("/api/generate", {"prompt": "a", "stream": False}, {"raw": ("yes",), "stream": ("no",)}),
            ("/tokenize", {"content": "a"}, {"add_special": ("yes",), "parse_special": (1,), "with_pieces": ("no",)}),
            ("/v1/embeddings", {"input": "a"}, {"encoding_format": (5, "hex"), "dimensions": ("x", 0, 1.5, 99999)})):
        base = {"model": "tools", "max_tokens": 1, **base}
        for name, values in members.items():
            for value in values:
                error = server.post(path, {**base, name: value}, 400)["error"]
                message = error if isinstance(error, str) else error["message"]
                inner = [*(value if isinstance(value, dict) else ()), "max_tokens"]
                check(any(key in message for key in (name.rstrip("s"), *inner)), path, name, value, error)
            if path != "/infill":  # the model has no tokens for it
                status, got = server.ask("POST", path, {**base, name: None})
                check(status == 200, path, name, "null", got[:200])
    # Whole numbers may be written with a fraction.
    for value in (2, 2.0):
        logs = server.post(TEXT, {**text, "max_tokens": 1, "logprobs": value})["choices"][0]["logprobs"]
        check(len(logs["top_logprobs"][0]) == 2, value, logs)
    width = len(server.post("/v1/embeddings", {"input": "a"})["data"][0]["embedding"])
    server.post("/v1/embeddings", {"input": "a", "dimensions": float(width)})


def test_biases(server):
    """llama.cpp's list of pairs, where false forbids."""
    body = {"prompt": "Once upon", "n_predict": 1, "temperature": 0, "n_probs": 3}

    def best(**fields):
        return server.post("/completion", {**body, **fields})["completion_probabilities"][0]["id"]
    first = best()
    forbidden = best(logit_bias=[[first, False]])
    check(forbidden != first == best(logit_bias=[[first, 2.5]]) == best(logit_bias=[]), first, forbidden)
    # a key with a blank before its digits is a text, such as a word's token, and no id
    server.post("/completion", {**body, "logit_bias": {"999999": 1}}, 400)
    server.post("/completion", {**body, "logit_bias": {" 999999": 1}})
    check(best(logit_bias=[[first, -100], [forbidden, False]]) == best(logit_bias={str(first): -100, str(forbidden): False}),
          "a list is not what an object is")
    for wrong in ([[first]], [first, 1], [[first, True]], [["", 1]], [[first, 101]], [[-1, 1]], 5, "x"):
        server.post("/completion", {**body, "logit_bias": wrong}, 400)


def test_probabilities(server):
    """n_probs in a stream: each chunk has those of its tokens."""
    body = {"prompt": "Once upon a time", "n_predict": 9, "n_probs": 3, "temperature": 0}
    whole = server.post("/completion", body)
    text = server.ask("POST", "/completion", {**body, "stream": True})[1].decode()
    chunks = [json.loads(line[6:]) for line in text.split("\n\n") if line.startswith("data: ")]
    streamed = [one for chunk in chunks for one in chunk.get("completion_probabilities", [])]
    check(len(streamed) == 9 and streamed == whole["completion_probabilities"], streamed, whole)
    check("".join(chunk["content"] for chunk in chunks) == whole["content"], chunks)


def test_places(server):
    """text_offset is where a token stands in the text, streamed or whole, with the prompt or without."""
    part = server.post("/tokenize", {"model": "tools", "content": "€"})["tokens"][:2]
    for model, prompt in (("tools", part), ("tools", [*part, 104]), ("tiny", "the land"), ("tiny", " the land and"), ("tiny", [1, 260, 261]), ("tiny", [260, 261]),
                          ("tales", "Once upon"), ("tools", "a€b"), ("tools", [104, 105])):
        for fields in ({}, {"echo": True}, {"echo": True, "max_tokens": 0}, {"stop": ["e"]}, {"stop": [" a"], "echo": True}):
            body = {"model": model, "prompt": prompt, "max_tokens": 24, "temperature": 0, "logprobs": 0, "ignore_eos": True, **fields}
            choice = server.post(TEXT, body)["choices"][0]
            text, logs = choice["text"], choice["logprobs"]
            places = logs["text_offset"]
            check(places == sorted(places) and all(0 <= at <= len(text) for at in places), model, prompt, fields, text, places)
            for at, token in zip(places, logs["tokens"]):
                is_whole = not token.startswith(("bytes:", "<"))
                fits = [own.startswith(text[at:at + len(own)]) for own in {token, token.lstrip(" ") if at == 0 else token}]
                check(not is_whole or any(fits), model, prompt, fields, at, token, text)
            lines = server.ask("POST", TEXT, {**body, "stream": True})[1].decode().split("\n\n")
            pieces = [json.loads(line[6:])["choices"][0] for line in lines if line.startswith("data: {")]
            check("".join(piece["text"] for piece in pieces) == text, model, prompt, fields)
            for key in ("tokens", "text_offset", "token_logprobs"):
                check([x for piece in pieces for x in (piece["logprobs"] or {key: []})[key]] == logs[key], key, model, prompt,
                      fields, logs[key], pieces)


def test_tools(server):
    """Tools that are not functions are left out; those of Anthropic's API reach a template as OpenAI's do."""
    shell = {"type": "function", "name": "shell", "description": "run", "strict": False,
             "parameters": {"type": "object", "properties": {"command": {"type": "array", "items": {"type": "string"}}}}}
    others = [{"type": "web_search"}, {"type": "file_search", "vector_store_ids": ["x"]}]
    custom = {"type": "custom", "name": "apply_patch", "description": "x", "format": {"type": "text"}}
    body = {"model": "tools", "input": "hi", "max_output_tokens": 16, "temperature": 0}

    def said(**fields):
        return [item.get("content") for item in server.post("/v1/responses", {**body, **fields})["output"]]
    check(said(tools=[shell, *others]) == said(tools=[shell]) != said(), "tools of other kinds")
    check(said(tools=others) == said(), "no function at all")
    server.post("/v1/responses", {**body, "tools": [shell, *others, custom]})
    server.post("/v1/responses", {**body, "tools": others, "tool_choice": "required"}, 400)
    server.post("/v1/responses", {**body, "tools": [{"type": "function"}]}, 400)

    def named(name):
        return {"type": "function", "name": name}

    def space(name, within):
        return {"type": "namespace", "name": name, "tools": [named(within)]}
    # A call must mean one tool: names that become one are refused, the same tool twice is not.
    for tools, expected in (([space("db", "prod__drop"), space("db__prod", "drop")], 400), ([named("db__x"), space("db", "x")], 400),
                            ([space("db", "x"), named("db__x")], 400), ([named("apply_patch"), {"type": "apply_patch"}], 400),
                            ([{"type": "apply_patch"}, named("apply_patch")], 400), ([{"type": "custom", "name": "x"}, named("x")], 400),
                            ([named("x"), named("x")], 200), ([space("a", "x"), space("b", "x"), named("x")], 200)):
        server.post("/v1/responses", {**body, "tools": tools}, expected)
    pair = [{"type": "custom", "custom": {"name": "x"}}, {"type": "function", "function": {"name": "x"}}]
    for tools in (pair, pair[::-1]):
        server.post(CHAT, {"model": "tools", "messages": HI, "max_tokens": 1, "tools": tools}, 400)
    server.post("/v1/responses", {**body, "tools": [{"name": "f"}]}, 400)
    tool = function(type="object", properties={"a": {"type": "string"}})
    asked = {"model": "tools", "messages": HI, "max_tokens": 24, "temperature": 0}
    theirs = server.post("/v1/messages", {**asked, "tools": [{"input_schema": tool["function"]["parameters"], "name": "f",
                                                              "description": "d"}]})
    ours = server.post(CHAT, {**asked, "tools": [tool]})
    check(theirs["usage"]["input_tokens"] + theirs["usage"]["cache_read_input_tokens"] == ours["usage"]["prompt_tokens"] and
          theirs["content"][0]["text"] == ours["choices"][0]["message"]["content"], "the same tools, another prompt", theirs, ours)


def test_thinking(server):
    """A prompt that closes its thinking section is followed by the answer."""
    body = {"model": "tools", "messages": HI, "tools": [function(type="object", properties={}, additionalProperties=False)],
            "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 120, "chat_template_kwargs": {"enable_thinking": False}}
    for seed in range(8):
        message = server.post(CHAT, {**body, "seed": seed})["choices"][0]["message"]
        check("reasoning_content" not in message and not message["content"] and message["tool_calls"], seed, message)
    check("thinking" in server.post("/api/show", {"model": "tools"})["capabilities"], "/api/show of a switch")
    check("thinking" not in server.post("/api/show", {"model": "tales"})["capabilities"], "/api/show without one")


def test_no_template(server):
    """A chat with a model that has no template is refused on every path, and the server lives on."""
    for path, body in ((CHAT, {"messages": HI}), (CHAT + "/render", {"messages": HI}), (CHAT, {"messages": HI, "stream": True}),
                       (CHAT, {"messages": HI, "tools": [function(type="object")]}), ("/v1/responses", {"input": "hi"}),
                       ("/v1/responses/input_tokens", {"input": "hi"}), ("/v1/messages", {"messages": HI, "max_tokens": 4}),
                       ("/v1/messages/count_tokens", {"messages": HI}), ("/apply-template", {"messages": HI}),
                       ("/api/chat", {"messages": HI}), ("/v1beta/models/tiny:generateContent", {"contents": GEMINI_HI}),
                       ("/v1beta/models/tiny:countTokens", {"contents": GEMINI_HI})):
        status, reply = server.ask("POST", path, {"model": "tiny", **body})
        check(status == 400 and b"template" in reply, path, status, reply[:200])
    check(server.ask("GET", "/props?model=tiny")[0] == 200, "/props of such a model")


def test_empty_message(server):
    """An empty block is an empty message, not an answer that is to be continued."""
    begun = [*HI, {"role": "assistant", "content": "Once upon"}]

    def count(content):
        messages = [*begun, {"role": "user", "content": content}] if content is not None else begun
        return server.post("/v1/messages/count_tokens", {"model": "tools", "messages": messages})["input_tokens"]
    check(count([{"type": "text", "text": ""}]) == count("") == count([]) > count(None), count(""), count(None))


def test_queue_names(server):
    """Made-up keys are names that nobody checked: they are not told apart in the queue, and not in the log."""
    for key in ("a", "b"):
        check(server.ask("POST", TEXT, {"prompt": "a", "max_tokens": 1}, {"Authorization": "Bearer " + key})[0] == 200, key)
    with open("forms.log", encoding="utf-8") as log:
        keys = {line["key"] for line in map(json.loads, log) if "key" in line}
    check(not keys, keys)


def exchange(server, raw):
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as s:
        s.sendall(raw)
        text = b""
        while part := s.recv(65536):
            text += part
    return text


def test_http(server):
    """What another server could read otherwise is refused."""
    body = b'{"prompt": "a", "max_tokens": 1}'
    sized = b"Content-Length: %d\r\n" % len(body)
    chunks = b"%x\r\n%s\r\n0\r\n" % (len(body), body)

    def sent(fields, rest, version=b"HTTP/1.1", path=b"/v1/completions"):
        got = exchange(server, b"POST " + path + b" " + version + b"\r\nConnection: close\r\n" + fields + b"\r\n" + rest)
        return int(got.split(b" ")[1]) if got else 0
    host = b"Host: x\r\n"
    check(sent(host + sized, body) == 200 and sent(host + b"Transfer-Encoding: chunked\r\n", chunks + b"\r\n") == 200, "plain")
    for name, got in (
            ("no host", sent(sized, body)), ("two hosts", sent(host + b"Host: y\r\n" + sized, body)),
            ("a packed body", sent(host + b"Content-Encoding: gzip\r\n" + sized, body)),
            ("chunks of an older version", sent(host + b"Transfer-Encoding: chunked\r\n", chunks + b"\r\n", b"HTTP/1.0")),
            ("a length behind the body", sent(host + b"Transfer-Encoding: chunked\r\n", chunks + b"Content-Length: 5\r\n\r\n"))):
        check(got == 400, name, got)
    check(sent(host + sized, body, path=b"/v1/completions%00x") == 404, "a path with a zero byte")
    check(sent(host + sized, body, path=b"/v1/%63ompletions") == 200, "a path with an escape")
    check(sent(sized, body, b"HTTP/1.0") == 200, "an older version needs no host")


def test_secrets():
    """No path of a file is told: not as a model's name, not in errors; and a scheme's letters are of either case."""
    with open("keys", "w", encoding="ascii") as out:
        out.write("secret\n")
    server = Server("-m", os.path.abspath("tiny.gguf"), "--api-key-file", "keys", "-c", "128")
    models = server.get("/v1/models")["data"]
    check([model["id"] for model in models] == ["tiny.gguf"], models)
    for scheme in ("Bearer", "bearer", "BEARER"):
        status, text = server.ask("POST", TEXT, {"prompt": "a", "max_tokens": 1}, {"Authorization": scheme + " secret"})
        check(status == 200 and os.getcwd() not in text.decode(), scheme, status, text)
    status, text = server.ask("POST", "/infill", {"input_prefix": "a", "input_suffix": "b"}, {"X-Api-Key": "secret"})
    check(status == 400 and b"tiny.gguf" in text and os.getcwd().encode() not in text, "an error names the file's folder", text)
    server.end()


with open("forms.jinja", "w", encoding="utf-8") as file:
    file.write(TEMPLATE)
subprocess.run([*os.environ.get("EMULATOR", "").split(), os.environ["BUILD"] + "/tests/make_folder", "qwen3-0.6b", "forms_model",
                "--layers", "1", "--divide", "8", "--vocab", "300", "--template", "forms.jinja"], check=True,
               stdout=subprocess.DEVNULL)
if os.path.exists("forms.log"):
    os.remove("forms.log")
shared = Server("-m", "tales", "-m", "tools=forms_model", "-m", "tiny=tiny.gguf", "-c", "512", "--log", "forms.log")
for test in (test_wide_integers, test_values, test_biases, test_probabilities, test_places, test_tools, test_thinking,
             test_no_template,
             test_empty_message, test_queue_names, test_http):
    test(shared)
shared.end()
test_secrets()
sys.exit(1 if client.failures else 0)
