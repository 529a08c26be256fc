# SPDX-License-Identifier: MIT
"""draft.py FOLDER N_EMBD N_VOCAB: a random Qwen3.5 of one layer, with a block that predicts one more token."""
import json
import os
import random
import struct
import sys

folder, n_embd, n_vocab = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
HEADS, HEAD_DIM, N_FF = 2, 32, 48
random.seed(7)
shapes = {"model.embed_tokens.weight": [n_vocab, n_embd], "model.norm.weight": [n_embd],
          "mtp.fc.weight": [n_embd, 2 * n_embd], "mtp.norm.weight": [n_embd],
          "mtp.pre_fc_norm_embedding.weight": [n_embd], "mtp.pre_fc_norm_hidden.weight": [n_embd]}
for layer in ["model.layers.0.", "mtp.layers.0."]:
    shapes.update({layer + name: shape for name, shape in {
        "input_layernorm.weight": [n_embd], "post_attention_layernorm.weight": [n_embd],
        "self_attn.q_proj.weight": [2 * HEADS * HEAD_DIM, n_embd], "self_attn.k_proj.weight": [HEAD_DIM, n_embd],
        "self_attn.v_proj.weight": [HEAD_DIM, n_embd], "self_attn.o_proj.weight": [n_embd, HEADS * HEAD_DIM],
        "self_attn.q_norm.weight": [HEAD_DIM], "self_attn.k_norm.weight": [HEAD_DIM],
        "mlp.gate_proj.weight": [N_FF, n_embd], "mlp.up_proj.weight": [N_FF, n_embd],
        "mlp.down_proj.weight": [n_embd, N_FF]}.items()})
header, data = {}, b""
for name, shape in shapes.items():
    n = shape[0] * (shape[1] if len(shape) > 1 else 1)
    values = struct.pack(f"<{n}f", *(random.uniform(-0.2, 0.2) for _ in range(n)))
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
    data += values
os.makedirs(folder)
with open(folder + "/model.safetensors", "wb") as out:
    text = json.dumps(header).encode()
    out.write(struct.pack("<Q", len(text)) + text + data)
with open(folder + "/config.json", "w") as out:
    json.dump({"architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text", "hidden_size": n_embd,
               "vocab_size": n_vocab, "num_hidden_layers": 1, "layer_types": ["full_attention"],
               "num_attention_heads": HEADS, "num_key_value_heads": 1, "head_dim": HEAD_DIM,
               "intermediate_size": N_FF, "max_position_embeddings": 256, "tie_word_embeddings": True,
               "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default", "partial_rotary_factor": 0.25}},
              out)
