# SPDX-License-Identifier: MIT
# Runs each verb that writes models with all of its options, and looks for them in the file's record. A new option
# fails here until it has a line. Arguments: the program.
import json
import os
import re
import struct
import subprocess
import sys

PROGRAM = sys.argv[1:]
# Options that leave the result as it is, or make no model.
NEUTRAL = """--output --split-max-size --report --log --plot --held-out --held-out-every --held-out-windows --checkpoint
 --checkpoint-seconds --verbose --json --threads --resume --no-cache --strict --for --append""".split()
NEUTRAL_OF = {"convert": ["--name"]}  # of an adapter, whose file has no record
TRAINING = ("--steps 1 --seed 5 --specials --rate 2e-3 --scale-rate 0.2 --decay 0.01 --clip 2 --beta2 0.9 --warm-up 0.1 "
            "--ramp 0.1 --balance 0.01 --refit-scales --sequences 2 --window 16 --accumulate 2 --precision f32 --recompute "
            "--held-out text --held-out-windows 1 --held-out-every 1 --checkpoint c --checkpoint-seconds 9 --log l "
            "--plot p.svg --threads 1")
SHORTER = "-m tiny.gguf --override-kv llama.context_length=int:128".split()
MINUTES = "--minutes 0.001 --sequences 1 -c 8 --held-out text --held-out-windows 1"
SHAPE = "--width 128 --layers 1 --heads 2 --ffn 128 --vocab 300 --context 32"
# Command lines of each verb: together they have all of its options. "-o out.ndf" is added.
LINES = {
    "train": [f"--text text {SHAPE} --codec f16 --kv-heads 2 --own-head --special <|a|> --name first --embedding f32 "
              "--template turns.jinja " + TRAINING,
              f"--text text --start base.ndf {MINUTES}",
              f"--text text --tokenizer tiny.gguf --config shape.json {MINUTES}"],
    "distill": ["--teacher base.ndf --text text --codec b1 --mixed down=t --embedding f16 --sample 64 --random 32 --kl 0.5 "
                "--ce 0.5 --hidden 0.1 " + TRAINING,
                f"--teacher base.ndf --text text --student shape.json {MINUTES}",
                f"--teacher base.ndf --text text --start base.ndf --blocks {MINUTES}"],
    "tune": ["-m base.ndf --text text --rank 2 --matrix q --teacher base.ndf --kl 0.5 --ce 0.5 --hidden 0.1 --norms "
             "--no-cache --strict " + TRAINING,
             f"-m tiny.gguf --text text --override-kv llama.context_length=int:128 {MINUTES}",
             f"-m base.ndf --text text --family decoder.ndl {MINUTES}",
             f"-m coded.ndf --text text --scales --rank 0 {MINUTES}"],
    "merge": ["-m base.ndf --adapter lora.ndf:0.5 --codec f32 -t 1 -v", "-m tiny.gguf --adapter tiny-lora.ndf --override-kv llama.context_length=int:128 --json",
              "-m base.ndf --adapter program-lora.ndf --family decoder.ndl"],
    "convert": ["base.ndf --codec t2 --embd i8 --head i8 --split-max-size 100 --strict -v", "base.ndf --json",
                "tiny.gguf --override-kv llama.context_length=int:128",
                "base.ndf --family decoder.ndl"],
    "compress": ["base.ndf --codec b1 --mixed down=t --calib text --sample 64 --calib-tokens 256 --window 32 --method full "
                 "--without rotation --outliers 0.1 --plane 5 --rank 2 --tune-tokens 64 --tune-blocks --tune-rate 2e-4 "
                 "--group 64 --scales f16 --embedding f16 --seed 3 -t 1 -v --report r.html",
                 "base.ndf --codec b1 --pure --method gptq --calib text --calib-tokens 128 --tune-minutes 0.001 --json",
                 "base.ndf --codec t --method rtn --imatrix imatrix.dat"],
}
BITS = "base.ndf --bits 3 --calib text --calib-tokens 256 -c 32"


def run(words):
    done = subprocess.run(PROGRAM + words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"whit {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def options_of(verb):
    """The options of the verb's help, each as the list of its names."""
    lines = re.findall(r"^    (-.*)$", run(["help", verb]), re.M)
    return [re.findall(r"(?<![\w=])--?[a-zA-Z][\w-]*", line) for line in lines]


def record_of(path):
    found = json.loads(run(["inspect", path, "--json"]))
    text = json.dumps(found)
    return json.loads('"' + re.search(r'"whit\.command": "((?:[^"\\]|\\.)*)"', text).group(1) + '"')


def look_for(verb, words, options):
    """Complains of an option of the line that is missing in the record, or is there and should not be."""
    bad = []
    record = " " + record_of("out.ndf") + " "
    for at, word in enumerate(words):
        names = next((names for names in options if word in names), None)
        if not names:
            continue
        name = next((name for name in names if name.startswith("--")), word)
        value = words[at + 1] if at + 1 < len(words) and words[at + 1] not in sum(options, []) else ""
        is_wanted = name not in NEUTRAL + NEUTRAL_OF.get(verb, [])
        if is_wanted != (f" {name} " in record):
            bad.append(f"{name} {'is not' if is_wanted else 'is'} in the record")
        elif is_wanted and value and value[0] not in "0123456789" and value.split("/")[-1] not in record:
            bad.append(f"{name} {value} is not in the record")
        elif is_wanted and value and value[0] in "0123456789" and \
                not any(float(found) == float(value) for found in re.findall(re.escape(f" {name} ") + r"([\d.e-]+)", record)):
            bad.append(f"{name} {value} is not in the record")
    if bad:
        sys.exit(f"whit {verb} {' '.join(words)}: {'; '.join(bad)}:{record}")


with open("shape.json", "w") as file:
    json.dump({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 128, "num_hidden_layers": 1,
               "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 300,
               "max_position_embeddings": 32, "rms_norm_eps": 1e-5, "rope_theta": 10000, "tie_word_embeddings": True}, file)
with open("turns.jinja", "w") as file:
    file.write("{% for m in messages %}{{ m.content }}{% endfor %}")
run(["train", "--text", "text", *SHAPE.split(), "--steps", "1", "--codec", "f16", "-c", "32", "-o", "base.ndf"])
run(["tune", "-m", "base.ndf", "--text", "text", "--steps", "1", "-c", "16", "--rank", "2", "-o", "lora.ndf"])
for name, words in (("tiny", SHORTER), ("program", ["-m", "base.ndf", "--family", "decoder.ndl"])):
    run(["tune", *words, "--text", "text", "--steps", "1", "-c", "16", "--rank", "2", "-o", f"{name}-lora.ndf"])
run(["compress", "base.ndf", "--codec", "t", "--method", "rtn", "-o", "coded.ndf"])
means = {"attn_q": 128, "attn_k": 128, "attn_v": 128, "attn_output": 128, "ffn_gate": 128, "ffn_up": 128, "ffn_down": 128}
with open("imatrix.dat", "wb") as file:  # the older binary form: name, calls, means
    file.write(struct.pack("<i", len(means)))
    for name, width in means.items():
        key = f"blk.0.{name}.weight".encode()
        file.write(struct.pack("<i", len(key)) + key + struct.pack("<ii", 1, width) + struct.pack(f"<{width}f", *[1.0] * width))

for verb, lines in LINES.items():
    options = options_of(verb)
    used = set(f"--resume -o --output".split()) | set(NEUTRAL + NEUTRAL_OF.get(verb, []))
    for line in lines + ([BITS] if verb == "compress" else []):
        words = line.split()
        used.update(words)
        for left in ("out.ndf", "c"):
            if os.path.exists(left):
                os.remove(left)
        run([verb, *words, "-o", "out.ndf"])
        look_for(verb, words, options)
    for names in options:
        if not used & set(names):
            sys.exit(f"whit {verb}: no line tries {names[-1]}")
# what a budget chooses is no option of the run; names with blanks are in quotes; neutral options give the same bytes
record = record_of("out.ndf")
if "--codec" in record or "--bits 3" not in record:
    sys.exit(f"a budget's record: {record}")
run(["compress", "base.ndf", "--codec", "q2", "--calib", "a text", "--calib-tokens", "128", "-o", "out.ndf"])
first = open("out.ndf", "rb").read()
if '--calib "a text" --calib-tokens 128' not in record_of("out.ndf"):
    sys.exit(f"a text's name: {record_of('out.ndf')}")
run(["compress", "base.ndf", "--codec", "q2", "--calib", "a text", "--calib-tokens", "128", "-t", "2", "--json", "--report",
     "r.html", "-o", "again.ndf"])
if open("again.ndf", "rb").read() != first:
    sys.exit("options that leave the result as it is changed the file")
