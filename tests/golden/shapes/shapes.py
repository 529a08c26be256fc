# SPDX-License-Identifier: MIT
"""Logits of random shapes of every family beside those of the reference: shapes.py FIRST COUNT [FAMILY...] makes COUNT
models a family from the seed FIRST on, and compares the folder and, where the family has one, its GGUF file."""
import json
import os
import shutil
import subprocess
import sys
import zlib

import numpy as np

import gguf
from maker import Maker
from reference import Reference

WHIT = os.environ["WHIT"].split()
FAMILIES = [n for n, f in vars(Maker).items() if n in vars(Reference) and callable(f) and f.__code__.co_argcount == 1]
FAR = 2e-3  # logits spread over several units; f32 was at most 5e-4 away
CLOSE = 2e-4  # a choice of experts that f32 may make otherwise


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, t in tensors.items():
        header[name] = {"dtype": "BF16", "shape": list(t.shape), "data_offsets": [at, at + 2 * t.size]}
        at += 2 * t.size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for t in tensors.values():
            out.write((np.ascontiguousarray(t, "<f4").view("<u4") >> 16).astype("<u2").tobytes())


def whit(*args):
    return subprocess.run([*WHIT, *args], capture_output=True, text=True, check=False)


def distance(path, right):
    """The largest difference from the right logits, or what the program says."""
    if os.path.exists("out.f32"):
        os.remove("out.f32")
    done = whit("logits", "-m", path, "--no-cache", "--tokens", "ids", "-o", "out.f32", "--kv", "f32", "--act", "f32")
    if done.returncode:
        return done.stderr.strip()
    return np.abs(np.fromfile("out.f32", "<f4").reshape(right.shape) - right).max()


def make(family, seed):
    """A folder, its tokens and their logits; other seeds are tried where a choice of experts is too close for f32."""
    for attempt in range(20):
        maker = Maker(zlib.crc32(family.encode()) ^ (seed + 1000 * attempt))
        config = getattr(maker, family)()
        n_vocab = config.get("text_config", config)["vocab_size"]
        ids = [maker.rng.randrange(n_vocab) for _ in range(maker.pick(30, 90))]
        reference = Reference(config, maker.tensors)
        right = reference.logits(ids)
        if reference.margin >= CLOSE:
            break
    else:
        sys.exit("every choice is close: %s %d" % (family, seed))
    shutil.rmtree("model", ignore_errors=True)
    os.mkdir("model")
    with open("model/config.json", "w", encoding="ascii") as out:
        json.dump(config, out)
    write_safetensors("model/model.safetensors", maker.tensors)
    with open("ids", "w", encoding="ascii") as out:
        out.write(" ".join(map(str, ids)))
    return right, gguf.write("their.gguf", config, maker.tensors)


def compare(family, seed):
    """The distances by form: of the folder and, where there is one, of a GGUF file of ours and of the program's own."""
    right, has_file = make(family, seed)
    found = {"folder": distance("model", right)}
    if has_file:
        found["GGUF"] = distance("their.gguf", right)
    if whit("export", "model", "--float-type", "f16", "-o", "own.gguf").returncode == 0:
        found["export"] = distance("own.gguf", right)
        os.remove("own.gguf")
    return found


def main(first, count, families):
    failed = 0
    for family in families:
        worst, n = 0.0, {"folder": 0, "GGUF": 0, "export": 0}
        for seed in range(first, first + count):
            for form, far in compare(family, seed).items():
                n[form] += 1
                if isinstance(far, str) or not far < FAR:
                    print("FAILED:", family, seed, form, far)
                    failed = 1
                else:
                    worst = max(worst, far)
        print(
            "%s: %s, at most %.1e away" % (family, ", ".join("%d %s" % (v, k) for k, v in n.items()), worst), flush=True
        )
    return failed


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or FAMILIES))
