# SPDX-License-Identifier: MIT
"""Hybrids: every turn of four conversations with one prefix computes its new tokens, also after a restart, and so does
every turn of chat and agent. LONG: with the layers of Qwen3.5 0.8B and a prefix of 20,000 tokens."""
import array
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import time

import client
from client import Server, check

N_CLIENTS, N_TURNS, AGAIN_MAX = 4, 20, 64
IS_LONG = "LONG" in os.environ
# Tokens of the shared prefix and of a context, and memory of checkpoints in MB: about 40 of 20 MB in the long form.
N_PREFIX, N_CTX, STATE_MB = (20000, 24576, 800) if IS_LONG else (464, 2048, 16)
SYSTEM = ("Answer shortly. The house has a door, a roof and a well. " * 400)[:N_PREFIX - 10]  # beside its role and marks
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


def write_tokenizer(folder, template):
    """A vocabulary of bytes and a template."""
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


def make_model(folder, template):
    """The small random hybrid."""
    shutil.copytree(os.environ["SHARED"] + "/models-tiny/qwen35-hybrid/hf", folder, dirs_exist_ok=True)
    write_tokenizer(folder, template)


def random_bf16(n, size, seed):
    """n numbers of a normal distribution as bytes of bfloat16."""
    rng = random.Random(seed)
    whole = array.array("f", (rng.gauss(0, size) for _ in range(n))).tobytes()
    halves = bytearray(2 * n)
    halves[0::2], halves[1::2] = whole[2::4], whole[3::4]
    return bytes(halves)


def make_wide_model(folder, template):
    """Random weights in the 24 layers of Qwen3.5 0.8B. Its vocabulary of 248,320 tokens is left out: it has no part in
    what is kept and found again."""
    width, n_ff, n_vocab, heads, kv_heads, head_dim, delta, delta_dim = 1024, 3584, 512, 8, 2, 256, 16, 128
    values = delta * delta_dim
    shapes = {"embed_tokens": [n_vocab, width], "norm": [width]}
    for i in range(24):
        layer = {"input_layernorm": [width], "post_attention_layernorm": [width], "mlp.gate_proj": [n_ff, width],
                 "mlp.up_proj": [n_ff, width], "mlp.down_proj": [width, n_ff]}
        if i % 4 == 3:
            layer |= {"self_attn.q_proj": [2 * heads * head_dim, width], "self_attn.k_proj": [kv_heads * head_dim, width],
                      "self_attn.v_proj": [kv_heads * head_dim, width], "self_attn.o_proj": [width, heads * head_dim],
                      "self_attn.q_norm": [head_dim], "self_attn.k_norm": [head_dim]}
        else:
            layer |= {"linear_attn.in_proj_qkv": [3 * values, width], "linear_attn.in_proj_z": [values, width],
                      "linear_attn.in_proj_a": [delta, width], "linear_attn.in_proj_b": [delta, width],
                      "linear_attn.conv1d": [3 * values, 1, 4], "linear_attn.out_proj": [width, values],
                      "linear_attn.norm": [delta_dim], "linear_attn.A_log": [delta], "linear_attn.dt_bias": [delta]}
        shapes |= {f"layers.{i}.{name}": shape for name, shape in layer.items()}
    header, offset, sizes = {}, 0, []
    for name, shape in shapes.items():
        n_bytes = 2
        for n in shape:
            n_bytes *= n
        full = name if name.endswith(("A_log", "dt_bias")) else name + ".weight"
        header["model.language_model." + full] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + n_bytes]}
        offset += n_bytes
        sizes.append(n_bytes)
    os.makedirs(folder, exist_ok=True)
    # Every tensor is a piece of one long sequence of 2^20 + 7 numbers, which is repeated.
    numbers = random_bf16((1 << 20) + 7, 0.02, 1) * 2
    period = len(numbers) // 2
    with open(folder + "/model.safetensors", "wb") as out:
        text = json.dumps(header).encode()
        out.write(struct.pack("<Q", len(text)) + text)
        at = 0
        for n_bytes in sizes:
            while n_bytes:
                piece = min(n_bytes, period)
                out.write(numbers[at:at + piece])
                n_bytes -= piece
                at = (at + piece) % period
    with open(os.environ["SHARED"] + "/models-tiny/qwen35-hybrid/hf/config.json", encoding="utf-8") as file:
        config = json.load(file)
    config["text_config"] |= {
        "hidden_size": width, "intermediate_size": n_ff, "vocab_size": n_vocab, "num_hidden_layers": 24,
        "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 6, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "head_dim": head_dim, "linear_num_key_heads": delta,
        "linear_num_value_heads": delta, "linear_key_head_dim": delta_dim, "linear_value_head_dim": delta_dim,
        "max_position_embeddings": N_CTX}
    config["text_config"]["rope_parameters"]["mrope_section"] = [11, 11, 10]
    with open(folder + "/config.json", "w", encoding="utf-8") as out:
        json.dump(config, out)
    write_tokenizer(folder, template)


class Conversation:
    def __init__(self, name):
        self.name = name
        self.messages = [{"role": "system", "content": SYSTEM}]
        self.n_before = 0  # tokens of the last prompt
        self.answered = 0  # when the last answer had come

    def question(self, turn):
        return {"role": "user", "content": f"{self.name} asks {turn}: where is it?"}

    def add_turn(self, turn):
        """A turn that another server has answered."""
        # The random model's bytes are no text: the conversation has a text of its own in their place.
        self.messages += [self.question(turn), {"role": "assistant", "content": f"by the well {turn}"}]

    def ask(self, server, turn):
        """Tokens that were computed beside those after the last prompt, and the answer."""
        body = {"messages": [*self.messages, self.question(turn)], "max_tokens": 20, "temperature": 0, "ignore_eos": True}
        status, reply = server.ask("POST", "/v1/chat/completions", body, {"x-session-id": self.name})
        self.answered = time.time()
        check(status == 200, status, reply[:200])
        reply = json.loads(reply)
        usage = reply["usage"]
        n, cached = usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]
        again = self.n_before - cached
        self.n_before = n
        self.add_turn(turn)
        return again, reply["choices"][0]["message"]["content"]


def start():
    return Server("-m", MODEL, "-c", str(N_CTX), "-np", str(N_CLIENTS), "--cache-dir", "kept", "--state-memory", str(STATE_MB))


def run():
    """Twenty turns of each client by turns; the server is killed after the twelfth, when its slots are saved."""
    server = start()
    talks = [Conversation(f"client {i}") for i in range(N_CLIENTS)]
    talks[0].ask(server, 0)
    check(N_PREFIX < talks[0].n_before < N_PREFIX + 100, "tokens of the first prompt", talks[0].n_before)
    for talk in talks[1:]:
        talk.n_before = N_PREFIX  # all of them share the system message
        again, _ = talk.ask(server, 0)
        check(again <= AGAIN_MAX, talk.name, "computes the shared prefix again", again)
    answers = []
    most_again = 0
    for turn in range(1, N_TURNS):
        if turn == 12:
            wait_until_kept(talks)
            server.process.kill()
            server.process.wait()
            server = start()
        for talk in talks:
            again, answer = talk.ask(server, turn)
            check(again <= AGAIN_MAX, talk.name, "turn", turn, "computes again", again)
            most_again = max(most_again, again)
            answers.append(answer)
    most, now = server.metric("state_memory_max_bytes"), server.metric("state_memory_bytes")
    check(0 < now <= most <= STATE_MB << 20, "memory of checkpoints", now, most)
    check(server.metric("state_checkpoints_used_total") > 0, "no checkpoint was used")
    n_computed, n_cached = server.metric("prompt_tokens_total"), server.metric("prompt_tokens_cached_total")
    check(n_computed < (N_TURNS - 12) * N_CLIENTS * (2 * AGAIN_MAX + 40) and n_cached > n_computed, "tokens after the kill",
          n_computed, n_cached)
    server.end()
    print(f"prefix of {N_PREFIX} tokens, {N_CLIENTS} clients, {N_TURNS} turns: at most {most_again} tokens of an earlier "
          f"prompt computed again; since the kill {n_computed:.0f} prompt tokens computed, {n_cached:.0f} found; "
          f"checkpoints {now / 1e6:.1f} of {most / 1e6:.1f} MB")
    return talks[0], answers


def wait_until_kept(talks):
    """Until each slot has a file that was written after the answers that it holds."""
    answered, deadline, written = sorted(talk.answered for talk in talks), time.time() + 600, []
    while time.time() < deadline:
        written = sorted(os.stat("kept/" + name).st_mtime for name in os.listdir("kept") if name.endswith(".ndf"))
        if len(written) == len(answered) and all(a < w for a, w in zip(answered, written)):
            print(f"slots are saved {written[0] - answered[-1]:.1f} to {written[-1] - answered[-1]:.1f} s after the last answer")
            return
        time.sleep(0.1)
    check(False, "slots are not saved", answered, written)


def run_whit(arguments, stdin, environment=None):
    command = os.environ["WHIT"].split() + arguments
    return subprocess.run(command, input=stdin, capture_output=True, check=False, start_new_session=True,
                          env={**os.environ, **(environment or {})})


def check_turns(who, prompts, n_first):
    """prompts: (tokens, cached ones) of each turn. None computes a prompt before it again."""
    check(len(prompts) == N_TURNS and prompts[0][0] > n_first, who, "has turns", prompts)
    for turn in range(1, len(prompts)):
        again = prompts[turn - 1][0] - prompts[turn][1]
        check(again <= AGAIN_MAX, who, "turn", turn, "computes again", again)
    print(f"{who}: {sum(n - cached for n, cached in prompts)} prompt tokens computed for a last prompt of {prompts[-1][0]}")


def test_local_turns():
    """whit chat and whit agent, with the model in their own process."""
    options = ["-m", "hybrid", "--temp", "0"]
    questions = "".join(f"Where is it, {turn}?\n" for turn in range(N_TURNS)).encode()
    ended = run_whit(["chat", *options, "-c", "4096", "-t", "1", "-n", "12", "--state-memory", "16", "--stats", "-sys", SYSTEM],
                     questions)
    found = re.findall(rb"prompt (\d+) tokens in .*?, (\d+) kept", ended.stderr)
    check_turns("whit chat", [(int(new) + int(kept), int(kept)) for new, kept in found], 464)
    shutil.rmtree("project", ignore_errors=True)
    os.makedirs("project")
    folders = {f"XDG_{name}_HOME": os.path.abspath("agent/" + name) for name in ("STATE", "CONFIG")}
    ended = run_whit(["agent", *options, "-c", "16384", "--max-turns", "1", "--project", "project"], questions,
                     {**folders, "HOME": os.path.abspath("agent")})
    found = [(0, 0)] + [(int(n), int(cached)) for n, cached in re.findall(rb"(\d+) tokens in \((\d+) of them cached\)", ended.stderr)]
    check_turns("whit agent", [(b[0] - a[0], b[1] - a[1]) for a, b in zip(found, found[1:])], 64)


def test_inspect():
    """What inspect foretells is within the memory that was given."""
    for mb in (1, 16):
        ended = run_whit(["inspect", "hybrid", "-c", str(N_CTX), "--state-memory", str(mb), "--json"], b"")
        facts = json.loads(ended.stdout)
        n, size = facts["checkpoints"], facts["checkpoint_bytes"]
        check(n > 0 and n * size <= mb << 20, "inspect: checkpoints", n, size)


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
    tool = {"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}}
    for _ in range(3):  # a program, a limit and a grammar at once; the slot is taken again and again
        thought, text = think(server, "/v1/chat/completions", {"max_tokens": 40, "thinking_budget": 7, "tools": [tool], "tool_choice": "required", 
                                                               "program": "logits = logits + 0.0"})
        check(len(thought) <= 7, "a budget with tools and a program", thought)
    server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "thinking_budget": -3}, 400)
    server.end()


def test_chat():
    """whit chat ends thinking after --think-budget tokens."""
    command = os.environ["WHIT"].split() + ["chat", "-m", "thinker", "-c", "2048", "-t", "1", "--temp", "0", "-n", "40"]
    said = [subprocess.run([*command, *more], input=b"Where is it?\n", stdout=subprocess.PIPE, check=True).stdout
            for more in ([], ["--think-budget", "6"])]
    check(b"</think>" not in said[0], "a random model ends its thinking", said[0])
    check(said[1].find(b"</think>") in range(0, 40), "whit chat --think-budget", said[1])


if IS_LONG:
    MODEL = "wide.ndf"
    make_wide_model("wide", TEMPLATE)
    ended = run_whit(["compress", "wide", "--codec", "t", "--method", "rtn", "-o", MODEL], b"")
    check(ended.returncode == 0, "no model", ended.stderr)
    shutil.rmtree("wide")
else:
    MODEL = "hybrid"
    calls = "{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor %}"
    thinks = TEMPLATE.replace("assistant\n{% endif", "assistant\n<think>\n{% endif").replace("{{ m.content }}", calls)
    make_model("thinker", "{% if tools %}{{ tools | tojson }}{% endif %}" + thinks + "{# </think> #}")
    test_budgets()
    test_chat()
    make_model("hybrid", TEMPLATE)
    test_inspect()
    test_local_turns()
shutil.rmtree("kept", ignore_errors=True)
talk, answers = run()
# The same questions without checkpoints have the same answers; of the long conversation the last one.
server = Server("-m", MODEL, "-c", str(N_CTX), "-np", "1", "--state-memory", "1")
plain, first = Conversation(talk.name), N_TURNS - 1 if IS_LONG else 0
for turn in range(first):
    plain.add_turn(turn)
fresh = [plain.ask(server, turn)[1] for turn in range(first, N_TURNS)]
check(fresh[-N_TURNS + 1:] == answers[0::N_CLIENTS][-len(fresh):], "other answers", fresh, answers[0::N_CLIENTS])
server.end()
sys.exit(1 if client.failures else 0)
