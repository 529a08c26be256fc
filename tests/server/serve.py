# SPDX-License-Identifier: MIT
"""whit serve with the built-in model: endpoints, streams, bounds, and the same answers alone and together."""
import atexit
import base64
import hashlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

failed = 0
said = []  # on stderr, by the server that was started last


def check(ok, *what):
    global failed
    if not ok:
        failed += 1
        print("FAILED:", *what)


def start(*arguments):
    command = os.environ.get("SERVER", os.environ["WHIT"] + " serve").split()
    process = subprocess.Popen([*command, "--port", "0", "-t", "2", *arguments], stderr=subprocess.PIPE)
    atexit.register(process.kill)  # whatever goes wrong: else the test would never end
    said.clear()
    for line in process.stderr:
        said.append(line)
        found = re.search(rb"http://127\.0\.0\.1:(\d+)", line)
        if found:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, int(found.group(1))
        print(line.decode().rstrip())
    sys.exit("the server did not start")


def ask(method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1200)
    data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
    connection.request(method, path, data, headers or {})
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    return reply.status, text


def post(path, body, status=200):
    got, text = ask("POST", path, body)
    check(got == status, path, str(body)[:200], "gave", got, text[:300])
    return json.loads(text)


def metric(name):
    """Of the first model."""
    text = ask("GET", "/metrics")[1].decode()
    return float(re.search(r"^whit:%s\{model=\"[^\"]*\"\} (\S+)$" % name, text, re.M).group(1))


def events(body, path="/v1/chat/completions"):
    status, text = ask("POST", path, {**body, "stream": True})
    check(status == 200, body, status, text[:200])
    lines = [line[6:] for line in text.decode().split("\n\n") if line.startswith("data: ")]
    check(lines and lines[-1] == "[DONE]", "the stream does not end with [DONE]")
    return [json.loads(line) for line in lines[:-1]]


def test_endpoints():
    for path in ("/health", "/v1/models", "/models", "/props", "/slots", "/v1/slots"):
        status, text = ask("GET", path)
        check(status == 200, path, status)
        json.loads(text)
    check(metric("requests_processing") == 0, "no metrics")
    done = post("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 0, "logprobs": 2})
    choice = done["choices"][0]
    check(done["usage"]["completion_tokens"] == 12 and choice["finish_reason"] == "length", done)
    check("".join(choice["logprobs"]["tokens"]) == choice["text"], choice)
    check(all(len(top) == 2 for top in choice["logprobs"]["top_logprobs"]), choice)
    echoed = post("/completions", {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 0, "echo": True})
    check(echoed["choices"][0]["text"] == "Once upon a time" + choice["text"], echoed)
    ids = post("/tokenize", {"content": "Once upon a time", "add_special": True})["tokens"]
    again = post("/v1/completions", {"prompt": ids, "max_tokens": 12, "temperature": 0})
    check(again["choices"][0]["text"] == choice["text"], again)
    check("Once upon" in post("/detokenize", {"tokens": ids})["content"], "detokenize")
    chat = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a cat and a dog"}],
            "seed": 7, "max_tokens": 60}
    whole = post("/v1/chat/completions", chat)["choices"][0]
    check(whole["message"]["role"] == "assistant" and "refusal" in whole["message"], whole)
    chunks = events({**chat, "stream_options": {"include_usage": True}})
    check(chunks[0]["choices"][0]["delta"]["role"] == "assistant", chunks[0])
    check(len({c["id"] for c in chunks}) == 1, "several ids in a stream")
    check(chunks[-1]["choices"] == [] and chunks[-1]["usage"]["completion_tokens"] > 0, chunks[-1])
    text = "".join(c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"])
    check(text == whole["message"]["content"], text, whole)
    check(chunks[-2]["choices"][0]["finish_reason"] == whole["finish_reason"], chunks[-2])
    several = post("/v1/completions", {"prompt": "The", "n": 3, "seed": 1, "max_tokens": 8})["choices"]
    check([c["index"] for c in several] == [0, 1, 2] and len({c["text"] for c in several}) > 1, several)
    stopped = post("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 0,
                                       "stop": choice["text"][6:9]})["choices"][0]
    check(stopped["finish_reason"] == "stop" and stopped["text"] == choice["text"][:6], stopped)
    schema = {"type": "object", "properties": {"pet": {"enum": ["cat", "dog"]}, "n": {"type": "integer"}},
              "required": ["pet", "n"], "additionalProperties": False}
    form = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}
    for seed in range(8):
        made = post("/v1/chat/completions", {**chat, "temperature": 1.5, "seed": seed, "response_format": form})
        value = json.loads(made["choices"][0]["message"]["content"])
        check(value["pet"] in ("cat", "dog") and isinstance(value["n"], int), value)


def test_prompt_logprobs():
    """What evaluation harnesses ask: how likely a text is, token by token, one or many."""
    body = {"max_tokens": 0, "echo": True, "logprobs": 2, "temperature": 0}
    text = "Once upon a time there was a cat and a dog"
    before = metric("prompt_tokens_total"), metric("prompt_seconds_total")
    whole = post("/v1/completions", {**body, "prompt": text})
    check(metric("prompt_tokens_total") - before[0] == whole["usage"]["prompt_tokens"] and
          metric("prompt_seconds_total") > before[1], "a prompt without an answer is not counted")
    choice, logs = whole["choices"][0], whole["choices"][0]["logprobs"]
    check(choice["text"] == text and choice["finish_reason"] == "length", choice)
    check(logs["token_logprobs"][0] is None and logs["top_logprobs"][0] is None, logs)
    check("".join(logs["tokens"][1:]) == text and all(v <= 0 for v in logs["token_logprobs"][1:]), logs)
    check(all(text[at:at + len(token)] == token for at, token in list(zip(logs["text_offset"], logs["tokens"]))[1:]), logs)
    check(all(len(top) == 2 for top in logs["top_logprobs"][1:]) and
          whole["usage"]["completion_tokens"] == 0, whole)
    # Each is what generation gives that token after the same beginning.
    ids = post("/tokenize", {"content": text, "add_special": True})["tokens"]
    for at in range(1, len(ids), 3):
        one = post("/v1/completions", {"prompt": ids[:at], "max_tokens": 1, "logprobs": 20, "temperature": 0})
        top = one["choices"][0]["logprobs"]["top_logprobs"][0]
        if logs["tokens"][at] in top:
            check(top[logs["tokens"][at]] == logs["token_logprobs"][at], at, top, logs["token_logprobs"][at])
    texts = [text, "The end", ids[:5], text]
    for options in ({}, {"max_tokens": 4}, {"max_tokens": 4, "n": 2}):
        alone = []
        for one in texts:
            alone += post("/v1/completions", {**body, **options, "prompt": one, "seed": 3})["choices"]
        many = post("/v1/completions", {**body, **options, "prompt": texts, "seed": 3})
        check([c["index"] for c in many["choices"]] == list(range(len(alone))), many["choices"])
        check([{**c, "index": 0} for c in many["choices"]] == [{**c, "index": 0} for c in alone], options)
    streamed = events({**body, "prompt": text, "max_tokens": 5}, "/v1/completions")
    whole = post("/v1/completions", {**body, "prompt": text, "max_tokens": 5})["choices"][0]
    check("".join(c["choices"][0]["text"] for c in streamed) == whole["text"], streamed)
    for key in ("tokens", "token_logprobs", "text_offset", "top_logprobs"):
        pieces = [x for c in streamed for x in (c["choices"][0]["logprobs"] or {key: []})[key]]
        check(pieces == whole["logprobs"][key], key, pieces, whole["logprobs"][key])
    post("/v1/completions", {"prompt": ["a"] * 65}, 400)


def named_events(path, body):
    """Server-sent events with names, as Anthropic's and OpenAI's newer clients read them."""
    status, text = ask("POST", path, {**body, "stream": True})
    check(status == 200, path, body, status, text[:200])
    found = []
    for block in text.decode().split("\n\n"):
        if block and not block.startswith(":"):
            name, data = block.split("\n")
            found.append(json.loads(data[6:]))
            check(name == "event: " + found[-1]["type"], name, data[:100])
    return found


def test_vendors():
    """/v1/messages and /v1/responses say what /v1/chat/completions says."""
    options = {"seed": 5, "temperature": 0.7}
    messages = [{"role": "user", "content": "a cat"}, {"role": "assistant", "content": "A cat!"},
                {"role": "user", "content": "and a dog"}]
    same = post("/v1/chat/completions", {"messages": messages, "max_tokens": 40, **options})
    text = same["choices"][0]["message"]["content"]
    blocks = [{**m, "content": [{"type": "text", "text": m["content"]}]} for m in messages]
    for form in (messages, blocks):
        body = {"model": "x", "max_tokens": 40, "messages": form, **options}
        whole = post("/v1/messages", body)
        check([(b["type"], b["text"]) for b in whole["content"]] == [("text", text)] and whole["role"] == "assistant", whole)
        used = whole["usage"]
        check(used["input_tokens"] + used["cache_read_input_tokens"] == same["usage"]["prompt_tokens"], used)
        check(post("/v1/messages/count_tokens", body)["input_tokens"] == same["usage"]["prompt_tokens"], "count_tokens")
        stream = named_events("/v1/messages", body)
        check([e["type"] for e in stream if e["type"] != "content_block_delta"] == [
            "message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop"], stream)
        check("".join(e["delta"]["text"] for e in stream if e["type"] == "content_block_delta") == text, stream)
        check(stream[-2]["delta"]["stop_reason"] == whole["stop_reason"], stream)
    system = {"max_tokens": 9, "system": [{"type": "text", "text": "Be brief."}], "messages": messages[:1], **options}
    plain = {"messages": [{"role": "system", "content": "Be brief."}, messages[0]], "max_tokens": 9, **options}
    check(post("/messages", system)["content"][0]["text"] ==
          post("/chat/completions", plain)["choices"][0]["message"]["content"], "a system prompt")
    stopped = post("/v1/messages", {**body, "stop_sequences": [text[3:6]]})
    check(stopped["stop_reason"] == "stop_sequence" and stopped["stop_sequence"] == text[3:6] and
          stopped["content"][0]["text"] == text[:3], stopped)
    pets = {"type": "json_schema", "schema": {"enum": ["cat", "dog"]}}
    for form in ({"output_config": {"format": pets}}, {"output_format": pets}, {"output_config": {}, "output_format": pets}):
        made = post("/v1/messages", {**body, **form})
        check(json.loads(made["content"][0]["text"]) in ("cat", "dog"), form, made)
        said = [e["delta"]["text"] for e in named_events("/v1/messages", {**body, **form}) if e["type"] == "content_block_delta"]
        check("".join(said) == made["content"][0]["text"], form, said)
    for form in ({"output_config": None, "output_format": None}, {"output_config": {"format": None, "effort": "low"}}):
        check(post("/v1/messages", {**body, **form})["content"] == whole["content"], form)
    for bad in ({"messages": messages}, {**body, "messages": []}, {**body, "messages": "x"},
                {**body, "output_config": {"format": {"type": "text"}}}, {**body, "output_format": {"type": "json_schema"}},
                {**body, "output_format": "json_schema"},
                {**body, "output_format": {**pets, "schema": {"properties": {"a": {"not": {"uniqueItems": True}}}}}},
                {**body, "messages": [{"role": "user", "content": [{"type": "image"}]}]},
                {**body, "tools": [{"type": "computer_20250124", "name": "computer"}]}):
        error = post("/v1/messages", bad, 400)
        check(error["type"] == "error" and error["error"]["message"], bad, error)

    parts = [{"role": m["role"], "content": [{"type": "input_text", "text": m["content"]}]} for m in messages]
    for form in (messages, parts):
        body = {"input": form, "max_output_tokens": 40, **options}
        whole = post("/v1/responses", body)
        check([p["text"] for item in whole["output"] for p in item["content"]] == [text], whole)
        check(whole["usage"]["input_tokens"] == same["usage"]["prompt_tokens"], whole)
        cut = same["choices"][0]["finish_reason"] == "length"
        check(whole["status"] == ("incomplete" if cut else "completed"), whole)
        stream = named_events("/v1/responses", body)
        check([e["sequence_number"] for e in stream] == list(range(len(stream))), "sequence numbers")
        check("".join(e["delta"] for e in stream if e["type"] == "response.output_text.delta") == text, stream)
        last = stream[-1]["response"]
        check([i["content"] for i in last["output"]] == [i["content"] for i in whole["output"]] and
              last["status"] == whole["status"], last)
    brief = post("/v1/responses", {"input": "a cat", "instructions": "Be brief.", "max_output_tokens": 9, **options})
    check(brief["output"][0]["content"][0]["text"] == post("/messages", system)["content"][0]["text"], brief)
    schema = {"type": "object", "properties": {"pet": {"enum": ["cat", "dog"]}}, "required": ["pet"],
              "additionalProperties": False}
    made = post("/v1/responses", {"input": "a pet", "text": {"format": {"type": "json_schema", "name": "pet",
                                                                        "schema": schema}}, **options})
    check(json.loads(made["output"][0]["content"][0]["text"])["pet"] in ("cat", "dog"), made)
    none = {"conversation": None, "prompt": None, "background": False}
    check(post("/v1/responses", {**body, **none})["status"] == whole["status"], none)
    for bad in ({"input": []}, {}, {"input": "x", "previous_response_id": "resp_1"}, {"input": [{"type": "nonsense"}]},
                {"input": "x", "conversation": "conv_1"}, {"input": "x", "conversation": {"id": "conv_1"}},
                {"input": "x", "background": True}, {"input": "x", "prompt": {"id": "pmpt_1"}},
                {"input": "x", "tools": [{"type": "computer_use_preview"}]}):
        check(post("/v1/responses", bad, 400)["error"]["message"], bad)


TOOLS_TEMPLATE = r"""{%- if tools %}{{- '<|im_start|>system\n' }}{%- for tool in tools %}{{- tool | tojson }}{%- endfor %}
{{- '\nAnswer with <tool_call>\n{"name": NAME, "arguments": {}}\n</tool_call><|im_end|>\n' }}{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}{{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' }}
{%- else %}{{- '<|im_start|>' + message.role + '\n' + (message.content or '') }}
{%- for call in message.tool_calls or [] %}{{- '<tool_call>\n' + ({'name': call.function.name, 'arguments': call.function.arguments} | tojson) + '\n</tool_call>' }}{%- endfor %}
{{- '<|im_end|>\n' }}{%- endif %}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}"""


def test_tools():
    """Calls of a model whose template has tools, in all three forms; a grammar makes it call."""
    global port
    with open("tools.jinja", "w", encoding="utf-8") as out:
        out.write(TOOLS_TEMPLATE)
    subprocess.run([*os.environ.get("EMULATOR", "").split(), os.environ["BUILD"] + "/tests/make_folder", "qwen3-0.6b",
                    "tools_model", "--layers", "1", "--divide", "8", "--vocab", "300", "--template", "tools.jinja"],
                   check=True, stdout=subprocess.DEVNULL)
    before, (server, port) = port, start("-m", "tools_model", "-c", "4096")
    arguments = {"city": "Bern", "n": 2}
    call = r'<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\", \"n\": 2}}\n</tool_call>'
    grammar = {"grammar": 'root ::= "Let me see. ' + call + call + '"', "temperature": 0}
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer"}}}
    function = {"name": "weather", "description": "The weather", "parameters": schema}
    tools = [{"type": "function", "function": function}]
    question = [{"role": "user", "content": "How is it in Bern?"}]
    done = post("/v1/chat/completions", {"messages": question, "tools": tools, **grammar})["choices"][0]
    check(done["finish_reason"] == "tool_calls" and done["message"]["content"].strip() == "Let me see.", done)
    calls = done["message"]["tool_calls"]
    check([json.loads(c["function"]["arguments"]) for c in calls] == [arguments] * 2, calls)
    check([c["function"]["name"] for c in calls] == ["weather"] * 2 and calls[0]["id"] != calls[1]["id"], calls)
    chunks = events({"messages": question, "tools": tools, **grammar})
    pieces = [c for e in chunks for c in e["choices"][0]["delta"].get("tool_calls", [])]
    check([json.loads("".join(p["function"].get("arguments", "") for p in pieces if p["index"] == i))
           for i in range(2)] == [arguments] * 2, pieces)

    body = {"max_tokens": 400, "messages": question, **grammar, "tools": [
        {"name": "weather", "description": "The weather", "input_schema": schema}]}
    whole = post("/v1/messages", body)
    used = [b for b in whole["content"] if b["type"] == "tool_use"]
    check(whole["stop_reason"] == "tool_use" and [b["input"] for b in used] == [arguments] * 2, whole)
    stream = named_events("/v1/messages", body)
    begun = [e["content_block"] for e in stream if e["type"] == "content_block_start"]
    check([b["type"] for b in begun] == ["text", "tool_use", "tool_use"], begun)
    for i in (1, 2):
        check(json.loads("".join(e["delta"]["partial_json"] for e in stream if e["type"] == "content_block_delta" and
                                 e["index"] == i)) == arguments, stream)
    check(stream[-2]["delta"]["stop_reason"] == "tool_use", stream[-2])

    asked = {"input": question, **grammar, "tools": [{"type": "function", **function}]}
    answer = post("/v1/responses", asked)
    check([i["type"] for i in answer["output"]] == ["message", "function_call", "function_call"], answer)
    check([json.loads(i["arguments"]) for i in answer["output"][1:]] == [arguments] * 2, answer)
    stream = named_events("/v1/responses", asked)
    check([{**i, "id": 0, "call_id": 0} for i in stream[-1]["response"]["output"]] ==
          [{**i, "id": 0, "call_id": 0} for i in answer["output"]], stream[-1])

    # Thinking has parts, as text has: clients add a delta to the part that was added before it.
    thought = {"input": question, "temperature": 0, "grammar": 'root ::= "<think>a why</think>yes"'}
    stream = [e for e in named_events("/v1/responses", thought) if not e["type"].endswith(".delta")]
    check([e["type"][9:] for e in stream] == [
        "created", "in_progress",
        "output_item.added", "content_part.added", "reasoning_text.done", "content_part.done", "output_item.done",
        "output_item.added", "content_part.added", "output_text.done", "content_part.done", "output_item.done",
        "completed"], stream)
    check([e["part"] for e in stream if "part" in e and e["output_index"] == 0] ==
          [{"type": "reasoning_text", "text": ""}, {"type": "reasoning_text", "text": "a why"}], stream)

    # What the tools gave, in three forms, is one prompt.
    results = ["sunny", "17 degrees"]
    as_chat = question + [done["message"]] + [
        {"role": "tool", "tool_call_id": c["id"], "content": r} for c, r in zip(calls, results)]
    as_messages = question + [{"role": "assistant", "content": whole["content"]}, {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": b["id"], "content": [{"type": "text", "text": r}]}
        for b, r in zip(used, results)]}]
    as_items = question + answer["output"] + [
        {"type": "function_call_output", "call_id": i["call_id"], "output": r}
        for i, r in zip(answer["output"][1:], results)]
    more = {"seed": 3, "temperature": 0.5}
    one = post("/v1/chat/completions", {"messages": as_chat, "tools": tools, "max_tokens": 8, **more})
    two = post("/v1/messages", {"messages": as_messages, "tools": body["tools"], "max_tokens": 8, **more})
    three = post("/v1/responses", {"input": as_items, "tools": asked["tools"], "max_output_tokens": 8, **more})
    n = one["usage"]["prompt_tokens"]
    check(n == two["usage"]["input_tokens"] + two["usage"]["cache_read_input_tokens"] == three["usage"]["input_tokens"],
          one["usage"], two["usage"], three["usage"])
    check(one["choices"][0]["message"]["content"] == "".join(b["text"] for b in two["content"]), one, two)
    test_cut_calls(question, tools)
    test_forced_tools(question)
    server.send_signal(signal.SIGTERM)
    check(server.wait(60) == 0, "the server did not end well")
    port = before


def saying(text):
    """A program that has the model write this, token by token, and end."""
    ids = post("/tokenize", {"content": text})["tokens"]
    return "let ids = [%s]\nlogits[int(ids[step])] = 1000000.0\nif step == %d { end = 1 }" % (
        ", ".join(map(str, ids)), len(ids) - 1)


def ollama_calls(body):
    """Of /api/chat, streamed and whole."""
    whole = post("/api/chat", {**body, "stream": False})["message"]
    found = []
    for line in lines("/api/chat", body):
        check(line["done"] or line["message"]["content"] or line["message"].get("tool_calls"), "a line without anything", line)
        found += line["message"].get("tool_calls", [])
    check(found == whole.get("tool_calls", []), found, whole)
    return [call["function"]["arguments"] for call in found]


def test_cut_calls(question, tools):
    """Clients that read a call's arguments as an object never get an empty one in place of what was cut."""
    def body(arguments, n=400):
        text = '<tool_call>\n{"name": "weather", "arguments": %s}\n</tool_call>' % arguments
        return {"messages": question, "tools": tools, "program": saying(text), "options": {"temperature": 0, "num_predict": n}}
    arguments = {"city": "Bern", "n": 2}
    whole = body(json.dumps(arguments))
    check(ollama_calls(whole) == [arguments], "a whole call", ollama_calls(whole))
    n_tokens = post("/api/chat", {**whole, "stream": False})["eval_count"]
    for n in range(n_tokens - 40, n_tokens, 6):
        got = ollama_calls({**whole, "options": {"temperature": 0, "num_predict": n}})
        check(got in ([], [arguments]), n, got)
    for none in ("null", '""'):
        check(ollama_calls(body(none)) == [{}], "a call without arguments", none)
    large = body('{"n": 123456789012345678901234567890}')
    check(ollama_calls(large) == [{"n": 123456789012345678901234567890}], ollama_calls(large))
    asked = {"messages": question, "max_tokens": 400, "temperature": 0, "program": large["program"], "tools": [
        {"name": "weather", "input_schema": {"type": "object"}}]}
    used = [b["input"] for b in post("/v1/messages", asked)["content"] if b["type"] == "tool_use"]
    check(used == [{"n": 123456789012345678901234567890}], used)


def test_forced_tools(question):
    """tool_choice, strict and parallel_tool_calls hold whatever the model would say: this one has random weights."""
    strict = {"type": "object", "properties": {"city": {"enum": ["Bern", "Rome"]},
                                               "days": {"type": "integer", "minimum": 1, "maximum": 9}},
              "required": ["city", "days"], "additionalProperties": False}
    weather = {"name": "weather", "strict": True, "parameters": strict}
    tools = [{"type": "function", "function": weather}, {"type": "function", "function": {"name": "stop"}}]
    body = {"messages": question, "tools": tools, "temperature": 1.5, "max_tokens": 2000}
    named = {"type": "function", "function": {"name": "weather"}}

    def is_valid(name, arguments):
        return arguments == {} if name == "stop" else (name == "weather" and sorted(arguments) == ["city", "days"] and
            arguments["city"] in ("Bern", "Rome") and arguments["days"] in range(1, 10))
    for seed in range(12):
        asked = {**body, "seed": seed, "tool_choice": named if seed % 3 == 0 else "required",
                 "parallel_tool_calls": seed % 2 == 0}
        choice = post("/v1/chat/completions", asked)["choices"][0]
        calls = choice["message"].get("tool_calls", [])
        if choice["finish_reason"] == "length":  # many calls: what is whole is valid
            calls = calls[:-1]
        else:
            check(choice["finish_reason"] == "tool_calls" and calls and choice["message"]["content"] is None, choice)
        check(all(is_valid(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in calls), calls)
        check(seed % 2 == 0 or len(calls) == 1, "several calls though only one may be", calls)
        check(seed % 3 or all(c["function"]["name"] == "weather" for c in calls), "another than the named tool", calls)
        pieces = [c for e in events(asked) for c in e["choices"][0]["delta"].get("tool_calls", [])]
        for call in calls:
            own = [p for p in pieces if p["index"] == calls.index(call)]
            check(own[0]["function"]["name"] == call["function"]["name"], own, call)
            check("".join(p["function"].get("arguments", "") for p in own) == call["function"]["arguments"], own, call)
    line_feed = post("/tokenize", {"content": "\n"})["tokens"][-1]
    many = post("/v1/chat/completions", {**body, "tool_choice": "required", "max_tokens": 300, "seed": 1,
                                         "logit_bias": {str(line_feed): 100}})["choices"][0]
    check(many["finish_reason"] == "length" and len(many["message"]["tool_calls"]) > 1, "never several calls", many)
    long = {"type": "object", "properties": {"text": {"type": "string", "minLength": 900, "maxLength": 900}},
            "required": ["text"]}
    pieces = [c for e in events({**body, "tool_choice": "required", "seed": 1, "parallel_tool_calls": False, "tools": [
        {"type": "function", "function": {"name": "say", "parameters": long}}]})
              for c in e["choices"][0]["delta"].get("tool_calls", [])]
    check(len(pieces) > 3 and len(json.loads("".join(p["function"]["arguments"] for p in pieces))["text"]) == 900,
          "arguments come in one piece", len(pieces))
    # Strict where the model may choose: its text ends where a call begins. A bias makes it begin one.
    begin = post("/tokenize", {"content": "<tool_call>", "parse_special": True})["tokens"]
    if len(begin) == 1:
        bias = {"logit_bias": {str(begin[0]): 100}, "temperature": 0}
        choice = post("/v1/chat/completions", {**body, **bias, "parallel_tool_calls": False})["choices"][0]
        check([is_valid(c["function"]["name"], json.loads(c["function"]["arguments"]))
               for c in choice["message"]["tool_calls"]] == [True], choice)
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["yes", "no"]}}}
    choice = post("/v1/chat/completions", {**body, "seed": 1, "response_format": form})["choices"][0]
    check(choice["message"].get("tool_calls") or json.loads(choice["message"]["content"]) in ("yes", "no"), choice)
    check(not post("/v1/chat/completions", {**body, "seed": 1, "max_tokens": 9, "tool_choice": "none"})["choices"][0]
          ["message"].get("tool_calls"), "a call though none may be")
    # The other two APIs say it in their ways.
    listed = [{"name": "weather", "input_schema": strict}, {"name": "stop", "input_schema": {"type": "object"}}]
    for choice in ({"type": "any", "disable_parallel_tool_use": True}, {"type": "tool", "name": "weather"}):
        whole = post("/v1/messages", {"messages": question, "tools": listed, "tool_choice": choice, "max_tokens": 400,
                                      "temperature": 1.5, "seed": 5})
        used = [b for b in whole["content"] if b["type"] == "tool_use"]
        check(used and (choice["type"] == "tool" or len(used) == 1), whole)
        check(whole["stop_reason"] == "max_tokens" or all(is_valid(b["name"], b["input"]) or b["name"] == "stop" for b in used), whole)
    answer = post("/v1/responses", {"input": question, "tools": [{"type": "function", **weather}], "seed": 2,
                                    "tool_choice": {"type": "function", "name": "weather"}, "temperature": 1.5,
                                    "parallel_tool_calls": False})
    check([i["type"] for i in answer["output"]] == ["function_call"] and
          is_valid("weather", json.loads(answer["output"][0]["arguments"])), answer)
    for n in (9, 14, 19, 24):  # a call that is cut says so, streamed or whole
        fields = {"input": question, "tools": [{"type": "function", **weather}], "seed": 2, "temperature": 1.5,
                  "tool_choice": {"type": "function", "name": "weather"}, "max_output_tokens": n}
        whole = post("/v1/responses", fields)
        done = [e["item"] for e in named_events("/v1/responses", fields) if e["type"] == "response.output_item.done"]
        check([i["status"] for i in done] == [i["status"] for i in whole["output"]], done, whole)
        check(whole["status"] == "completed" or not done or done[-1]["status"] == "incomplete", done, whole)
    # What cannot be held is refused, with its place.
    wrong = {"type": "object", "properties": {"a": {"not": {"uniqueItems": True}}}}
    held = {**body, "tools": tools + [{"type": "function", "function": {"name": "f", "strict": True, "parameters": wrong}}]}
    refused = post("/v1/chat/completions", held, 400)["error"]
    check("tools[2].function.parameters: #/properties/a/not: " in refused["message"], refused)
    for fields in ({"tool_choice": "always"}, {"tool_choice": {"type": "function"}}, {"tools": {}},
                   {"tool_choice": {"type": "function", "function": {"name": "nobody"}}}, {"parallel_tool_calls": 1},
                   {"tool_choice": "required", "grammar": 'root ::= "a"'}, {"tools": [], "tool_choice": "required"}):
        post("/v1/chat/completions", {**body, **fields}, 400)


def test_operations():
    """The log, the histograms, the sandbox, and what systemd is told."""
    global port
    for name in ("notify.socket", "requests.log", "texts.log"):  # of an older run
        if os.path.exists(name):
            os.unlink(name)
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind("notify.socket")
    told.settimeout(60)
    os.environ["NOTIFY_SOCKET"] = os.path.abspath("notify.socket")
    before, (server, port) = port, start("--log", "requests.log", "--drain", "1")
    del os.environ["NOTIFY_SOCKET"]
    check(told.recv(100) == b"READY=1", "systemd is not told of the start")
    body = {"prompt": "Once upon a time", "max_tokens": 5, "temperature": 0}
    post("/v1/completions", body)
    events(body, "/v1/completions")
    deadline = time.time() + 120
    while open("requests.log", encoding="utf-8").read().count("\n") < 2 and time.time() < deadline:
        time.sleep(0.01)  # a stream has its line once it was sent
    post("/v1/messages", {"max_tokens": 5, "messages": [{"role": "user", "content": "secret words"}]})
    post("/v1/completions", {"prompt": 7}, 400)
    ask("GET", "/nowhere")
    metrics = ask("GET", "/metrics")[1].decode()
    for name in ("queue_time_seconds", "time_to_first_token_seconds", "request_latency_seconds"):
        counts = [int(n) for n in re.findall(r"whit:%s_bucket\{model=\"[^\"]*\",le=[^}]*\} (\d+)" % name, metrics)]
        check(counts == sorted(counts) and counts[-1] == 3 and metric(name + "_count") == 3, name, counts)
    sampled, generated = metric("time_per_output_token_seconds_count"), metric("tokens_predicted_total")
    check(sampled == generated - 3, "every token but the first of an answer", sampled, generated)
    check(metric("step_seconds_count") > 0 and metric("step_budget_seconds") == 0.12, "steps and their budget")
    check(metric("step_prompt_tokens_sum") == metric("prompt_tokens_total"), "prompt tokens of steps")
    check(metric("prompts_waiting") == 0, "no prompt waits")
    check(metric("draft_tokens_accepted_total") <= metric("draft_tokens_total"), "guesses")
    held = []
    for thread in os.listdir("/proc/%d/task" % server.pid):
        try:
            held += re.findall(r"Seccomp:\t(\d)", open("/proc/%d/task/%s/status" % (server.pid, thread), encoding="ascii").read())
        except FileNotFoundError:
            pass  # one of a connection's, which has ended
    if not os.environ.get("WHIT_NO_SANDBOX") and not os.environ.get("SERVER"):
        check(len(held) > 1 and (set(held) == {"2"} or any(b"no sandbox" in line for line in said)), "a thread outside of the sandbox", held)
    server.send_signal(signal.SIGTERM)
    check(told.recv(100) == b"STOPPING=1\nEXTEND_TIMEOUT_USEC=121000000", "what systemd is told of the end")
    check(server.wait(60) == 0, "the server did not end well")
    text = open("requests.log", encoding="utf-8").read()
    lines = [json.loads(line) for line in text.splitlines()]
    check(os.stat("requests.log").st_mode & 0o777 == 0o600, "who may read the log")
    check("secret" not in text and "Once" not in text, "texts are in the log")
    check([line.get("api", line.get("path")) for line in lines[:5]] ==
          ["completion", "completion", "messages", "/v1/completions", "/nowhere"], lines)
    check([line["status"] for line in lines[:5]] == [200, 200, 200, 400, 404], lines)
    check([line["stream"] for line in lines[:3]] == [False, True, False] and lines[0]["generated_tokens"] == 5 and
          lines[0]["finish"] == ["length"] and 0 < lines[0]["first_token_us"] <= lines[0]["total_us"], lines[0])
    server, port = start("--log", "texts.log", "--log-texts")
    post("/v1/completions", body)
    server.send_signal(signal.SIGTERM)
    check(server.wait(60) == 0, "the server did not end well")
    line = json.loads(open("texts.log", encoding="utf-8").read())
    check("Once upon a time" in line["request"] and len(line["answers"]) == 1 and line["answers"][0], line)
    port = before


def test_embeddings():
    texts = ["a cat", "a big dog ran", "a cat"]
    done = post("/v1/embeddings", {"input": texts, "model": "x"})
    vectors = [row["embedding"] for row in done["data"]]
    check([row["index"] for row in done["data"]] == [0, 1, 2] and done["object"] == "list", done["object"])
    check(all(abs(sum(v * v for v in vector) - 1) < 1e-5 for vector in vectors), "a length is not 1")
    check(vectors[0] == vectors[2] and vectors[0] != vectors[1], "equal texts, other vectors")
    packed = post("/embeddings", {"input": texts[1], "encoding_format": "base64"})["data"][0]["embedding"]
    raw = base64.b64decode(packed)
    values = struct.unpack("<%df" % (len(raw) // 4), raw)
    check(len(values) == len(vectors[1]) and max(abs(a - b) for a, b in zip(values, vectors[1])) < 1e-7, "base64")
    ids = [post("/tokenize", {"content": text, "add_special": True})["tokens"] for text in texts]
    by_ids = post("/v1/embeddings", {"input": ids})
    check([row["embedding"] for row in by_ids["data"]] == vectors, "token ids give other vectors")
    check(by_ids["usage"]["prompt_tokens"] == sum(map(len, ids)) == done["usage"]["total_tokens"], done["usage"])
    check(post("/v1/embeddings", {"input": ids[0]})["data"][0]["embedding"] == vectors[0], "one list of ids")
    for bad in (None, "", [], 3, [""], [[]], [-1], [99999], {"a": 1}, [1, ""], [1, {}], "word " * 3000, ["a"] * 3000):
        check("message" in post("/v1/embeddings", {"input": bad}, 400)["error"], str(bad)[:60])
    post("/v1/embeddings", {"input": "a", "encoding_format": "x"}, 400)
    post("/v1/embeddings", {"input": "a", "dimensions": len(vectors[0]) + 1}, 400)
    cut = post("/v1/embeddings", {"input": texts[1], "dimensions": 3})["data"][0]["embedding"]
    length = sum(v * v for v in vectors[1][:3]) ** 0.5
    check(len(cut) == 3 and max(abs(a - b / length) for a, b in zip(cut, vectors[1])) < 1e-5, "dimensions", cut)
    alone, got = answer(*some_request(random.Random(7), 7)), []
    thread = threading.Thread(target=lambda: got.append(answer(*some_request(random.Random(7), 7))))
    thread.start()
    check(post("/v1/embeddings", {"input": texts})["data"] == done["data"], "other vectors beside a generation")
    thread.join()
    check(got == [alone], "another answer beside embeddings")


def lines(path, body):
    status, text = ask("POST", path, body)
    check(status == 200, path, body, status, text[:200])
    return [json.loads(line) for line in text.decode().splitlines()]


def test_ollama():
    for path, key in (("version", "version"), ("tags", "models"), ("ps", "models")):
        status, text = ask("GET", "/api/" + path)
        check(status == 200 and key in json.loads(text), path, text)
    model = json.loads(ask("GET", "/api/tags")[1])["models"][0]
    check(model["name"] == model["model"] and len(model["digest"]) == 64 and model["details"]["family"], model)
    shown = post("/api/show", {"model": model["name"]})
    check("completion" in shown["capabilities"] and 512 in shown["model_info"].values(), shown)
    messages = [{"role": "user", "content": "a cat"}]
    options = {"temperature": 0.9, "seed": 5, "num_predict": 30}
    same = post("/v1/chat/completions", {"messages": messages, "temperature": 0.9, "seed": 5, "max_tokens": 30})
    whole = post("/api/chat", {"messages": messages, "options": options, "stream": False})
    check(whole["message"] == {"role": "assistant", "content": same["choices"][0]["message"]["content"]}, whole, same)
    check(whole["done"] is True and whole["done_reason"] == same["choices"][0]["finish_reason"], whole)
    check(whole["prompt_eval_count"] == same["usage"]["prompt_tokens"] and
          whole["eval_count"] == same["usage"]["completion_tokens"], whole)
    check(whole["total_duration"] >= whole["eval_duration"] > 1000 and
          re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$", whole["created_at"]), whole)
    pieces = lines("/api/chat", {"messages": messages, "options": options})
    check("".join(piece["message"]["content"] for piece in pieces) == whole["message"]["content"], pieces)
    check([piece["done"] for piece in pieces] == [False] * (len(pieces) - 1) + [True] and len(pieces) > 1, pieces)
    check(pieces[-1]["eval_count"] == whole["eval_count"], pieces[-1])
    as_prompt = lines("/api/generate", {"prompt": "a cat", "options": options})
    check("".join(piece["response"] for piece in as_prompt) == whole["message"]["content"], as_prompt)
    raw = {"prompt": "Once upon a time", "raw": True, "options": {"temperature": 0, "num_predict": 12}}
    plain = post("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 0})
    text = plain["choices"][0]["text"]
    check("".join(piece["response"] for piece in lines("/api/generate", raw)) == text, "a raw prompt")
    check(post("/api/generate", {**raw, "stream": False})["response"] == text, "a raw prompt, whole")
    schema = {"type": "object", "properties": {"pet": {"enum": ["cat", "dog"]}}, "required": ["pet"],
              "additionalProperties": False}
    made = post("/api/chat", {"messages": messages, "format": schema, "stream": False, "options": {"seed": 2}})
    check(json.loads(made["message"]["content"])["pet"] in ("cat", "dog"), made)
    check(post("/api/generate", {"model": "x"})["done_reason"] == "load", "no prompt")
    embedded = post("/api/embed", {"input": ["a cat", "a dog"]})
    direct = post("/v1/embeddings", {"input": ["a cat", "a dog"]})
    check(embedded["embeddings"] == [row["embedding"] for row in direct["data"]], "other vectors")
    empty = {"template": "", "context": [], "system": "", "images": None, "suffix": ""}
    for fields in (empty, dict.fromkeys(empty)):
        check(post("/api/generate", {**raw, **fields, "stream": False})["response"] == text, fields)
    for size in (None, 0, len(embedded["embeddings"][0])):
        same = post("/api/embed", {"input": ["a cat", "a dog"], "dimensions": size})
        check(same["embeddings"] == embedded["embeddings"], "dimensions", size)
    for path, body in (("chat", "{"), ("chat", {}), ("generate", {**raw, "system": "Be brief."}),
                       ("generate", {"prompt": "a", "template": "{{ .Prompt }}"}),
                       ("generate", {"prompt": "a", "context": [1, 2]}), ("embed", {"input": "a", "dimensions": 99999}), ("chat", {"messages": [1]}), ("chat", {"messages": "x"}),
                       ("generate", {"prompt": "a", "format": "yaml"}), ("generate", {"prompt": "a", "images": ["x"]}),
                       ("generate", {"prompt": "word " * 3000}), ("embed", {}), ("chat", {"messages": [{}]}),
                       ("chat", {"messages": messages, "options": {"temperature": "hot"}}),
                       ("chat", {"messages": [{"role": "assistant", "tool_calls": [3, {"function": 4}]}]})):
        check(isinstance(post("/api/" + path, body, 400).get("error"), str), path, body)
    check(ask("POST", "/api/pull", "{}")[0] == 403, "/api/pull")
    older = post("/api/embeddings", {"prompt": "a cat"})["embedding"]
    check(older == embedded["embeddings"][0], "/api/embeddings gives another vector")
    for several in (["a cat", "a dog"], ["a cat"], [1, 2], 3):
        check(post("/api/embeddings", {"prompt": several}, 400)["error"].count("expected a text"), several)
    check(post("/api/generate", {"prompt": "a", "suffix": "b", "stream": False}, 400)["error"].count("fill"), "a suffix")
    post("/api/chat", {"messages": messages, "think": "high", "stream": False, "options": options})


def test_page():
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1200)
    connection.request("GET", "/")
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    policy = reply.headers["Content-Security-Policy"]
    check(reply.status == 200 and reply.headers["Content-Type"].startswith("text/html"), reply.status, reply.headers)
    check("default-src 'none'" in policy and "connect-src 'self'" in policy and "unsafe" not in policy, policy)
    check(reply.headers["X-Content-Type-Options"] == "nosniff", reply.headers)
    for tag in ("script", "style"):
        held = re.findall("<%s>(.*?)</%s>" % (tag, tag), text, re.S)
        digest = base64.b64encode(hashlib.sha256(held[0].encode()).digest()).decode()
        check(len(held) == 1 and "%s-src 'sha256-%s'" % (tag, digest) in policy, tag, policy)
    check(not re.search(r"(https?:)?//[a-zA-Z0-9]|\bsrc=|@import|innerHTML|\beval\b", text), "the page names other places")


def test_refusals():
    long = post("/v1/completions", {"prompt": "word " * 3000}, 400)
    check(re.search(r"maximum context length is 512 tokens, and the prompt has \d+", long["error"]["message"]), long)
    bad = {"type": "json_schema", "json_schema": {"schema": {"properties": {"a": {"not": {"uniqueItems": True}}}}}}
    message = {"messages": [{"role": "user", "content": "x"}]}
    check("#/properties/a/not" in post("/v1/chat/completions", {**message, "response_format": bad}, 400)
          ["error"]["message"], "the place in the schema is not named")
    for body in ("", "{", "[]", '{"prompt": 3}', '{"messages": "x"}', "[" * 100000, b"\xff\xfe", '{"prompt": "a\\u0000"}',
                 '{"prompt": "a", "temperature": "hot"}', '{"prompt": "a", "temperature": -1}',
                 '{"prompt": "a", "n": 1000}', '{"prompt": "a", "logit_bias": {"99999": 1}}',
                 '{"prompt": "a", "logit_bias": [1]}', '{"prompt": "a", "stop": [1]}',
                 '{"prompt": "a", "logprobs": 50}', '{"prompt": []}', '{"prompt": [1e99]}', '{"prompt": [-1]}'):
        for path in ("/v1/completions", "/v1/chat/completions", "/tokenize"):
            status, text = ask("POST", path, body)
            check(400 <= status < 500 or (status == 200 and path == "/tokenize"), path, body[:60], status)
            check(status == 200 or "message" in json.loads(text)["error"], text)
    check(ask("GET", "/nowhere")[0] == 404, "a path that does not exist")
    check(ask("POST", "/v1/completions", b" " * (17 << 20))[0] == 413, "a body that is too large")
    for raw in (b"\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n\r\n",
                b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
                b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc",
                b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n"):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
            try:
                s.sendall(raw)
                s.shutdown(socket.SHUT_WR)
                s.recv(1000)
            except OSError:
                pass
    check(ask("GET", "/health")[0] == 200, "the server does not answer any more")


def exchange(raw, half_close=False):
    """What comes back for some bytes, up to the beginning of its body."""
    text = b""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as s:
        s.sendall(raw)
        if half_close:
            s.shutdown(socket.SHUT_WR)
        try:
            while b"\r\n\r\n" not in text or not text.split(b"\r\n\r\n", 1)[1]:
                part = s.recv(65536)
                if not part:
                    break
                text += part
        except OSError:
            pass
    return text


def test_framing():
    """One plain way to say where a body ends; what a proxy might read otherwise is refused."""
    body = b'{"prompt": "a", "max_tokens": 1}'
    head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
    n = b"%d" % len(body)
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    for lines, rest, status in (
            (b"Content-Length: " + n + b"\r\n", body, b"200"),
            (b"Transfer-Encoding: chunked\r\n", chunked, b"200"),
            (b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", chunked, b"400"),
            (b"Content-Length: " + n + b"\r\nContent-Length: 4\r\n", body, b"400"),
            (b"Content-Length : " + n + b"\r\n", body, b"400"),
            (b"Transfer-Encoding: xchunked\r\n", chunked, b"400"),
            (b"Transfer-Encoding: gzip, chunked\r\n", chunked, b"400")):
        got = exchange(head + lines + b"\r\n" + rest)
        check(got.startswith(b"HTTP/1.1 " + status), lines, got[:200])
    half = exchange(head + b"Content-Length: %d\r\n\r\n" % (len(body) + 6) + body.replace(b": 1}", b": 400  }  "), True)
    check(half.startswith(b"HTTP/1.1 499"), "half an answer is given as a whole one", half[:200])


def test_fields():
    """What would be ignored but changes the answer is refused."""
    prompt = {"prompt": "a", "max_tokens": 2}
    nested = {"type": "string", "pattern": "^" + "(" * 199 + "[a-z]" + ")" * 199 + "$"}
    post("/v1/completions", {**prompt, "json_schema": nested})
    nested["pattern"] = "^" + "(" * 20000 + "a" + ")" * 20000 + "$"
    for fields in ({"json_schema": nested}, {"response_format": "json_object"}, {"response_format": {"type": 5}},
                   {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": None}}},
                   {"grammar": 5}, {"stream": "yes"}, {"n": 2.5}, {"max_tokens": 1.5}, {"best_of": 4},
                   {"suffix": "end"}):
        post("/v1/completions", {**prompt, **fields}, 400)
    post("/detokenize", {"tokens": "abc"}, 400)
    texts = [post("/v1/completions", {"prompt": "a", "seed": seed})["choices"][0]["text"] for seed in (42, 42.0, 42)]
    check(len(set(texts)) == 1, "a seed of 42.0 is not 42", texts)
    page = {"Sec-Fetch-Site": "cross-site", "Origin": "https://elsewhere.invalid"}
    check(ask("POST", "/v1/completions", json.dumps(prompt), page)[0] == 403, "a page of another site may ask")
    check(ask("POST", "/v1/completions", json.dumps(prompt), {**page, "Sec-Fetch-Site": "same-origin"})[0] == 403,
          "a name that leads here makes a page of another site the own one")
    for name, shown in (("https://lan.test:1", "--cors https://lan.test:1,"), ("http://a.b/'$(x)", "--cors ORIGIN,")):
        refused = ask("POST", "/v1/completions", json.dumps(prompt), {"Origin": name})
        check(refused[0] == 403 and shown in json.loads(refused[1])["error"]["message"], "the option of a refused page", refused)
    for own in ("http://127.0.0.1:%d" % port, "http://localhost:3000", "http://[::1]:8080", "app://notes.md"):
        check(ask("POST", "/v1/completions", json.dumps(prompt), {"Sec-Fetch-Site": "same-origin", "Origin": own})[0] == 200,
              "the own page may not ask", own)
    # A name that leads here is foreign to every method: a page under it could read the answers. Addresses, names
    # without a dot and names that no public name system has are not; and a balancer may probe under any name.
    for method, path in [("GET", path) for path in ("/", "/slots", "/props", "/metrics", "/v1/models", "/api/tags",
                         "/api/ps", "/lora-adapters", "/v1beta/models", "/icon.svg", "/nothing")] + \
                        [("HEAD", "/slots"), ("OPTIONS", "/slots"), ("POST", "/tokenize"), ("DELETE", "/slots")]:
        status, refused = ask(method, path, "{}" if method == "POST" else None, {"Host": "rebound.test:%d" % port})
        check(status == 403 and (method == "HEAD" or b"--cors http://rebound.test:%d," % port in refused), method, path, status, refused)
    secure = {"Host": "rebound.test", "X-Forwarded-Proto": "https"}
    check(b"--cors https://rebound.test," in ask("GET", "/slots", None, secure)[1], "the scheme that people open")
    for host in ("127.0.0.1", "10.1.2.3:80", "[::1]:8080", "localhost:1", "a.localhost", "box", "host.docker.internal:8080"):
        check(ask("GET", "/slots", None, {"Host": host})[0] == 200, "refused under", host)
    for path in ("/health", "/v1/health"):
        check(ask("GET", path, None, {"Host": "probe.test"})[0] == 200, "a probe is refused")


def test_native():
    """llama.cpp's own endpoints."""
    asked = {"prompt": "Once upon a time", "n_predict": 12, "temperature": 0}
    text = post("/v1/completions", {**asked, "max_tokens": 12})["choices"][0]["text"]
    whole = post("/completion", asked)
    check(whole["content"] == text and whole["stop"] is True and whole["stop_type"] == "limit" and
          whole["tokens_predicted"] == 12 and whole["tokens_evaluated"] > 3, whole)
    status, stream = ask("POST", "/completion", {**asked, "stream": True, "n_probs": 2})
    pieces = [json.loads(line[6:]) for line in stream.decode().split("\n\n") if line]
    check(status == 200 and "".join(p["content"] for p in pieces) == text, pieces)
    check([p["stop"] for p in pieces] == [False] * (len(pieces) - 1) + [True], pieces)
    check(pieces[-1]["tokens_predicted"] == 12, pieces[-1])
    word = post("/completion", {**asked, "stop": [text[6:9]]})
    check(word["stop_type"] == "word" and word["content"] == text[:6], word)
    check(word["stopping_word"] == text[6:9] and whole["stopping_word"] == "", word)
    probs = post("/completion", {**asked, "n_probs": 2, "n_predict": 3})["completion_probabilities"]
    check(len(probs) == 3 and all(len(one["top_logprobs"]) == 2 and one["logprob"] <= 0 for one in probs), probs)
    # Probabilities after the samplers are of what these left: they add up to one, and with top_k 2 there are two.
    sampled = {"prompt": asked["prompt"], "n_predict": 8, "temperature": 0.8, "top_k": 3, "n_probs": 6, "post_sampling_probs": True,
               "min_p": 0, "top_p": 1, "seed": 5}
    after = post("/completion", sampled)
    for one in after["completion_probabilities"]:
        tops = one["top_probs"]
        check(len(tops) == 3 and abs(sum(t["prob"] for t in tops) - 1) < 1e-6 and "logprob" not in one, one)
        check([t["prob"] for t in tops] == sorted((t["prob"] for t in tops), reverse=True) and
              one["prob"] == next(t["prob"] for t in tops if t["id"] == one["id"]), one)
    check(after["generation_settings"]["post_sampling_probs"] is True, after)
    status, stream = ask("POST", "/completion", {**sampled, "stream": True})
    streamed = [one for line in stream.decode().split("\n\n") if line for one in json.loads(line[6:]).get("completion_probabilities", [])]
    check(streamed == after["completion_probabilities"], streamed)
    greedy = post("/completion", {**sampled, "temperature": 0})["completion_probabilities"]
    check(all(one["prob"] == 1 and [t["id"] for t in one["top_probs"]] == [one["id"]] for one in greedy), greedy)
    post("/completion", {**sampled, "post_sampling_probs": "yes"}, 400)
    check(whole["timings"]["predicted_n"] == 12 and whole["timings"]["predicted_per_second"] > 0, whole)
    echoed = {**asked, "echo": True, "n_probs": 1, "n_predict": 3}  # as OpenAI's: it has no meaning here
    check([post("/completion", {**echoed, "echo": echo})["completion_probabilities"] for echo in (True, False)] ==
          [post("/completion", {**asked, "n_probs": 1, "n_predict": 3})["completion_probabilities"]] * 2, "echo")
    status, stream = ask("POST", "/completion", {**echoed, "stream": True})
    said = "".join(json.loads(line[6:])["content"] for line in stream.decode().split("\n\n") if line)
    check(status == 200 and said == post("/completion", echoed)["content"] and text.startswith(said), said)
    drawn = {post("/completion", {"prompt": "The", "n_predict": 20, "temperature": 2, "seed": -1})["content"] for _ in range(8)}
    check(len(drawn) > 1, "seed -1 is a seed", drawn)
    pieces = post("/tokenize", {"content": "Once upon a time", "with_pieces": True})["tokens"]
    check("".join(piece["piece"] for piece in pieces).strip() == "Once upon a time", pieces)
    about = json.loads(ask("GET", "/props")[1])
    check(about["default_generation_settings"]["n_ctx"] == 512 and about["modalities"]["vision"] is False, about)
    several = post("/completion", {**asked, "prompt": ["a", "b"]})
    check([one["content"] for one in several] == [post("/completion", {**asked, "prompt": p})["content"] for p in "ab"], several)
    post("/completion", {**asked, "prompt": ["a", "b"], "stream": True}, 400)
    refused = post("/infill", {"input_prefix": "a", "input_suffix": "b"}, 400)["error"]["message"]
    check("fill" in refused, "what the model cannot do is not said", refused)


def test_infill():
    """Text between two others, of a model that has the tokens for it."""
    global port
    shutil.rmtree("infill_model", ignore_errors=True)
    shutil.copytree("tools_model", "infill_model")
    with open("infill_model/tokenizer.json", encoding="utf-8") as file:
        tokenizer = json.load(file)
    marks = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
    names = {id: text for text, id in tokenizer["model"]["vocab"].items()}
    ids = [290, 291, 292]
    tokenizer["added_tokens"] += [{"id": id, "content": mark, "single_word": False, "lstrip": False, "rstrip": False,
                                   "normalized": False, "special": True} for id, mark in zip(ids, marks)]
    for id, mark in zip(ids, marks):
        tokenizer["model"]["vocab"].pop(names.get(id), None)
        tokenizer["model"]["vocab"][mark] = id
    with open("infill_model/tokenizer.json", "w", encoding="utf-8") as file:
        json.dump(tokenizer, file)
    before, (server, port) = port, start("-m", "infill_model", "-c", "512")
    tokens = [post("/tokenize", {"content": text})["tokens"] for text in ("int a", "return a")]
    prompt = [ids[0], *tokens[0], ids[1], *tokens[1], ids[2]]
    rest = {"temperature": 0, "max_tokens": 8}
    text = post("/v1/completions", {"prompt": prompt, **rest})["choices"][0]["text"]
    one = post("/v1/completions", {"prompt": "int a", "suffix": "return a", **rest})
    two = post("/infill", {"input_prefix": "int", "prompt": " a", "input_suffix": "return a", "n_predict": 8, **rest})
    check(one["choices"][0]["text"] == text == two["content"], text, one, two)
    check(one["usage"]["prompt_tokens"] == len(prompt) == two["tokens_evaluated"], prompt, one, two)
    post("/v1/completions", {"prompt": [1, 2], "suffix": "x"}, 400)
    server.send_signal(signal.SIGTERM)
    check(server.wait(60) == 0, "the server did not end well")
    port = before


def test_variables():
    """Every option may come from a variable; the option wins."""
    global port
    os.environ.update({"WHIT_PARALLEL": "2", "WHIT_CTX_SIZE": "64", "WHIT_PORT": "1", "WHIT_KV": "i8"})
    before, (server, port) = port, start("-c", "96")
    props = json.loads(ask("GET", "/props")[1])
    check(props["total_slots"] == 2 and props["n_ctx"] == 96, props)
    server.kill()
    server.wait()
    port = before
    for name in ("WHIT_PARALLEL", "WHIT_CTX_SIZE", "WHIT_PORT"):
        del os.environ[name]
    os.environ["WHIT_KV"] = "i9"
    command = os.environ.get("SERVER", os.environ["WHIT"] + " serve").split()
    refused = subprocess.run([*command, "--port", "0"], stderr=subprocess.PIPE, timeout=120, check=False)
    check(refused.returncode == 2 and b"WHIT_KV takes one of" in refused.stderr, refused.stderr)
    del os.environ["WHIT_KV"]


def test_programs():
    """A program that runs for every token; a mistake ends its own request alone."""
    asked = {"prompt": "Once upon a time", "max_tokens": 24, "temperature": 0}
    plain = post("/v1/completions", asked)["choices"][0]["text"]
    text = "let best = argmax(logits)\nlogits[best] -= 100.0\nif step == 9 { end = 1 }\n"
    with open("second.ndl", "w", encoding="ascii") as out:
        out.write(text)
    alone = subprocess.run([*os.environ["WHIT"].split(), "run", "-m", os.environ["SOURCE"] + "/tools/tales/tales.ndf",
                            "--raw", "-p", asked["prompt"], "-n", "24", "--temp", "0", "--program", "second.ndl"],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode()
    done = post("/v1/completions", {**asked, "program": text})
    choice = done["choices"][0]
    check(choice["text"] != plain and alone.rstrip("\n").endswith(choice["text"]), choice, alone)
    check(done["usage"]["completion_tokens"] == 10 and choice["finish_reason"] == "stop", done)
    counted = {"program": "state[0] += 1.0\nif state[0] == 4.0 { end = 1 }", "n": 3, "seed": 1, "temperature": 1}
    check(post("/v1/completions", {**asked, **counted})["usage"]["completion_tokens"] == 12, "a state of each answer")
    looks = {"program": "if len(history) == %d.0 { end = 1 }" % (3 + len(post("/tokenize", {
        "content": asked["prompt"], "add_special": True})["tokens"]))}
    check(post("/v1/completions", {**asked, **looks})["usage"]["completion_tokens"] == 4, "the prompt is its history")
    both = post("/v1/completions", {**asked, "program": text, "grammar": 'root ::= "yes" | "no"'})["choices"][0]["text"]
    check(both in ("yes", "no"), "a program goes past a grammar", both)
    chat = {"messages": [{"role": "user", "content": "a cat"}], "max_tokens": 24, "temperature": 0, "program": text,
            "ignore_eos": True}
    check(post("/v1/chat/completions", chat)["usage"]["completion_tokens"] == 10, "of a chat")
    # Beside one that goes wrong at any moment, others do not notice.
    got, stop = [], []

    def beside():
        while not stop:
            got.append(post("/v1/completions", asked)["choices"][0]["text"])
    thread = threading.Thread(target=beside)
    thread.start()
    # Functions that are met for the first time, each inside a long expression of the one before: no end of a stack.
    nested = "".join(f"fn f{i}(n) {{ return f{i + 1}(n)" + "+1" * 300 + " }\n" for i in range(90))
    nested += "fn f90(n) { return n }\nstate[0] = f0(1)"
    for program, says in (("logits = (", "program:1:"), ("let x = 1\nlet y = x / (3 - step)", "program:2:"),
                          ("while 1 { }", "program:1:"), ("let v = vec(100000000, 1.0)", "program:1:"),
                          ("logits = cut(logits, largest(logits) + 1.0)", "forbids every token (step 0)"),
                          ("logits = logits * 1e300 * 1e300", "not finite (step 0"),
                          ("logits = logits * 0.0 / 0.0", "not finite (step 0"),
                          ("logits = [1.0]", ""), ("end = 1.5", "program:1:"), ("nobody()", "program:1:"),
                          (nested, "nested more than"), ("(" * 60000, "program:1:"), ("x" * 70000, "65536"), (7, "a text")):
        error = post("/v1/completions", {**asked, "program": program}, 400)["error"]
        check(says in error["message"], str(program)[:40], error)
    broken = {**asked, "program": "let y = 1 / (3 - step)"}
    pieces = events(broken, "/v1/completions")
    check("program:1:" in pieces[-1]["error"]["message"] and len(pieces) > 1, pieces)
    stop.append(1)
    thread.join()
    check(set(got) == {plain}, "another answer beside programs that go wrong", got)


def test_pieces(model):
    """Log-probabilities name tokens by what they add to the text, also where tokenizers drop a first space."""
    global port
    server, port = start("-m", model)
    choice = post("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 0,
                                      "logprobs": 2})["choices"][0]
    check("".join(choice["logprobs"]["tokens"]) == choice["text"] and " a" in choice["logprobs"]["tokens"], choice)
    check(all(len(top) == 2 for top in choice["logprobs"]["top_logprobs"]), choice)
    server.send_signal(signal.SIGTERM)
    check(server.wait(60) == 0, "the server did not end well")


def some_request(rng, i):
    body = {"max_tokens": rng.randrange(1, 80), "seed": i, "temperature": rng.choice([0, 0.8, 1.5])}
    if rng.random() < 0.3:
        body["grammar"] = rng.choice(['root ::= [a-z ]{5,40} "."', 'root ::= "yes" | "no" | "maybe " root'])
    if rng.random() < 0.3:
        body["program"] = rng.choice(["logits = logits * 0.5", "if step == 7 { end = 1 }",
                                      "state[step % 256] = float(token)\nlogits -= range(len(logits)) * sum(state) / 1e8",
                                      "logits = max(logits, largest(logits) - 12.0)"])
    if rng.random() < 0.5:
        body["prompt"] = "Once upon a time there was " * rng.randrange(0, 12) + rng.choice(["a cat", "a big dog", "Tim"])
    else:
        body["messages"] = [{"role": "user", "content": rng.choice(["a cat", "the sea"]) * rng.randrange(1, 20)}]
    return "/v1/completions" if "prompt" in body else "/v1/chat/completions", body


def answer(path, body):
    choice = post(path, body)["choices"][0]
    return choice.get("text", choice.get("message")), choice["finish_reason"]


def test_together():
    """Each answer equals, byte for byte, the one that the same request gets alone."""
    rng = random.Random(1)
    requests = [some_request(rng, i) for i in range(64)]
    alone = [answer(*request) for request in requests]
    together = [None] * len(requests)

    def one(i, delay):
        time.sleep(delay)
        together[i] = answer(*requests[i])

    def leave(delay):
        time.sleep(delay)
        with socket.create_connection(("127.0.0.1", port), timeout=10) as s:
            body = b'{"prompt": "Once", "max_tokens": 400, "ignore_eos": true, "stream": true}'
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            time.sleep(rng.random() * 0.05)
    threads = [threading.Thread(target=one, args=(i, rng.random())) for i in range(len(requests))]
    threads += [threading.Thread(target=leave, args=(rng.random(),)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for request, a, b in zip(requests, alone, together):
        check(a == b, request, "alone:", a, "together:", b)
    deadline = time.time() + 120
    while metric("requests_processing") and time.time() < deadline:
        time.sleep(0.1)
    check(metric("requests_processing") == 0, "requests of clients that left go on")
    check(metric("prompt_tokens_cached_total") > 0, "no beginning was found again")


def test_keys(key_file):
    global port
    server, port = start("--api-key-file", key_file, "-m", os.environ["SOURCE"] + "/tools/tales/tales.ndf")
    body = json.dumps({"prompt": "a", "max_tokens": 1})
    check(ask("POST", "/v1/completions", body)[0] == 401, "no key is asked for")
    check(ask("POST", "/v1/completions", body, {"Authorization": "Bearer wrong"})[0] == 401, "a wrong key is taken")
    check(ask("POST", "/v1/completions", body, {"Authorization": "Bearer secret-2"})[0] == 200, "a key is refused")
    check(ask("POST", "/v1/completions", body, {"X-Api-Key": "secret-1"})[0] == 200, "X-Api-Key is refused")
    check(ask("GET", "/health")[0] == 200, "/health wants a key")
    check(ask("GET", "/")[0] == 200, "the page wants a key")
    check(ask("GET", "/api/tags")[0] == 401 and ask("POST", "/v1/embeddings", '{"input": "a"}')[0] == 401, "no key")
    tags = json.loads(ask("GET", "/api/tags", None, {"X-Api-Key": "secret-1"})[1])["models"]
    check(tags[0]["size"] == os.path.getsize(os.environ["SOURCE"] + "/tools/tales/tales.ndf"), tags)
    server.send_signal(signal.SIGTERM)
    check(server.wait(60) == 0, "the server did not end well")


def test_named_keys():
    """Names of keys are in the log, and in no reply; keys of the command line and of the file count together."""
    global port
    with open("named", "w", encoding="ascii") as out:
        out.write("# the house\nanna sk-anna\n\nsk-plain\n")
    if os.path.exists("named.log"):
        os.remove("named.log")
    server, port = start("--api-key-file", "named", "--api-key", "one,two", "--api-key", "three", "--log", "named.log",
                         "-m", os.environ["SOURCE"] + "/tools/tales/tales.ndf")
    body = json.dumps({"prompt": "a", "max_tokens": 1})
    for key, status in (("sk-anna", 200), ("sk-plain", 200), ("one", 200), ("two", 200), ("three", 200), ("anna", 401), ("one,two", 401),
                        ("anna sk-anna", 401), ("# the house", 401), ("", 401)):
        check(ask("POST", "/v1/completions", body, {"Authorization": "Bearer " + key})[0] == status, key)
    server.send_signal(signal.SIGTERM)
    check(server.wait(60) == 0, "the server did not end well")
    lines = [json.loads(line) for line in open("named.log", encoding="utf-8")]
    check([line.get("name") for line in lines if line["status"] == 200] == ["anna", None, None, None, None], lines)
    for text, word in (("a b c\n", b"more than two words: lines are KEY or NAME KEY"),
                       ("anna \n", b"ends with a blank after its only word"), ("a b\n\tanna\t", b"ends with a blank"), ("n" * 50 + " key\n", b"name has at most"), ("# none\n", b"contains no key")):
        with open("bad_keys", "w", encoding="ascii") as out:
            out.write(text)
        done = subprocess.run([*os.environ.get("SERVER", os.environ["WHIT"] + " serve").split(), "--port", "0", "--api-key-file", "bad_keys"],
                              stderr=subprocess.PIPE, timeout=120, check=False)
        check(done.returncode and word in done.stderr, text, done.stderr)
    # a start that was to have a key and has none is refused
    server = os.environ.get("SERVER", os.environ["WHIT"] + " serve").split()
    for name, value in (("WHIT_API_KEY", ""), ("WHIT_API_KEY_FILE", ""), ("WHIT_KEYS", "")):
        done = subprocess.run([*server, "--port", "0", "-m", os.environ["SOURCE"] + "/tools/tales/tales.ndf"],
                              env=dict(os.environ, **{name: value}), stderr=subprocess.PIPE, timeout=120, check=False)
        check(done.returncode and name.encode() + b" is set but names no key" in done.stderr, name, value, done.stderr)
    for value in ("", " , ", "\n"):
        done = subprocess.run([*server, "--port", "0", "--api-key", value, "-m", os.environ["SOURCE"] + "/tools/tales/tales.ndf"],
                              stderr=subprocess.PIPE, timeout=120, check=False)
        check(done.returncode and b"contains no key" in done.stderr, value, done.stderr)


server, port = start()
test_endpoints()
test_prompt_logprobs()
test_vendors()
test_tools()
test_native()
test_infill()
test_variables()
test_operations()
test_page()
test_embeddings()
test_ollama()
test_refusals()
test_framing()
test_fields()
test_programs()
test_together()
# SIGTERM lets what runs end.
result = []
thread = threading.Thread(target=lambda: result.append(ask("POST", "/v1/completions", json.dumps(
    {"prompt": "Once", "max_tokens": 400, "ignore_eos": True}))))
n_before, deadline = metric("requests_total"), time.time() + 120
thread.start()
while metric("requests_total") == n_before and time.time() < deadline:
    time.sleep(0.005)
server.send_signal(signal.SIGTERM)
thread.join()
check(result and result[0][0] == 200, "a request was lost at the end", result)
check(server.wait(60) == 0, "the server did not end well")
with open("keys", "w", encoding="ascii") as out:
    out.write("secret-1\nsecret-2\n")
test_keys("keys")
test_named_keys()
with open("long_keys", "w", encoding="ascii") as out:
    out.write("k" * 600 + "\n")
long_keys = subprocess.run([*os.environ.get("SERVER", os.environ["WHIT"] + " serve").split(), "--port", "0",
                            "--api-key-file", "long_keys"], stderr=subprocess.PIPE, timeout=120)
check(long_keys.returncode and b"bytes each" in long_keys.stderr, "half a key is a key", long_keys.stderr)
shared = os.environ.get("SHARED", "") + "/models/stories260K/stories260K.gguf"
if os.path.exists(shared):
    test_pieces(shared)
sys.exit(1 if failed else 0)
