# SPDX-License-Identifier: MIT
"""Bounded numbers at random: a text may be written exactly where the number, as a decimal, lies within the bounds.

    bounded.py ACCEPT SEED"""
import random
import sys
from decimal import Decimal

from accept import Grammars

grammars, chance = Grammars(sys.argv[1]), random.Random(int(sys.argv[2]))
OK = {"minimum": lambda d, b: d >= b, "exclusiveMinimum": lambda d, b: d > b,
      "maximum": lambda d, b: d <= b, "exclusiveMaximum": lambda d, b: d < b}


def any_number():
    k = chance.random()
    if k < .3:
        return str(chance.randint(-1000, 1000))
    if k < .6:
        return repr(round(chance.uniform(-200, 200), chance.randint(1, 6)))
    if k < .8:
        return repr(chance.uniform(-1, 1) * 10 ** chance.randint(-6, 6))
    return chance.choice(["0", "0.1", "0.3", "1e-7", "1.5e10", "-2.5e-3", "100", "99.5", "1e3"])


def spell(number):
    if chance.random() < .5 or number == 0:
        return format(number, "f")
    return f"{number.scaleb(-number.adjusted()).normalize():f}e{number.adjusted()}"


def near(bound):
    return spell(Decimal(bound) + chance.choice([0, 1, -1]) * Decimal(10) ** chance.randint(-8, 2))


def is_short(text):
    whole, _, fraction = text.lstrip("-").split("e")[0].partition(".")
    return len(whole) <= 16 and len(fraction) <= 16 and len((whole + fraction).strip("0")) <= 15


differ = n_texts = n_taken = 0
for _ in range(300):
    bounds = {key: any_number() for key in (chance.choice(["minimum", "exclusiveMinimum"]),
                                            chance.choice(["maximum", "exclusiveMaximum"])) if chance.random() < .8}
    integers = chance.random() < .3
    schema = "{" + ",".join([f'"type":"{"integer" if integers else "number"}"'] +
                            [f'"{key}":{value}' for key, value in bounds.items()]) + "}"
    if not bounds or grammars.open(schema):
        continue
    for _ in range(30):
        text = near(chance.choice(list(bounds.values()))) if chance.random() < .6 else spell(Decimal(any_number()))
        number = Decimal(text)
        if not is_short(text) or (text[0] == "-" and number == 0):
            continue
        wanted = all(OK[key](number, Decimal(value)) for key, value in bounds.items())
        wanted &= not integers or text.lstrip("-").isdigit()
        taken = grammars.takes(text)
        n_texts, n_taken = n_texts + 1, n_taken + taken
        if taken != wanted:
            print("FAILED:", schema, "must", "take" if wanted else "not take", text)
            differ += 1
print(f"{n_texts} texts, {n_taken} taken, {differ} differ")
sys.exit(0 if differ == 0 and n_taken > n_texts // 5 else 1)
