# SPDX-License-Identifier: MIT
# Makes damaged files out of model.gguf and model.ndf and gives them to the program (hostile.sh).
import os
import random
import resource
import signal
import struct
import subprocess
import sys

program = sys.argv[1:]
failed = 0
# SECONDS of processor time, which the load of the machine does not change; PATIENCE ends what hangs.
SECONDS, PATIENCE, RESIDENT_KIB, ADDRESS_SPACE = 5, 600, 512 << 10, 4 << 30


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))


def try_file(path, what, must_fail):
    """Every verb on one file. Each either works or says in one line, naming the file, why not."""
    global failed
    for verb in (["inspect", path, "--no-cache"], ["verify", path], ["convert", path, "-o", "out.ndf"],
                 ["run", "-m", path, "-p", "the", "-n", "2", "--no-cache", "-c", "16"]):
        process = subprocess.Popen(program + verb, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, preexec_fn=limit)
        signal.alarm(PATIENCE)
        try:
            err = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
        except TimeoutError:
            process.kill()
            print(f"FAILED: {what}: {verb[0]} does not end")
            failed = 1
            continue
        finally:
            signal.alarm(0)
        code = os.waitstatus_to_exitcode(status)
        process.returncode = code
        lines = [line for line in err.decode("utf-8", "replace").splitlines() if line]
        problem = None
        if code == -signal.SIGXCPU:
            problem = f"takes over {SECONDS} s"
        elif not 0 <= code <= 123:
            problem = f"ended with {code}"
        elif code and not (len(lines) == 1 and path in lines[0]):
            problem = f"said {lines}"
        elif must_fail and code == 0 and verb[0] in must_fail:
            problem = "was content"
        elif usage.ru_maxrss > RESIDENT_KIB:
            problem = f"took {usage.ru_maxrss >> 10} MiB"
        if problem:
            print(f"FAILED: {what}: {verb[0]} {problem}")
            failed = 1


def on_alarm(*_):
    raise TimeoutError


signal.signal(signal.SIGALRM, on_alarm)
gguf = bytearray(open("model.gguf", "rb").read())
ndf = bytearray(open("model.ndf", "rb").read())
rng = random.Random(3)
ALL = ("inspect", "convert", "run")


def case(name, data, what, must_fail=ALL):
    with open(name, "wb") as file:
        file.write(data)
    try_file(name, what, must_fail)


def patched(data, at, layout, *values):
    copy = bytearray(data)
    struct.pack_into(layout, copy, at, *values)
    return copy


def key(name):
    """Where the type of a metadata entry stands."""
    return gguf.index(struct.pack("<Q", len(name)) + name) + 8 + len(name)


def info(name):
    """Where the number of dimensions of a tensor stands."""
    return key(name)


# ---- GGUF: the header's counts
for at, what in ((8, "tensors"), (16, "keys")):
    for n in (0xFFFFFFFFFFFFFFFF, 1 << 62, 1 << 32, 100000):
        case("h.gguf", patched(gguf, at, "<Q", n), f"{n} {what}")
for version in (0, 1, 4, 0x03000000):
    case("h.gguf", patched(gguf, 4, "<I", version), f"version {version:#x}")
# ---- lengths and types of metadata
name = key(b"general.name")
for n in (0xFFFFFFFFFFFFFFFF, 1 << 40, len(gguf)):
    case("h.gguf", patched(gguf, name + 4, "<Q", n), f"a string of {n} bytes")
case("h.gguf", patched(gguf, name, "<I", 99), "a value of type 99")
tokens = key(b"tokenizer.ggml.tokens")
for n in (0xFFFFFFFFFFFFFFFF, 1 << 40, 1 << 20, 1):
    case("h.gguf", patched(gguf, tokens + 8, "<Q", n), f"an array of {n}")
case("h.gguf", patched(gguf, tokens + 4, "<I", 9), "an array of arrays")
for field in (b"llama.block_count", b"llama.embedding_length", b"llama.attention.head_count",
              b"llama.attention.head_count_kv", b"llama.feed_forward_length", b"llama.rope.dimension_count"):
    for n in (0, 3, 0xFFFFFFFF, 1 << 24):
        optional = field.endswith(b"rope.dimension_count") and n == 0
        case("h.gguf", patched(gguf, key(field) + 4, "<I", n), f"{field.decode()} = {n}", () if optional else ALL)
# ---- tensors
embed = info(b"token_embd.weight")
for n in (0, 5, 0xFFFFFFFF):
    case("h.gguf", patched(gguf, embed, "<I", n), f"{n} dimensions")
for n in (0, 1 << 63, 1 << 33, 63):
    case("h.gguf", patched(gguf, embed + 4, "<Q", n), f"a row of {n}")
    case("h.gguf", patched(gguf, embed + 12, "<Q", n), f"{n} rows")
case("h.gguf", patched(gguf, embed + 4, "<QQ", 1 << 32, 1 << 32), "a product that overflows")
for n in (1, 8, 30):  # smaller types: another model, but a sound one
    case("h.gguf", patched(gguf, embed + 20, "<I", n), f"type {n}", ())
for n in (4, 36, 99, 0xFFFFFFFF):
    case("h.gguf", patched(gguf, embed + 20, "<I", n), f"type {n}")
for n in (1, len(gguf), 1 << 63, 0xFFFFFFFFFFFFFFE0):
    case("h.gguf", patched(gguf, embed + 24, "<Q", n), f"offset {n}")
case("h.gguf", gguf.replace(b"blk.1.ffn_up", b"blk.1.ffn_uq"), "a missing tensor")
case("h.gguf", gguf.replace(b"blk.1.ffn_up", b"blk.0.ffn_up"), "a name that comes twice")
case("h.gguf", gguf.replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0blama", 1), "an unknown architecture")
# ---- cut short, flipped
for n in (0, 1, 3, 4, 23, 24, 100, 1000, 9000, len(gguf) // 2, len(gguf) - 1):
    case("h.gguf", gguf[:n], f"the first {n} bytes")
head = 20000
for i in range(60):
    copy = bytearray(gguf)
    copy[rng.randrange(head)] ^= 1 << rng.randrange(8)
    case("h.gguf", copy, f"flip {i}", ())

# ---- .ndf: everything but padding is hashed; verify finds each flip
for n in (0, 1, 8, 127, 128, 1000, len(ndf) // 2, len(ndf) - 1):
    case("h.ndf", ndf[:n], f"the first {n} bytes", ALL + ("verify",))
for i in range(40):
    copy = bytearray(ndf)
    copy[rng.randrange(len(ndf))] ^= 1 << rng.randrange(8)
    case("h.ndf", copy, f"flip {i}", ("verify",))
for at in (8, 12, 16, 20, 24):
    case("h.ndf", patched(ndf, at, "<Q", 0xFFFFFFFFFFFFFFFF), f"ones at {at}", ALL + ("verify",))
case("h.bin", bytes(rng.randrange(256) for _ in range(5000)), "noise", ALL + ("verify",))
os.mkdir("folder") if not os.path.isdir("folder") else None
try_file("folder", "an empty folder", ALL + ("verify",))
try_file("/dev/null", "/dev/null", ALL + ("verify",))
sys.exit(failed)
