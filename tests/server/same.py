# SPDX-License-Identifier: MIT
"""The same messages give the same tokens and answers from whit chat, the server and the library, to the last bit."""
import json
import os
import subprocess
import sys
import threading

import client
from client import Server, check

CONVERSE = sys.argv[1]
WEATHER = {"name": "weather", "description": "The\tweather in °\x7f\x1f", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
TOOLS = [{"type": "function", "function": WEATHER}]
CALL = {"id": "call00000", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}
CASES = {
    "plain": ([{"role": "user", "content": "the land"}], []),
    "turns": ([{"role": "system", "content": "Be\n\"brief\"."}, {"role": "user", "content": "the land </s> é"},
               {"role": "assistant", "content": "and the ice"}, {"role": "user", "content": "and then?"}], []),
    "thought": ([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y", "reasoning_content": "why"},
                 {"role": "user", "content": "the time"}], []),
    "late": ([{"role": "user", "content": "the land"}, {"role": "assistant", "content": "ice"},
              {"role": "system", "content": "a note"}, {"role": "user", "content": "and?"}], []),
    "parts": ([{"role": "user", "content": [{"type": "text", "text": "the land"}, {"type": "text", "text": "an ocean"}]}], []),
    "tools": ([{"role": "user", "content": "How is it in Bern?"}], TOOLS),
    "results": ([{"role": "user", "content": "How is it in Bern?"}, {"role": "assistant", "content": None, "tool_calls": [CALL]},
                 {"role": "tool", "tool_call_id": "call00000", "content": "18 degrees"}], TOOLS),
}


def run(command, **more):
    done = subprocess.run([*os.environ.get("EMULATOR", "").split(), *command], capture_output=True, text=True, **more)
    check(done.returncode == 0, command, done.stderr[-300:])
    return done.stdout


def parts_of(message):
    """What an answer says, without the ids of its calls, which each program makes in its own way."""
    return (message.get("content"), message.get("reasoning_content"), [c["function"] for c in message.get("tool_calls") or []])


def compare(model, server, name, messages, tools):
    with open("messages.json", "w", encoding="utf-8") as file:
        json.dump({"messages": messages}, file)
    with open("tools.json", "w", encoding="utf-8") as file:
        json.dump(tools, file)
    ids, message = run([CONVERSE, model, "messages.json", "tools.json"]).splitlines()
    ids, message = [int(i) for i in ids.split()], json.loads(message)

    if os.path.exists("saved.json"):
        os.remove("saved.json")
    whit = os.environ["WHIT"].split()
    lines = "/retry\n" + "n\n" * len(parts_of(message)[2]) + "/show tokens\n/save saved.json\n"
    shown = subprocess.run([*whit, "chat", "-m", model, "-c", "2048", "--temp", "0", "-n", "24", "--load", "messages.json",
                            *(["--tools", "tools.json"] if tools else [])], input=lines, capture_output=True, text=True)
    tokens = [line for line in shown.stdout.splitlines() if line.startswith("tokens:")][-1].split()[1:]
    with open("saved.json", encoding="utf-8") as file:
        saved = json.load(file)["messages"]
    check(saved[:len(messages)] == messages, model, name, "chat changed the messages", saved)
    check([int(t) for t in tokens[:len(ids)]] == ids or parts_of(message)[2], model, name, "ids of chat", tokens, ids)
    check(parts_of(saved[len(messages)]) == parts_of(message), model, name, "chat", saved[len(messages):], message)

    body = {"messages": messages, "temperature": 0, "max_tokens": 24, **({"tools": tools} if tools else {})}
    reply = server.post("/v1/chat/completions/render", body)
    rendered = reply["prompt_token_ids"]
    check(rendered == ids == reply["token_ids"], model, name, "ids of the server", rendered, ids)
    answered = server.post("/v1/chat/completions", body)["choices"][0]["message"]
    check(parts_of(answered) == parts_of(message), model, name, "server", answered, message)


def answer_together(server):
    """Answers of four requests at once, of which two have long prompts."""
    answers = [None] * 4

    def ask(i, n_words):
        answers[i] = server.post("/v1/completions", {
            "prompt": "the land and the ice " * n_words, "max_tokens": 60, "ignore_eos": True, "seed": i,
            "temperature": i % 2 * 0.8})["choices"][0]["text"]
    threads = [threading.Thread(target=ask, args=(i, n)) for i, n in enumerate((1, 40, 2, 60))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


# Neither the budget of a step nor the number of guesses changes a text.
texts = []
for flags in ([], ["--step-budget", "0", "--spec", "0"], ["--step-budget", "1", "--spec", "5"]):
    server = Server("-m", sys.argv[2], "-c", "2048", *flags)
    texts.append(answer_together(server))
    check(None not in texts[-1] and texts[-1] == texts[0], "another text with", flags, texts[-1], texts[0])
    server.end()
for model in sys.argv[2:]:
    server = Server("-m", model, "-c", "2048")
    for name, (messages, tools) in CASES.items():
        compare(model, server, name, messages, tools)
    server.end()
sys.exit(client.failures > 0)
