# SPDX-License-Identifier: MIT
"""A reader of Prometheus' text exposition format (version 0.0.4), which says every fault of a page, and what
`promtool check metrics` remarks but for the colons in names."""
import math
import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|(?=\}))')
TYPES = {"counter", "gauge", "histogram", "summary", "untyped"}


def read_labels(text):
    """The labels at the beginning of '{...} rest', and the rest; None: malformed."""
    labels, at = {}, 1
    while text[at:at + 1] != "}":
        found = LABEL.match(text, at)
        if not found or found[1] in labels:
            return None, ""
        labels[found[1]] = found[2]
        at = found.end()
    return labels, text[at + 1:]


def read_sample(line):
    """Name, labels and value of a sample; None: malformed."""
    name = NAME.match(line)
    labels, rest = {}, line[name.end():] if name else ""
    if rest.startswith("{"):
        labels, rest = read_labels(rest)
    words = rest.split()
    if not name or labels is None or not rest.startswith(" ") or not 1 <= len(words) <= 2:
        return None
    try:
        return name[0], labels, float(words[0])
    except ValueError:
        return None


def family_of(name, types):
    """The metric that a sample belongs to."""
    for end in ("_bucket", "_sum", "_count"):
        if name.endswith(end) and types.get(name[:-len(end)]) in ("histogram", "summary"):
            return name[:-len(end)]
    return name


def histogram_faults(family, samples):
    """Buckets ascend, the last one is that of +Inf, and equals the count."""
    found, series = [], {}
    for name, labels, value in samples:
        key = tuple(sorted((k, v) for k, v in labels.items() if k != "le"))
        series.setdefault(key, {"_bucket": [], "_sum": [], "_count": []})
        kind = name[len(family):]
        if kind not in series[key] or (kind == "_bucket") != ("le" in labels):
            found.append("%s: no such sample of a histogram" % name)
            continue
        series[key][kind].append((float(labels["le"]), value) if kind == "_bucket" else value)
    for parts in series.values():
        bounds, counts = [b for b, _ in parts["_bucket"]], [c for _, c in parts["_bucket"]]
        if len(parts["_sum"]) != 1 or len(parts["_count"]) != 1:
            found.append("%s: one sum and one count are wanted" % family)
        elif not bounds or bounds != sorted(set(bounds)) or counts != sorted(counts) or not math.isinf(bounds[-1]):
            found.append("%s: buckets do not ascend to +Inf" % family)
        elif counts[-1] != parts["_count"][0]:
            found.append("%s: the count is not that of the last bucket" % family)
    return found


def faults(page):
    """Every fault of a page, as text."""
    found, types, helps, groups, seen, order = [], {}, set(), {}, set(), []
    if not page.endswith("\n"):
        found.append("the last line has no end")
    for number, line in enumerate(page.split("\n")[:-1], 1):
        words = line.split(" ", 3)
        if line.startswith("#"):
            if len(words) < 4 or words[1] not in ("HELP", "TYPE") or not NAME.fullmatch(words[2]):
                found.append("line %d: neither HELP nor TYPE" % number)
                continue
            known = types if words[1] == "TYPE" else helps
            if words[2] in known or words[2] in groups:
                found.append("line %d: a second one, or after samples" % number)
            if words[1] == "HELP":
                helps.add(words[2])
                if not words[3].strip() or re.search(r"\\[^\\n]", words[3].replace("\\\\", "")):
                    found.append("line %d: a help text that is empty or badly escaped" % number)
            elif words[3] in TYPES:
                types[words[2]] = words[3]
            else:
                found.append("line %d: no such type" % number)
            continue
        sample = read_sample(line) if line else None
        if not sample:
            found.append("line %d: no sample: %s" % (number, line[:80]))
            continue
        name, labels, value = sample
        family = family_of(name, types)
        if family in groups and order[-1] != family:
            found.append("line %d: samples of one metric stand apart" % number)
        if not order or order[-1] != family:
            order.append(family)
        groups.setdefault(family, []).append(sample)
        key = (name, tuple(sorted(labels.items())))
        if key in seen:
            found.append("line %d: the same sample again" % number)
        seen.add(key)
        if types.get(family) == "counter" and not value >= 0:
            found.append("line %d: a counter below 0" % number)
    for family, samples in groups.items():
        if family not in types or family not in helps:
            found.append("%s: without HELP or TYPE" % family)
        if types.get(family) == "counter" and not family.endswith("_total"):
            found.append("%s: counters end in _total" % family)
        if types.get(family) not in (None, "counter") and family.endswith("_total"):
            found.append("%s: only counters end in _total" % family)
        if types.get(family) == "histogram":
            found += histogram_faults(family, samples)
    return found + ["%s: no sample" % family for family in types if family not in groups]


GOOD = """# HELP a:b_total Things, \\\\ and \\n.
# TYPE a:b_total counter
a:b_total{m="x\\"y\\\\",n=""} 3
a:b_total{m="z"} 4 1700000000
# HELP t_seconds Times.
# TYPE t_seconds histogram
t_seconds_bucket{le="0.5"} 1
t_seconds_bucket{le="+Inf"} 2
t_seconds_sum 1.5e0
t_seconds_count 2
"""
# One change each that must be noticed.
DAMAGE = (("a:b_total{m=\"z\"} 4", "a:b_total{m=\"z\" 4"), ("} 4 ", "} four "), ("# TYPE a:b_total counter\n", ""),
          ("# HELP t_seconds Times.\n", ""), ("} 3", "} -3"), ("m=\"z\"", "m=\"x\\\"y\\\\\",n=\"\""), ("+Inf", "9"),
          ("_count 2", "_count 3"), ("} 1\n", "} 5\n"), ("t_seconds_sum 1.5e0\n", ""), ("x\\\"y", "x\"y"),
          ("# TYPE t_seconds histogram", "# TYPE t_seconds thing"), ("_count 2\n", "_count 2"), ("m=\"z\"", "2m=\"z\""),
          ("a:b_total", "a:b"), ("t_seconds_count 2\n", "t_seconds_count 2\na:b_total 1\n"))


def check_reader():
    """The reader finds nothing in a good page, and something in each damaged one."""
    assert faults(GOOD) == [], faults(GOOD)
    for old, new in DAMAGE:
        assert old in GOOD and faults(GOOD.replace(old, new)), (old, new)
