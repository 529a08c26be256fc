#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time of a token with several ranks, beside what the model of docs/dev/perf/ranks.md predicts, for networks that the
transport simulates (WHIT_RANKS_DELAY).

    bench/ranks.py build/whit [MODEL]        4 settings, 2 and 4 ranks, on this machine
"""
import os
import re
import subprocess
import sys

SETTINGS = ((1000, 1), (200, 1), (200, 10), (2000, 25))  # latency in microseconds, Gbit/s
N_TOKENS = 96


def run(whit, model, n_ranks, setting):
    """Milliseconds a token, exchanges a pass, bytes sent or received a pass."""
    environment = dict(os.environ, OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl_vader_single_copy_mechanism="none")
    if setting:
        environment["WHIT_RANKS_DELAY"] = "%g,%g" % setting
    command = ["mpirun", "-np", str(n_ranks), whit, "run", model, "-p", "O", "--raw", "-n", str(N_TOKENS), "--temp", "0",
               "--ignore-eos", "-t", "1"]
    best = None
    for _ in range(3):
        said = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, check=True).stderr.decode(errors="replace")
        ms = 1000 * float(re.search(r"generated \d+ in ([\d.]+) s", said)[1]) / N_TOKENS
        best = ms if best is None else min(best, ms)
    counts = re.search(r"([\d.]+) exchanges, [\d.]+ messages and (\d+) bytes sent, (\d+) bytes received", said)
    return best, float(counts[1]), max(int(counts[2]), int(counts[3]))


def main():
    whit, model = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "tales"
    print("| Ranks | Latency, us | Gbit/s | Predicted, ms a token | Seen | Seen / predicted |")
    print("|---|---|---|---|---|---|")
    for n_ranks in (2, 4):
        base, exchanges, n_bytes = run(whit, model, n_ranks, None)
        for latency, gbits in SETTINGS:
            seen = run(whit, model, n_ranks, (latency, gbits))[0]
            predicted = base + (exchanges + 1) * latency / 1000 + n_bytes * 8 / gbits / 1e6
            print("| %d | %g | %g | %.2f | %.2f | %.2f |" % (n_ranks, latency, gbits, predicted, seen, seen / predicted))


main()
