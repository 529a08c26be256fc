# SPDX-License-Identifier: MIT
# Random texts of a GBNF grammar: ndl_sample.py GRAMMAR N OUT-PREFIX. Every rule, alternative and
# character of a class gets its turn; deep parts take their shortest way out.
import random
import re
import sys

TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{\d+,\d*\}|[a-z-]+|[()|*+?]')


def characters(text):
    out, i = [], 0
    while i < len(text):
        c = text[i]
        if c == "\\":
            i += 1
            c = {"n": "\n", "t": "\t"}.get(text[i], text[i])
        if i + 2 < len(text) and text[i + 1] == "-":
            out += [chr(k) for k in range(ord(c), ord(text[i + 2]) + 1)]
            i += 3
            continue
        out.append(c)
        i += 1
    return out


class Grammar:
    def __init__(self, text):
        self.rules, lines = {}, [line for line in text.split("\n") if line and not line.startswith("#")]
        for line in lines:
            name, body = line.split(" ::= ", 1)
            self.tokens, self.at = TOKENS.findall(body), 0
            self.rules[name] = self.choice()
            assert self.at == len(self.tokens), line
        self.cost = {name: 10**6 for name in self.rules}
        for _ in range(60):
            for name, node in self.rules.items():
                self.cost[name] = min(self.cost[name], 1 + self.price(node))
        assert max(self.cost.values()) < 10**6, self.cost

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def choice(self):
        ways = [self.sequence()]
        while self.peek() == "|":
            self.take()
            ways.append(self.sequence())
        return ("choice", ways)

    def sequence(self):
        parts = []
        while self.peek() not in (None, "|", ")"):
            token = self.take()
            if token == "(":
                part = self.choice()
                assert self.take() == ")"
            elif token[0] == '"':
                part = ("text", "".join(characters(token[1:-1].replace("-", "\\-"))))
            elif token[0] == "[":
                part = ("class", characters(re.sub(r"^-", r"\\-", token[1:-1])))
            else:
                part = ("rule", token)
            after = self.peek()
            if after in ("*", "+", "?") or (after and after[0] == "{"):
                self.take()
                low, high = {"*": (0, 4), "+": (1, 4), "?": (0, 1)}.get(after) or map(int, after[1:-1].split(","))
                part = ("repeat", part, low, high)
            parts.append(part)
        return ("sequence", parts)

    def price(self, node):
        kind = node[0]
        if kind == "choice":
            return min(map(self.price, node[1]))
        if kind == "sequence":
            return max(map(self.price, node[1]), default=0)
        if kind == "repeat":
            return self.price(node[1]) if node[2] else 0
        return self.cost[node[1]] if kind == "rule" else 0

    def say(self, node, rng, depth, out):
        kind = node[0]
        tired = depth > 25
        if kind == "text":
            out.append(node[1])
        elif kind == "class":
            out.append(rng.choice(node[1]))
        elif kind == "rule":
            self.say(self.rules[node[1]], rng, depth + 1, out)
        elif kind == "choice":
            ways = node[1]
            self.say(min(ways, key=self.price) if tired else rng.choice(ways), rng, depth, out)
        elif kind == "sequence":
            for part in node[1]:
                self.say(part, rng, depth, out)
        else:
            high = node[2] if tired else min(node[3], node[2] + rng.choice((0, 0, 1, 3)))
            for _ in range(rng.randint(node[2], high)):
                self.say(node[1], rng, depth, out)


grammar = Grammar(open(sys.argv[1]).read())
for seed in range(int(sys.argv[2])):
    parts = []
    grammar.say(("repeat", ("rule", "item"), 1, 1), random.Random(seed), 0, parts)
    parts.append("\n")
    if seed % 4 == 0:
        grammar.say(("rule", "root"), random.Random(seed), 0, parts)
    open(f"{sys.argv[3]}-{seed}.ndl", "w").write("".join(parts))
