# SPDX-License-Identifier: MIT
# A model of an architecture that no importer knows, parallel attention and partial RoPE, and what it
# computes in plain arithmetic. family.py make FOLDER; family.py check FOLDER TOKENS LOGITS.
import json
import math
import os
import random
import struct
import sys

LAYERS, WIDTH, FF, HEADS, KV_HEADS, HEAD, VOCAB, PART, EPS, THETA = 2, 32, 48, 4, 2, 8, 40, 0.5, 1e-5, 10000.0


def shapes():
    kv = KV_HEADS * HEAD
    layer = {"input_layernorm.weight": [WIDTH], "self_attn.q_proj.weight": [WIDTH, WIDTH],
             "self_attn.k_proj.weight": [kv, WIDTH], "self_attn.v_proj.weight": [kv, WIDTH],
             "self_attn.dense.weight": [WIDTH, WIDTH], "mlp.gate_proj.weight": [FF, WIDTH],
             "mlp.up_proj.weight": [FF, WIDTH], "mlp.down_proj.weight": [WIDTH, FF]}
    all_ = {"model.embed_tokens.weight": [VOCAB, WIDTH], "model.norm.weight": [WIDTH], "lm_head.weight": [VOCAB, WIDTH]}
    for i in range(LAYERS):
        all_.update({f"model.layers.{i}.{name}": shape for name, shape in layer.items()})
    return all_


def weights():
    rng = random.Random(7)
    made = {}
    for name, shape in sorted(shapes().items()):
        n = math.prod(shape)
        made[name] = [struct.unpack("f", struct.pack("f", rng.uniform(-0.5, 0.5) + (len(shape) == 1)))[0] for _ in range(n)]
    return made


def make(folder):
    os.makedirs(folder, exist_ok=True)
    config = {"architectures": ["SidewaysForCausalLM"], "model_type": "sideways", "hidden_size": WIDTH,
              "intermediate_size": FF, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
              "num_key_value_heads": KV_HEADS, "vocab_size": VOCAB, "max_position_embeddings": 64,
              "partial_rotary_factor": PART, "rms_norm_eps": EPS, "rope_theta": THETA, "use_parallel_residual": True,
              "tie_word_embeddings": False}
    with open(f"{folder}/config.json", "w") as file:
        json.dump(config, file)
    head, data = {}, b""
    for name, values in weights().items():
        begin = len(data)
        data += struct.pack(f"<{len(values)}f", *values)
        head[name] = {"dtype": "F32", "shape": shapes()[name], "data_offsets": [begin, len(data)]}
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(f"{folder}/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def product(w, x):
    n = len(x)
    return [sum(a * b for a, b in zip(w[i:i + n], x)) for i in range(0, len(w), n)]


def norm(w, x):
    scale = 1 / math.sqrt(sum(a * a for a in x) / len(x) + EPS)
    return [a * b * scale for a, b in zip(w, x)]


def turned(x, position):
    turning = int(PART * HEAD)
    out = list(x)
    for begin in range(0, len(x), HEAD):
        for i in range(turning // 2):
            angle = position * THETA ** (-2 * i / turning)
            a, b = x[begin + i], x[begin + i + turning // 2]
            out[begin + i] = a * math.cos(angle) - b * math.sin(angle)
            out[begin + i + turning // 2] = a * math.sin(angle) + b * math.cos(angle)
    return out


def attend(q, keys, values):
    out = []
    for h in range(HEADS):
        at = h // (HEADS // KV_HEADS) * HEAD
        mine = q[h * HEAD:(h + 1) * HEAD]
        scores = [sum(a * b for a, b in zip(mine, k[at:at + HEAD])) / math.sqrt(HEAD) for k in keys]
        powers = [math.exp(s - max(scores)) for s in scores]
        out += [sum(p * v[at + i] for p, v in zip(powers, values)) / sum(powers) for i in range(HEAD)]
    return out


def forward(w, tokens):
    caches = [([], []) for _ in range(LAYERS)]
    for position, token in enumerate(tokens):
        x = w["model.embed_tokens.weight"][token * WIDTH:(token + 1) * WIDTH]
        for i, (keys, values) in enumerate(caches):
            def part(name):
                return w[f"model.layers.{i}.{name}.weight"]
            h = norm(part("input_layernorm"), x)
            keys.append(turned(product(part("self_attn.k_proj"), h), position))
            values.append(product(part("self_attn.v_proj"), h))
            a = attend(turned(product(part("self_attn.q_proj"), h), position), keys, values)
            a = product(part("self_attn.dense"), a)
            gate, up = product(part("mlp.gate_proj"), h), product(part("mlp.up_proj"), h)
            f = product(part("mlp.down_proj"), [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)])
            x = [p + q + r for p, q, r in zip(x, a, f)]
        yield product(w["lm_head.weight"], norm(w["model.norm.weight"], x))


def check(folder, tokens, path):
    ids = [int(word) for word in open(tokens).read().split()]
    data = open(path, "rb").read()
    assert len(data) == 4 * VOCAB * len(ids), len(data)
    worst = 0
    for row, expected in enumerate(forward(weights(), ids)):
        given = struct.unpack_from(f"<{VOCAB}f", data, 4 * VOCAB * row)
        worst = max(worst, max(abs(a - b) for a, b in zip(given, expected)))
    assert worst < 2e-4, worst
    print(f"worst difference {worst:.2e}")


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    check(*sys.argv[2:])
