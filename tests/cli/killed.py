# SPDX-License-Identifier: MIT
# Kills every verb that writes files, KILLS times each at random moments (kill -9), then runs it once to its
# end: what was there before is there until the new file is whole, and after the good run the folder holds
# what a run that nobody killed leaves, byte for byte, and nothing else. See killed.sh.
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time

WHIT = os.environ["WHIT"]
KILLS = int(sys.argv[1])
random.seed(int(os.environ.get("WHIT_SEED", "11")))
TRAIN = "--text ../text --specials --width 32 --layers 2 --heads 2 --ffn 48 --context 64 --vocab 300 " \
        "-c 24 --sequences 2 --threads 1 --steps 30 --seed 3".split()
FLOATS = ["-c", "24", "--sequences", "2", "--threads", "1", "--steps", "12", "--seed", "3"]

# A name, what each process is given, and the outputs that are the same bytes each time.
WRITERS = [
    ("cache", ["run", "-m", "../big", "-p", "a", "-n", "1"], []),
    ("convert", ["convert", "../big", "-o", "out.ndf"], ["out.ndf"]),
    ("export", ["export", "../model.ndf", "-o", "out.gguf"], ["out.gguf"]),
    ("train", ["train", *TRAIN, "--codec", "t", "--checkpoint", "run", "--checkpoint-seconds", "0", "-o", "out.ndf"],
     ["out.ndf"]),
    ("distill", ["distill", "--teacher", "../float.ndf", "--text", "../text", *FLOATS, "--codec", "q2", "--checkpoint", "run",
                 "--checkpoint-seconds", "0", "-o", "out.ndf"], ["out.ndf"]),
    ("tune", ["tune", "-m", "../low.ndf", "--text", "../text", *FLOATS, "--rank", "2", "--checkpoint", "run",
              "--checkpoint-seconds", "0", "-o", "out.ndf"], ["out.ndf"]),
    ("compress", ["compress", "../float.ndf", "--codec", "t", "--calib", "../text", "-c", "32", "-t", "1", "-o", "out.ndf"],
     ["out.ndf"]),
    ("merge", ["merge", "-m", "../float.ndf", "--adapter", "../adapter.ndf", "-o", "out.ndf"], ["out.ndf"]),
    ("logits", ["logits", "-m", "../model.ndf", "--tokens", "../ids", "-o", "out.f32"], ["out.f32"]),
    ("session", ["run", "-m", "../model.ndf", "-p", "the land", "-n", "20", "--temp", "0", "--session", "out.session"], []),
    ("sign", ["sign", "signed.ndf", "--key", "../key"], []),
    ("memory", ["memory", "add", "out.mem", "a line about the land"], []),
    ("graph", ["graph", "../code", "def", "main"], []),
]
FRESH = ["session", "graph"]  # with what an earlier run has left there is little to write


def tree(folder):
    """Every file below a folder: name to digest."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
    return found


def prepare(folder, name):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder + "/cache")
    if name == "sign":
        shutil.copy("model.ndf", folder + "/signed.ndf")


def start(folder, arguments):
    environment = dict(os.environ, XDG_CACHE_HOME=os.path.join(os.getcwd(), folder, "cache"), TMPDIR=os.path.join(os.getcwd(), folder))
    return subprocess.Popen([WHIT, *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def resumed(arguments):
    left = "killed/run" if "--checkpoint" in arguments else "killed/out.ndf.work" if arguments[0] == "compress" else ""
    return arguments + ["--resume"] if os.path.exists(left) else arguments


def good(folder, arguments):
    began = time.monotonic()
    process = start(folder, arguments)
    err = process.communicate(timeout=600)[1].decode()
    if process.returncode != 0:
        sys.exit(f"FAILED: {' '.join(arguments)} ended with {process.returncode}: {err[:500]}")
    return time.monotonic() - began


failed = False
for name, arguments, outputs in WRITERS:
    prepare("alone", name)
    good("alone", arguments)
    prepare("alone", name)
    seconds = good("alone", arguments)
    expected = tree("alone")
    prepare("killed", name)
    cut, latest = 0, seconds
    for i in range(10 * KILLS):  # a run that was over before its kill does not count
        if cut == KILLS:
            break
        if name in FRESH:
            prepare("killed", name)
        process = start("killed", resumed(arguments))
        time.sleep(random.uniform(0, latest))
        has_ended = process.poll() is not None
        cut += not has_ended
        if has_ended:  # the machine is less busy than in the run that was measured, or less is left to resume
            latest *= 0.7
        process.send_signal(signal.SIGKILL)
        process.communicate()
        for output in outputs:
            path = "killed/" + output
            if os.path.exists(path) and tree("killed")[output] != expected[output]:
                print(f"FAILED: {name}: {output} is there and is not whole after kill {i}")
                failed = True
    good("killed", resumed(arguments))
    now = tree("killed")
    # Sessions and stores grow by what was committed before a kill, so their bytes differ; names never do.
    if set(now) != set(expected):
        print(f"FAILED: {name}: left over: {sorted(set(now) - set(expected))}, missing: {sorted(set(expected) - set(now))}")
        failed = True
    for output in outputs:
        if now.get(output) != expected[output]:
            print(f"FAILED: {name}: {output} is another file than that of a run that nobody killed")
            failed = True
    if cut < KILLS:
        print(f"FAILED: {name}: only {cut} runs were cut")
        failed = True
    print(f"{name}: {cut} runs cut, {seconds:.2f} s a run, {len(expected)} files")
sys.exit(failed)
