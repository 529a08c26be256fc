# SPDX-License-Identifier: MIT
"""Writes the folder of an adapter, as PEFT does, for the small model of tests/tiny_model.h: lora.py FOLDER [STRENGTH]."""
import json
import os
import random
import struct
import sys

SHAPES = {"self_attn.q_proj": (64, 64), "self_attn.v_proj": (32, 64), "mlp.down_proj": (64, 96)}


def write(folder, strength):
    header, data, rng = {}, b"", random.Random(1)
    for layer in range(2):
        for name, (rows, columns) in SHAPES.items():
            for factor, shape in (("A", (4, columns)), ("B", (rows, 4))):
                n = shape[0] * shape[1]
                raw = struct.pack("<%df" % n, *((rng.random() - 0.5) * strength for _ in range(n)))
                header["base_model.model.model.layers.%d.%s.lora_%s.weight" % (layer, name, factor)] = {
                    "dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
                data += raw
    text = json.dumps(header).encode()
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/adapter_model.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)
    with open(folder + "/adapter_config.json", "w", encoding="utf-8") as out:
        json.dump({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "bias": "none", "target_modules": ["q_proj"],
                   "base_model_name_or_path": "tiny"}, out)


write(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 0.6)
