# SPDX-License-Identifier: MIT
"""Prints as many lines as argv says of a text that a tiny model learns: who has what, and who wants it."""
import random
import sys

random.seed(5)
who, what = ["fox", "owl", "cat", "old man", "child"], ["ball", "hat", "red stone", "song", "letter"]
for i in range(int(sys.argv[1])):
    a, b, c = random.choice(who), random.choice(what), random.choice(who)
    print(f"The {a} number {i % 97} has a {b}. The {c} wants the {b} of the {a}.")
