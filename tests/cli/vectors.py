# SPDX-License-Identifier: MIT
"""Copies of tiny encoders with a vocabulary of letters, and what their vectors are compared with.
vectors.py make SHARED; vectors.py lines SHARED NAME; vectors.py check WHAT FILE..."""
import json
import math
import os
import shutil
import struct
import sys

LETTERS = "abcdefghijklmnopqrstuvwxyz.?,"


def tokenizer(marks, pair_type):
    """WordPiece of single letters; `marks` are the special tokens: beginning, separator, unknown, padding."""
    vocab = {}
    for word in marks + list(LETTERS) + ["##" + letter for letter in LETTERS]:
        vocab[word] = len(vocab)
    begin, end = marks[0], marks[1]
    return {"added_tokens": [{"id": vocab[m], "content": m, "special": True, "normalized": False} for m in marks],
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                           "strip_accents": None, "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": pair_type, "sep": [end, vocab[end]], "cls": [begin, vocab[begin]]},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": marks[2], "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 100, "vocab": vocab}}


def make(shared):
    for name, marks in (("bert-embed", ["[CLS]", "[SEP]", "[UNK]", "[PAD]"]),
                        ("bert-rerank", ["<s>", "</s>", "<unk>", "<pad>"])):
        shutil.rmtree(name, ignore_errors=True)
        shutil.copytree(os.path.join(shared, "models-tiny", name, "hf"), name)
        for folder, _, files in os.walk(name):
            os.chmod(folder, 0o755)
            for file in files:
                os.chmod(os.path.join(folder, file), 0o644)
        with open(os.path.join(name, "tokenizer.json"), "w") as out:
            json.dump(tokenizer(marks, "BertProcessing"), out)
    with open("bert-embed/config_sentence_transformers.json", "w") as out:
        json.dump({"prompts": {"query": "seek ", "document": ""}, "default_prompt_name": None}, out)


def read_npy(path):
    data = open(path, "rb").read()
    assert data[:8] == b"\x93NUMPY\x01\x00" and (10 + struct.unpack("<H", data[8:10])[0]) % 64 == 0, data[:16]
    n = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + n].decode(), {}, {})
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    rows, width = header["shape"]
    values = struct.unpack("<%df" % (rows * width), data[10 + n:])
    return [list(values[i * width:(i + 1) * width]) for i in range(rows)]


def read_lines(path):
    return [json.loads(line)["embedding"] for line in open(path)]


def same(a, b, within):
    assert len(a) == len(b) and all(len(x) == len(y) for x, y in zip(a, b)), (len(a), len(b))
    worst = max(abs(x - y) for v, w in zip(a, b) for x, y in zip(v, w))
    assert worst <= within, worst


def check(what, *files):
    if what == "golden":  # FILE.npy of all texts, vectors.f32
        vectors = read_npy(files[0])
        raw = open(files[1], "rb").read()
        width = len(vectors[0])
        golden = struct.unpack("<%df" % (len(raw) // 4), raw)
        same(vectors, [golden[i * width:(i + 1) * width] for i in range(len(golden) // width)], 2e-5)
    elif what == "equal":
        same(read_lines(files[0]), read_lines(files[1]), 0)
    elif what == "npy":
        same(read_lines(files[0]), read_npy(files[1]), 1e-7)
    elif what == "other":
        assert read_lines(files[0]) != read_lines(files[1])
    elif what == "cut":  # the first 10 dimensions, of length 1
        whole, cut = read_lines(files[0]), read_lines(files[1])
        for v, w in zip(whole, cut):
            length = math.sqrt(sum(x * x for x in v[:10]))
            assert len(w) == 10
            same([[x / length for x in v[:10]]], [w], 1e-6)
    elif what == "scores":  # as printed, the best first; each document once
        rows = [json.loads(line) for line in open(files[0])]
        scores = [row["relevance_score"] for row in rows]
        assert scores == sorted(scores, reverse=True) and len(set(scores)) == len(scores), scores
        assert sorted(row["index"] for row in rows) == list(range(len(rows))), rows


if sys.argv[1] == "make":
    make(sys.argv[2])
elif sys.argv[1] == "lines":  # token ids of a golden's texts as JSON lines
    for line in open(os.path.join(sys.argv[2], "models-tiny", sys.argv[3], "tokens.txt")):
        print(json.dumps({"ids": [int(word) for word in line.split()]}))
else:
    check(*sys.argv[2:])
