# SPDX-License-Identifier: MIT
"""Plays projects of strangers against whit's commands: random traps, a model that does as the project wants, and a person
who says no, or yes to ordinary changes alone. Nothing of the project may run, follow a link out of it, read or send a
secret, hang or leave anything that was not agreed to.

    foreign.py WHIT TINY [PROJECTS]        WHIT_SEED is the first seed, FOREIGN_SECONDS the time in place of PROJECTS"""
import collections
import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile
import time

from looks import judge, kept_bytes
from plays import PLAYS, WEIGHTS, Play
from plays_more import MORE
from project import Project

PLAYS = {**PLAYS, **{kind: play for kind, (play, _) in MORE.items()}}
WEIGHTS = {**WEIGHTS, **{kind: weight for kind, (_, weight) in MORE.items()}}
BOUND_S = 120  # a command takes seconds; this tells that it hangs


def remove(folder):
    for at, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(at, name)
            if not os.path.islink(path):
                os.chmod(path, stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)


def draw_kinds(rng, n_plays):
    return rng.choices(list(WEIGHTS), WEIGHTS.values(), k=n_plays)


def play_project(seed, whit, tiny, kinds, bound_s=BOUND_S, variables=()):
    """Makes the project of a seed and plays commands in it: those kinds, or as many as `kinds` says. The i-th command gets
    the i-th of the variables in its environment. Returns the kinds, and the faults as (number of the play, play, line)."""
    rng = random.Random(seed)
    home = tempfile.mkdtemp(prefix="whit-foreign-")
    faults = []
    try:
        project = Project(home, rng)
        os.makedirs(os.path.join(home, ".local/share/whit"))
        shutil.copy(tiny, os.path.join(home, ".local/share/whit/tiny.gguf"))
        env, already = project.environment(), {}
        list(kept_bytes(project, already))
        kinds = draw_kinds(rng, kinds) if isinstance(kinds, int) else kinds
        for number, kind in enumerate(kinds):
            play = Play(project, rng.random() < 0.5, kind)
            began = time.monotonic()
            given = dict(env, **variables[number]) if variables else env
            PLAYS[kind](play, whit, random.Random(rng.random()), given, bound_s)
            faults += [(number, f"{play.title}, {'yes' if play.says_yes else 'no'}", line) for line in judge(project, play, already)]
            if os.environ.get("FOREIGN_SHOW"):
                print(f"{time.monotonic() - began:6.2f} s  {play.title} yes={play.says_yes} agreed={play.agreed}")
                for what, data in play.shown if os.environ["FOREIGN_SHOW"] > "1" else ():
                    print(f"--- {what}\n{data.decode(errors='replace')}")
    finally:
        if os.environ.get("FOREIGN_KEEP"):
            print("kept:", home)
        else:
            remove(home)
    return kinds, faults


def main():
    whit, seed = os.path.abspath(sys.argv[1]), int(os.environ.get("WHIT_SEED", "1"))
    tiny = os.path.abspath("tiny.gguf")
    subprocess.run([sys.argv[2], tiny, "1", "chat"], check=True)
    n_projects, seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 0, float(os.environ.get("FOREIGN_SECONDS", "0"))
    folder_maker = os.path.join(os.path.dirname(sys.argv[2]), "make_folder")
    if os.path.exists(folder_maker):
        os.environ["FOLDER"] = os.path.abspath("folder")
        shutil.rmtree("folder", ignore_errors=True)
        subprocess.run([folder_maker, "tinyllama-1.1b", "folder", "--layers", "1", "--divide", "32", "--vocab", "300"], check=True)
    end, failed, counts, n = time.monotonic() + seconds, 0, collections.Counter(), 0
    while n < n_projects or time.monotonic() < end:
        kinds, faults = play_project(seed + n, whit, tiny, int(os.environ.get("FOREIGN_PLAYS", "8")))
        counts.update(kinds)
        for _, title, line in faults:
            print(f"FAILED: WHIT_SEED={seed + n}: {title}: {line}", flush=True)
        failed += bool(faults)
        n += 1
    print(f"{n} projects from seed {seed}, {sum(counts.values())} commands {dict(counts)}: {failed} projects with faults")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
