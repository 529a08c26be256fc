#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make test-everywhere: every target that this machine can build and run gives the same logits and the same text.

    everywhere.py [--built] [TARGET...]     TARGET: a word of the table's first column

Each target is built first (`make`, with its output in build/everywhere/TARGET.log), or, with --built, taken as it is. Then
its program runs at each of its levels: logits of some tokens with every kind of cache, and a sampled text, as hashes
beside those of this machine's generic kernels; the tests of golden hashes run where the target has them. The exit status
is 0 if every row is equal, 1 if one differs or was not built, and a row that this machine cannot prove says why.
"""
import argparse
import dataclasses
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "everywhere"
IDS = "1 5 9 300 12 700 44"
KINDS = [(kv, act) for kv in ("f16", "f32", "i8") for act in ("f32", "i8")]
GOLDEN = "golden_logits|reproducible"
TESTS = "test_golden_logits test_reproducible"


@dataclasses.dataclass(frozen=True)
class Target:
    """A program for one system. `make` are the commands that build it and its tests of golden hashes, `tests` is the
    build folder of the tests, `golden` which of them they are."""
    name: str
    tools: tuple
    make: tuple
    run: tuple
    levels: tuple = ()  # empty: those that the program itself names
    environment: tuple = ()
    tests: str = ""
    golden: str = "^(%s)$" % GOLDEN


TARGETS = [
    Target("x86-64", ("cc",), (("env", "TARGETS=whit " + TESTS, "tools/build", "release"),), ("build/whit",),
           tests="build"),
    Target("static-x86-64", ("cc",), (("make", "static"),), ("build-static/whit",)),
    Target("aarch64", ("aarch64-linux-gnu-gcc", "qemu-aarch64"),
           (("make", "arm64"), ("env", "TARGETS=" + TESTS, "tools/build", "aarch64")),
           ("qemu-aarch64", "-cpu", "max", "build-static-aarch64/whit"), tests="build-aarch64"),
    Target("riscv64", ("riscv64-linux-gnu-gcc", "qemu-riscv64"),
           (("make", "riscv64"), ("tools/build", "riscv64")),
           ("qemu-riscv64", "build-static-riscv64/whit"), tests="build-riscv64",
           golden="^(rvv128_|rvv256_|)(%s)$" % GOLDEN),
    Target("windows", ("x86_64-w64-mingw32-gcc-posix", "wine"),
           (("make", "windows"), ("tools/cross/windows-build", *TESTS.split())),
           ("tools/cross/wine", "build-windows/build/whit.exe"), tests="build-windows/build"),
    Target("wasm", ("emcc", "node"), (("make", "npm"),), ("node", "tests/js/hashes.mjs"), levels=("generic", "simd128")),
]


def short_hash(data):
    """The beginning of the hash that the table shows."""
    return hashlib.sha256(data).hexdigest()[:12]


def call(command, environment=(), **more):
    """Runs a command in the source's folder."""
    return subprocess.run([str(word) for word in command], cwd=ROOT, env=dict(os.environ, **dict(environment)),
                          stdin=subprocess.DEVNULL, timeout=3600, check=False, **more)


def levels_of(target):
    """The levels at which the program runs here, by what it says itself."""
    said = call(target.run + ("doctor", "--json"), target.environment, capture_output=True, text=True)
    found = re.search(r'"isa_levels"\s*:\s*\[([^]]*)\]', said.stdout)
    if not found:
        raise RuntimeError("doctor says %r" % said.stderr[-200:])
    return re.findall(r'"([^"]+)"', found.group(1))


def hashes_of(target, level, folder):
    """The hash of all logits, and that of a text."""
    environment = target.environment + (("WHIT_CPU", level),)
    if target.name == "wasm":
        done = call(target.run + (level, IDS), environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return tuple(done.stdout.split())
    ids = folder / "ids.txt"
    ids.write_text(IDS + "\n")
    logits = b""
    for kv, act in KINDS:
        out = folder / "logits.f32"
        done = call(target.run + ("logits", "--tokens", ids, "--kv", kv, "--act", act, "-t", "1", "-o", out), environment,
                    capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        logits += out.read_bytes()
        out.unlink()
    done = call(target.run + ("run", "--raw", "--no-display-prompt", "-p", "Once upon a time", "-n", "120", "--seed", "7",
                              "-t", "2"), environment, capture_output=True)
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace").strip())
    return short_hash(logits), short_hash(done.stdout.strip())


def golden_of(target):
    """How many tests of golden hashes pass, as "4 of 4", and whether all do; "-" where none is built."""
    folder = ROOT / target.tests
    if not target.tests or not any((folder / "tests" / ("test_reproducible" + end)).exists() for end in ("", ".exe")):
        return "-", True
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        call(("ctest", "--test-dir", folder, "-R", target.golden, "--output-junit", report.name),
             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        text = pathlib.Path(report.name).read_text()
    cases = re.findall(r'<testcase [^>]*status="(\w+)"', text)
    ran = [status for status in cases if status != "notrun"]
    return "%d of %d" % (ran.count("run"), len(ran)), bool(ran) and ran.count("run") == len(ran)


def main():
    """Builds, runs and prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--built", action="store_true")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    asked = parser.parse_args()
    unknown = set(asked.targets) - {target.name for target in TARGETS}
    if unknown:
        sys.exit("everywhere.py: no target %s" % ", ".join(sorted(unknown)))
    LOGS.mkdir(parents=True, exist_ok=True)
    rows, failed, expected = [], 0, None
    for target in TARGETS:
        if asked.targets and target.name not in asked.targets and target.name != "x86-64":
            continue
        begin = time.monotonic()
        absent = [tool for tool in target.tools if not shutil.which(tool)]
        if absent:
            rows.append((target.name, "-", "-", "-", "-", "not here: no %s" % ", ".join(absent)))
            continue
        if not asked.built:
            with open(LOGS / (target.name + ".log"), "wb") as log:
                if any(call(command, stdout=log, stderr=log).returncode for command in target.make):
                    rows.append((target.name, "-", "-", "-", "-", "NOT BUILT: %s" % log.name))
                    failed += 1
                    continue
        golden, is_golden = golden_of(target)
        failed += not is_golden
        try:
            levels = target.levels or levels_of(target)
        except (RuntimeError, OSError) as error:
            rows.append((target.name, "-", "-", "-", golden, "FAILED: %s" % error))
            failed += 1
            continue
        with tempfile.TemporaryDirectory(dir=LOGS) as folder:
            for level in levels:
                try:
                    logits, text = hashes_of(target, level, pathlib.Path(folder))
                except (RuntimeError, OSError) as error:
                    rows.append((target.name, level, "-", "-", golden, "FAILED: %s" % error))
                    failed += 1
                    continue
                expected = expected or (logits, text)
                equal = (logits, text) == expected and is_golden
                failed += (logits, text) != expected
                rows.append((target.name, level, logits, text, golden, "equal" if equal else "DIFFERENT"))
        print("%s: %.0f s" % (target.name, time.monotonic() - begin), file=sys.stderr, flush=True)
    print("%-14s %-9s %-13s %-13s %-9s %s" % ("target", "level", "logits", "text", "golden", ""))
    for row in rows:
        print("%-14s %-9s %-13s %-13s %-9s %s" % row)
    return 1 if failed or not expected else 0


if __name__ == "__main__":
    sys.exit(main())
