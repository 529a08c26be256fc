# SPDX-License-Identifier: MIT
"""Hybrids: every turn of four conversations with one prefix computes its new tokens, also after a restart."""
import json
import os
import shutil
import subprocess
import sys
import time

import client
from client import Server, check

N_CLIENTS, N_TURNS, AGAIN_MAX = 4, 20, 64
SYSTEM = "Answer shortly. The house has a door, a roof and a well. " * 8
TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def byte_letters():
    """The letters that stand for bytes in byte-level vocabularies."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, n = {byte: chr(byte) for byte in plain}, 0
    for byte in range(256):
        if byte not in letters:
            letters[byte], n = chr(256 + n), n + 1
    return [letters[byte] for byte in range(256)]


def make_model(folder, template):
    """The small random hybrid with a vocabulary of bytes and a template."""
    shutil.copytree(os.environ["SHARED"] + "/models-tiny/qwen35-hybrid/hf", folder, dirs_exist_ok=True)
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
    added = [{"id": 256 + i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": "think" not in text} for i, text in enumerate(special)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
                 "pre_tokenizer": level, "post_processor": None, "decoder": level,
                 "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                           "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                           "vocab": {letter: i for i, letter in enumerate(byte_letters())}, "merges": []}}
    with open(folder + "/tokenizer.json", "w", encoding="utf-8") as out:
        json.dump(tokenizer, out)
    with open(folder + "/tokenizer_config.json", "w", encoding="utf-8") as out:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "chat_template": template}, out)


class Conversation:
    def __init__(self, name):
        self.name = name
        self.messages = [{"role": "system", "content": SYSTEM}]
        self.n_before = 0  # tokens of the last prompt

    def ask(self, server, turn):
        """Tokens that were computed beside those after the last prompt."""
        self.messages.append({"role": "user", "content": f"{self.name} asks {turn}: where is it?"})
        body = {"messages": self.messages, "max_tokens": 20, "temperature": 0, "ignore_eos": True}
        status, reply = server.ask("POST", "/v1/chat/completions", body, {"x-session-id": self.name})
        check(status == 200, status, reply[:200])
        reply = json.loads(reply)
        usage = reply["usage"]
        n, cached = usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]
        again = self.n_before - cached
        self.n_before = n
        # The random model's bytes are no text: the conversation has a text of its own in their place.
        self.messages.append({"role": "assistant", "content": f"by the well {turn}"})
        return again, reply["choices"][0]["message"]["content"]


def start():
    return Server("-m", "hybrid", "-c", "2048", "-np", str(N_CLIENTS), "--cache-dir", "kept", "--state-memory", "16")


def run():
    """Twenty turns of each client by turns; the server is killed after the twelfth, when its slots are saved."""
    server = start()
    talks = [Conversation(f"client {i}") for i in range(N_CLIENTS)]
    talks[0].ask(server, 0)
    n_system = len(SYSTEM) + 8
    for talk in talks[1:]:
        talk.n_before = n_system  # all of them share the system message
        again, _ = talk.ask(server, 0)
        check(again <= AGAIN_MAX, talk.name, "computes the shared prefix again", again)
    answers = []
    for turn in range(1, N_TURNS):
        if turn == 12:
            wait_until_kept(server)
            server.process.kill()
            server.process.wait()
            server = start()
        for talk in talks:
            again, answer = talk.ask(server, turn)
            check(again <= AGAIN_MAX, talk.name, "turn", turn, "computes again", again)
            answers.append(answer)
    most, now = server.metric("state_memory_max_bytes"), server.metric("state_memory_bytes")
    check(0 < now <= most <= 16 << 20, "memory of checkpoints", now, most)
    check(server.metric("state_checkpoints_used_total") > 0, "no checkpoint was used")
    server.end()
    return answers


def wait_until_kept(server):
    """Until every slot has a file, and for three seconds none has changed."""
    deadline, seen, since = time.time() + 60, None, time.time()
    while time.time() < deadline:
        files = {name: os.stat("kept/" + name).st_mtime_ns for name in os.listdir("kept") if name.endswith(".ndf")}
        if files != seen:
            seen, since = files, time.time()
        if len(files) == N_CLIENTS and time.time() > since + 3:
            return
        time.sleep(0.1)
    check(False, "slots are not saved", os.listdir("kept"))


def think(server, path, body):
    """(bytes of thinking, bytes of text) of an answer."""
    body = {"messages": [{"role": "user", "content": "Where is it?"}], "temperature": 0, **body}
    reply = server.post(path, body)
    if path == "/v1/messages":
        parts = {part["type"]: part.get("thinking", part.get("text")) for part in reply["content"]}
        return parts.get("thinking", ""), parts.get("text", "")
    message = reply["choices"][0]["message"]
    return message.get("reasoning_content") or "", message["content"] or ""


def test_budgets():
    """The end of thinking is forced after a number of tokens; a random model never writes it by itself."""
    server = Server("-m", "thinker", "-c", "2048", "-np", "2")
    whole, none = think(server, "/v1/chat/completions", {"max_tokens": 40})
    check(whole and not none, "a random model ends its thinking", whole, none)
    for n_tokens in (0, 1, 7):
        thought, text = think(server, "/v1/chat/completions", {"max_tokens": 40, "thinking_budget": n_tokens})
        check(whole.startswith(thought.rstrip("\ufffd")) and len(thought) <= n_tokens, "a budget of", n_tokens, thought, whole)
        check(text, "no text after a budget of", n_tokens)
    thought, text = think(server, "/v1/messages", {"max_tokens": 40, "thinking": {"type": "enabled", "budget_tokens": 5}})
    check(len(thought) <= 5 and text, "Anthropic's budget", thought, text)
    server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "thinking_budget": -3}, 400)
    server.end()


def test_chat():
    """whit chat ends thinking after --think-budget tokens."""
    command = os.environ["WHIT"].split() + ["chat", "-m", "thinker", "-c", "2048", "-t", "1", "--temp", "0", "-n", "40"]
    said = [subprocess.run([*command, *more], input=b"Where is it?\n", stdout=subprocess.PIPE, check=True).stdout
            for more in ([], ["--think-budget", "6"])]
    check(b"</think>" not in said[0], "a random model ends its thinking", said[0])
    check(said[1].find(b"</think>") in range(0, 40), "whit chat --think-budget", said[1])


make_model("thinker", TEMPLATE.replace("assistant\n{% endif", "assistant\n<think>\n{% endif") + "{# </think> #}")
test_budgets()
test_chat()
make_model("hybrid", TEMPLATE)
shutil.rmtree("kept", ignore_errors=True)
answers = run()
# The same questions without a cache have the same answers.
server = Server("-m", "hybrid", "-c", "2048", "-np", "1", "--state-memory", "1")
plain = Conversation("client 0")
fresh = [plain.ask(server, turn)[1] for turn in range(N_TURNS)][1:]
check(fresh == answers[0::N_CLIENTS], "other answers", fresh, answers[0::N_CLIENTS])
server.end()
sys.exit(1 if client.failures else 0)
