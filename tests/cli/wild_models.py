# SPDX-License-Identifier: MIT
"""Stand-ins of what people download in place of a model that runs: small files and folders with the names, heads and
configurations of published ones. wild_models.py FOLDER writes them and prints a line "NAME|WORDS;..." for each: what
the one line of a refusal must say."""
import json
import os
import struct
import sys
import zipfile

STRING, U32, F32 = 8, 4, 6


def gguf(path, keys, tensors=("token_embd.weight",)):
    """A GGUF file with keys (text or whole numbers) and F32 tensors of 32 x 4."""
    def text(s):
        return struct.pack("<Q", len(s.encode())) + s.encode()
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for name, value in keys.items():
        if isinstance(value, str):
            out += text(name) + struct.pack("<I", STRING) + text(value)
        else:
            out += text(name) + struct.pack("<II", U32, value)
    for i, name in enumerate(tensors):
        out += text(name) + struct.pack("<IQQIQ", 2, 32, 4, 0, 512 * i)
    out += b"\0" * (-len(out) % 32) + b"\0" * 512 * len(tensors)
    write(path, out)


def safetensors(path, names=("model.embed_tokens.weight",)):
    head = {n: {"dtype": "F32", "shape": [4, 32], "data_offsets": [512 * i, 512 * i + 512]} for i, n in enumerate(names)}
    text = json.dumps(head).encode()
    write(path, struct.pack("<Q", len(text)) + text + b"\0" * 512 * len(names))


def write(path, data):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as out:
        out.write(data if isinstance(data, bytes) else data.encode())


TEXT = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 256, "rms_norm_eps": 1e-6, "rope_theta": 1e4,
        "vocab_size": 300, "hidden_act": "silu"}


def folder(name, architecture, model_type, weights="model.safetensors", **fields):
    config = dict(TEXT, architectures=[architecture], model_type=model_type, **fields)
    write(os.path.join(name, "config.json"), json.dumps(config, indent=1))
    if weights == "model.safetensors":
        safetensors(os.path.join(name, weights))
    elif weights:
        write(os.path.join(name, weights), b"PK\x03\x04" + b"\0" * 100)


def text_of(**fields):
    return dict(TEXT, **fields)


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 1117320736\n"
rows = []


def row(name, *words):
    rows.append((name, words))


def families():
    """Folders of families that are not read: their names, and what they need."""
    for name, architecture, model_type, needs in (
            ("granite-4.0-h-tiny", "GraniteMoeHybridForCausalLM", "granitemoehybrid", "Mamba"),
            ("Falcon-H1-1.5B-Instruct", "FalconH1ForCausalLM", "falcon_h1", "Mamba"),
            ("NVIDIA-Nemotron-Nano-9B-v2", "NemotronHForCausalLM", "nemotron_h", "Mamba"),
            ("MiniCPM4-0.5B", "MiniCPMForCausalLM", "minicpm", "scaled"),
            ("Qwen3-VL-2B-Instruct", "Qwen3VLForConditionalGeneration", "qwen3_vl", "image"),
            ("LFM2.5-VL-1.6B", "Lfm2VlForConditionalGeneration", "lfm2_vl", "image"),
            ("whisper-small", "WhisperForConditionalGeneration", "whisper", "sound"),
            ("gemma-3n-E2B-it", "Gemma3nForConditionalGeneration", "gemma3n", "Gemma 3n"),
            ("gemma-2-2b-it", "Gemma2ForCausalLM", "gemma2", "capped"),
            ("DeepSeek-V3.2", "DeepseekV32ForCausalLM", "deepseek_v32", "latent attention"),
            ("GLM-4.7-Flash", "Glm4MoeLiteForCausalLM", "glm4_moe_lite", "partial RoPE"),
            ("nomic-embed-text-v1.5", "NomicBertModel", "nomic_bert", "encoder"),
            ("ModernBERT-base", "ModernBertForMaskedLM", "modernbert", "encoder"),
            ("jina-embeddings-v2-small-en", "JinaBertForMaskedLM", "bert", "ALiBi"),
            ("t5-small", "T5ForConditionalGeneration", "t5", "encoder"),
            ("Mixtral-8x7B", "MixtralForCausalLM", "mixtral", "mixture of experts"),
            ("rwkv7-g1", "RWKV7ForCausalLM", "rwkv7", "recurrent"),
            ("Kimi-Linear", "KimiLinearForCausalLM", "kimi_linear", "recurrent"),
            ("sam-audio", "SomethingNewForCausalLM", "something_new", "SomethingNew")):
        folder("families/" + name, architecture, model_type)
        row("families/" + name, "known", needs)
    folder("families/jina-embeddings-v3", "XLMRobertaModel", "xlm-roberta", position_embedding_type="rotary", hidden_act="gelu")
    row("families/jina-embeddings-v3", "positions")


def parts():
    """Folders that lack something."""
    folder("parts/only-pytorch", "LlamaForCausalLM", "llama", "pytorch_model.bin")
    row("parts/only-pytorch", "pytorch_model.bin", "safetensors")
    folder("parts/no-weights", "LlamaForCausalLM", "llama", None)
    row("parts/no-weights", "model.safetensors")
    folder("parts/lfs", "LlamaForCausalLM", "llama", None)
    write("parts/lfs/model.safetensors", LFS)
    row("parts/lfs", "git-LFS", "git lfs pull")
    folder("parts/lfs-config", "LlamaForCausalLM", "llama")
    write("parts/lfs-config/config.json", LFS)
    row("parts/lfs-config", "git-LFS")
    folder("parts/half-index", "LlamaForCausalLM", "llama", None)
    write("parts/half-index/model.safetensors.index.json", json.dumps(
        {"weight_map": {"model.embed_tokens.weight": "model-00001-of-00002.safetensors",
                        "model.norm.weight": "model-00002-of-00002.safetensors"}}))
    safetensors("parts/half-index/model-00001-of-00002.safetensors")
    row("parts/half-index", "model-00002-of-00002.safetensors")
    folder("parts/bitsandbytes", "LlamaForCausalLM", "llama",
           quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True})
    row("parts/bitsandbytes", "bitsandbytes")
    folder("parts/exl2", "LlamaForCausalLM", "llama", quantization_config={"quant_method": "exl2", "bits": 4.0})
    row("parts/exl2", "exl2")
    write("parts/lora/adapter_config.json", json.dumps(
        {"peft_type": "LORA", "base_model_name_or_path": "Qwen/Qwen3-0.6B", "r": 8, "lora_alpha": 16,
         "target_modules": ["q_proj"]}))
    safetensors("parts/lora/adapter_model.safetensors", ("base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight",))
    row("parts/lora", "adapter", "--for")
    safetensors("parts/alone/model.safetensors")
    row("parts/alone/model.safetensors", "config.json")
    write("parts/onnx/onnx/model.onnx", b"\x08\x07\x12\x07pytorch")
    row("parts/onnx", "config.json")
    os.makedirs("parts/empty", exist_ok=True)
    row("parts/empty", "config.json")
    os.makedirs("parts/ggufs", exist_ok=True)
    gguf("parts/ggufs/model-Q4_K_M.gguf", {"general.architecture": "llama"})
    row("parts/ggufs", "model-Q4_K_M.gguf")


def files():
    """Files that are no model, or not yet one."""
    write("files/page.gguf", "<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>\n")
    row("files/page.gguf", "web page")
    write("files/blank-page.gguf", "\n\n  <!doctype html><html></html>")
    row("files/blank-page.gguf", "web page")
    write("files/error.gguf", '{"error":"Repository not found"}')
    row("files/error.gguf", "answer of a server")
    write("files/denied.gguf", "Access to model x/y is restricted. You must be authenticated to access it.")
    row("files/denied.gguf", "text")
    write("files/entry.gguf", "Entry not found")
    row("files/entry.gguf", "text")
    write("files/empty.gguf", b"")
    row("files/empty.gguf", "empty", "download it again")
    write("files/zeros.gguf", b"\0" * 4096)
    row("files/zeros.gguf", "zero bytes", "again")
    write("files/lfs.gguf", LFS)
    row("files/lfs.gguf", "git-LFS")
    with zipfile.ZipFile("files/packed.zip", "w") as packed:
        packed.writestr("model.gguf", "GGUF")
    row("files/packed.zip", "zip", "unpack")
    with zipfile.ZipFile("files/pytorch_model.bin", "w") as packed:
        packed.writestr("archive/data.pkl", b"\x80\x02")
    row("files/pytorch_model.bin", "PyTorch", "safetensors")
    write("files/old.pth", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.")
    row("files/old.pth", "PyTorch", "safetensors")
    write("files/model.gguf.gz", b"\x1f\x8b\x08\0" + b"\0" * 60)
    row("files/model.gguf.gz", "gzip", "unpack")
    write("files/model.tar.zst", b"\x28\xb5\x2f\xfd" + b"\0" * 60)
    row("files/model.tar.zst", "zstd", "unpack")
    write("files/model.xz", b"\xfd7zXZ\0" + b"\0" * 60)
    row("files/model.xz", "xz", "unpack")
    write("files/model.7z", b"7z\xbc\xaf\x27\x1c" + b"\0" * 60)
    row("files/model.7z", "7-Zip", "unpack")
    write("files/model.onnx", b"\x08\x07\x12\x07pytorch" + b"\0" * 60)
    row("files/model.onnx", "not a GGUF file")
    write("files/ggml-base.bin", b"lmgg" + b"\0" * 60)
    row("files/ggml-base.bin", "older than GGUF")
    gguf("files/whole.gguf", {"general.architecture": "llama"})
    data = open("files/whole.gguf", "rb").read()
    for name in ("half.gguf.part", "half.gguf.crdownload", "half.gguf.incomplete", "half.gguf.aria2"):
        write("files/" + name, data[:len(data) // 2])
        row("files/" + name, "unfinished download")
    write("files/half.gguf", data[:len(data) - 300])
    row("files/half.gguf", "damaged or truncated")
    write("files/model.gguf.part1of2", data[:200])
    row("files/model.gguf.part1of2", "cat ")
    write("files/model.gguf-split-a", data[:200])
    row("files/model.gguf-split-a", "cat ")


def ggufs():
    """GGUF files that are something else."""
    for name, keys, words in (
            ("mmproj-F16", {"general.architecture": "clip", "general.type": "mmproj"}, ("images or sound", "published with")),
            ("mmproj-old", {"general.architecture": "clip"}, ("images or sound", "published with")),
            ("lora", {"general.architecture": "llama", "general.type": "adapter", "adapter.type": "lora"},
             ("adapter", "PEFT")),
            ("imatrix", {"general.type": "imatrix"}, ("importance matrix", "--imatrix")),
            ("control", {"general.architecture": "controlvector"}, ("control vector",)),
            ("vocabulary", {"general.architecture": "llama", "tokenizer.ggml.model": "llama"}, ("weights",)),
            ("flux1-dev-Q4_0", {"general.architecture": "flux"}, ("pictures",)),
            ("t5-encoder", {"general.architecture": "t5encoder"}, ("encoder",)),
            ("wan2.2", {"general.architecture": "wan"}, ("pictures",)),
            ("granite-4.0-h-tiny", {"general.architecture": "granitehybrid"}, ("Mamba",)),
            ("gemma3n", {"general.architecture": "gemma3n"}, ("Gemma 3n",)),
            ("Qwen3-VL", {"general.architecture": "qwen3vl"}, ("image",)),
            ("nomic-embed", {"general.architecture": "nomic-bert"}, ("encoder",)),
            ("deepseek", {"general.architecture": "deepseek2"}, ("latent attention",))):
        gguf("ggufs/%s.gguf" % name, keys, () if name == "vocabulary" else ("token_embd.weight",))
        row("ggufs/%s.gguf" % name, *words)
    gguf("ggufs/m-00001-of-00003.gguf", {"general.architecture": "llama", "split.no": 0, "split.count": 3,
                                         "split.tensors.count": 3})
    row("ggufs/m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "file 2 of a split set of 3")


os.makedirs(sys.argv[1], exist_ok=True)
os.chdir(sys.argv[1])
for make in (families, parts, files, ggufs):
    make()
for name, words in rows:
    print(name + "|" + ";".join(words))
