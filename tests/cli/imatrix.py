# SPDX-License-Identifier: MIT
"""Importance matrices in llama.cpp's two forms, for a model of L layers: imatrix.py gguf|dat LAYERS WIDTH FFN OUT [FAULT]"""
import random
import struct
import sys

form, n_layers, width, ffn, out = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
fault = sys.argv[6] if len(sys.argv) > 6 else ""
random.seed(3)
entries = []
for layer in range(n_layers):
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        n = ffn if name == "ffn_down" else width
        entries.append((f"blk.{layer}.{name}.weight", [random.choice([0.01, 1, 30]) for _ in range(n)]))
if fault == "missing":
    entries.pop(3)
if fault == "nan":
    entries[2][1][5] = float("nan")
if fault == "twice":
    entries.append(entries[0])
count = 0 if fault == "count" else 40


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


if form == "dat":
    b = struct.pack("<i", len(entries))
    for name, values in entries:
        b += struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", count, len(values))
        b += struct.pack(f"<{len(values)}f", *(v * 40 for v in values))
    b += struct.pack("<ii", 40, 4) + b"text"
else:
    keys = text("general.type") + struct.pack("<I", 8) + text("model" if fault == "model" else "imatrix")
    keys += text("imatrix.chunk_count") + struct.pack("<II", 4, 40)
    infos, data = b"", b""
    for name, values in entries:
        for end, numbers in ((".in_sum2", [v * 40 for v in values]), (".counts", [count])):
            infos += text(name + end) + struct.pack("<IQQIQ", 2, len(numbers), 1, 0, len(data))
            data += struct.pack(f"<{len(numbers)}f", *numbers)
            data += bytes(-len(data) % 32)
    b = b"GGUF" + struct.pack("<IQQ", 3, 2 * len(entries), 2) + keys + infos
    b += bytes(-len(b) % 32) + data
open(out, "wb").write(b[:-60] if fault == "cut" else b)
