# SPDX-License-Identifier: MIT
"""A hundred grammars and schemas that no answer can follow, or none within bounds: each ends in a 400 within a second of
processor time and 64 MB, and the server goes on. Some that only look hostile are followed."""
import json
import os
import socket
import sys

import client
from client import Server, check, processor_s

SECONDS, MEGABYTES = 1, 64


def chain(n, rule):
    return "root ::= r0\n" + "\n".join(f"r{i} ::= {rule % {'next': f'r{i + 1}'}}" for i in range(n))


def nested(n, around, schema):
    for _ in range(n):
        schema = around(schema)
    return schema


GRAMMARS = [
    " ", "root", "nothing ::= \"a\"", "root ::= missing", "root ::= \"unterminated", "root ::= [unterminated",
    "root ::= (\"a\"", "root ::= \"a\")", "root ::= *", "root ::= \"a\"{5,2}", "root ::= \"a\"{x}", "root ::= [z-a]",
    "root ::= \"\\xZZ\"", "root ::= \"\\U00110000\"", "root ::= \"\\uD800\"", "root ::= \"a\"\nroot ::= \"b\"",
    "root ::= \"a\" |" * 1000, "\0" * 1000, "#" * 2000000, "root ::= root \"a\"", "root ::= a\na ::= b\nb ::= a \"x\"",
    "root ::= x x\nx ::= \"a\" | x", chain(5000, "%(next)s") + "\nr5000 ::= r0",
    *("root ::= " + "(" * n for n in (1, 300, 10000, 1000000)),
    *("root ::= " + "(" * n + "\"a\"" + ")" * n for n in (1000, 5000, 100000)),
    *("root ::= " + "(" * n + "\"a\"?" + "){999}" * n for n in (1, 2, 5, 20)),
    "root ::= \"" + "a" * 2200000 + "\"", "root ::= " + " | ".join(f'"{i:07}"' for i in range(120000)),
    chain(70000, '"a" %(next)s') + '\nr70000 ::= "b"', *(chain(n, "%(next)s? %(next)s?") + f'\nr{n} ::= "a"?' for n in (20, 60)),
    "root ::= [" + "".join(chr(0x4E00 + 2 * i) for i in range(10000)) + "]",
]
INTEGER = {"type": "integer"}
SCHEMAS = [
    *({"type": "string", "pattern": p} for p in (
        "[", "(", "*", "a{2,1}", "^[z-a]$", "^(?=a)b$", "(?<=a)b", "\\1(a)", "^(a)\\1$", "\\p{Nonsense}",
        "^\\u{110000}$", "(?R)", "(*ACCEPT)", "\\bword\\b", "^a$b", "^(((a*)*)*)*$" * 50, "^(a?){60}{60}$",
        "^((((a{1,999}){1,999}){1,999}){1,999}){1,999}$", "^" + "(" * 5000 + "a" + ")" * 5000 + "$",
        "^" + "[\\u0080-\\uffff]?" * 3000 + "$")),
    nested(200, lambda s: {"allOf": [s]}, {"not": {}}), nested(300, lambda s: {"allOf": [s]}, INTEGER),
    nested(900, lambda s: {"items": s}, INTEGER), {"$ref": "#"}, {"$ref": "#/nowhere"}, {"$ref": "http://example.com/s.json"},
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}},
    *({"$defs": {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{(i * 7 + k) % n}"} for k in range(20)]} for i in range(n)},
       "$ref": "#/$defs/d0"} for n in (50, 500, 3000)),
    {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
    {"type": "array", "items": {"$ref": "#"}, "minItems": 1}, {"type": "array", "minItems": 5, "maxItems": 2},
    {"type": "string", "minLength": 5, "maxLength": 2}, {"type": "integer", "minimum": 5, "maximum": 2},
    {"type": "integer", "exclusiveMinimum": 5, "exclusiveMaximum": 6},
    {"allOf": [{"type": "string"}, INTEGER]},
    *({"allOf": [{"anyOf": [{"type": "object", "properties": {f"k{i}{j}": {}}} for j in range(8)]} for i in range(n)]}
      for n in (6, 12, 50)),
    *({"oneOf": [{"type": "object", "properties": {"k": {"const": i}}, "required": ["k"]} for i in range(n)]}
      for n in (1000, 10000)),
    *({"anyOf": [{"type": "string", "pattern": f"^.{{0,{i}}}x.*y.*z.*$"} for i in range(n)]} for n in (400, 2000)),
    {"type": "object", "minProperties": 3}, {"type": "array", "uniqueItems": True, "items": INTEGER},
    {"type": "array", "prefixItems": [INTEGER] * 100000}, {"type": "wibble"}, {"type": 5}, {"type": []}, {"enum": []},
    {"enum": 5}, {"properties": []}, {"type": "object", "required": "a"},
    {"type": "object", "required": ["a"], "additionalProperties": False},
    {"anyOf": []}, {"type": "string", "minLength": -1}, {"type": "string", "maxLength": 1.5}, False,
    *({"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(n)}} for n in (25000, 60000)),
]
FOLLOWED = [
    {"grammar": 'root ::= "a"{4294967296}'}, {"grammar": 'root ::= ((("a"{999}){999}){999}){999}'},
    {"grammar": "root ::= " + '"a" ' * 400000}, {"grammar": chain(60, "%(next)s %(next)s") + '\nr60 ::= "a"'},
    {"grammar": 'root ::= (("a"*)*)* "b" (("a"*)*)*'}, {"json_schema": {"enum": ["x" * 60 + str(i) for i in range(20000)]}},
    {"json_schema": {"type": "string", "pattern": "^" + "(a|aa|aaa)*" * 200 + "b$"}},
    *({"json_schema": schema} for schema in (
        {"type": "string", "pattern": "^(?!a)b$"}, {"type": "integer", "multipleOf": 7}, {"type": "number", "multipleOf": 0.1},
        {"oneOf": [INTEGER, {"type": "number"}]}, {"not": {"type": "string"}}, {"if": {"type": "string"}, "then": {}},
        {"type": "object", "patternProperties": {"^a": {}}}, {"type": "object", "dependentSchemas": {"a": {}}},
        {"type": "array", "contains": {"type": "string"}}, {"type": "string", "format": "nonsense"})),
    {"json_schema": {"type": "array", "minItems": 4000000000, "maxItems": 4100000000, "items": {"type": "boolean"}}},
]


def kilobytes(server, key):
    with open("/proc/%d/status" % server.process.pid, encoding="ascii") as status:
        return int(next(line for line in status if line.startswith(key)).split()[1])


def send(server, body, expected):
    """Asked, it costs at most so much; where sanitizers take part in that, nothing is measured."""
    try:
        with open("/proc/%d/clear_refs" % server.process.pid, "w", encoding="ascii") as refs:
            refs.write("5")  # the peak begins anew
    except OSError:
        pass
    before_s, before = processor_s(server), kilobytes(server, "VmRSS")
    status, text = server.ask("POST", "/v1/completions", {"prompt": "Once", "max_tokens": 16, "seed": 1, **body})
    took_s, more = processor_s(server) - before_s, kilobytes(server, "VmHWM") - before
    shown = json.dumps(body)[:120]
    check(status == expected, shown, "gave", status, text[:200])
    if status != 200:
        check(json.loads(text)["error"]["message"], shown, "says nothing")
    if not os.environ.get("SANITIZED"):
        check(more <= MEGABYTES << 10, shown, "took", more, "kB")
        check(took_s <= SECONDS or not os.environ.get("WHIT_TEST_TIMED"), shown, "took", took_s, "s")
    return took_s, more >> 10


server = Server("-c", "512")
server.text("warm", 4)
hostile = [{"grammar": g} for g in GRAMMARS] + [{"json_schema": s} for s in SCHEMAS]
check(len(hostile) >= 100, "fewer than a hundred:", len(hostile))
costs = [send(server, body, 400) for body in hostile]
followed = [send(server, body, 200) for body in FOLLOWED]
costs += [send(server, body, 413) for body in ({"x": [1] * 5000000}, {"x": [{}] * 4000000}, {"x": [[]] * 4000000})]
send(server, {"x": ['[,{\\"' * 100] * 10000}, 200)  # within texts
print("%d refused, at most %.2f s of processor time and %d MB; %d followed, at most %.2f s and %d MB" %
      (len(costs), max(s for s, _ in costs), max(mb for _, mb in costs), len(followed), max(s for s, _ in followed),
       max(mb for _, mb in followed)))
server.end()
# Connections that never end their request, and bodies of requests that are refused, keep nobody out.
server = Server("-c", "512", "--api-key", "secret")
slow = []
for i in range(400):
    slow.append(socket.create_connection(("127.0.0.1", server.port), timeout=60))
    slow[-1].sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX: " if i % 2 else b"POST /slots HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
check(server.ask("GET", "/health")[0] == 200, "nobody else is answered")
check(server.ask("POST", "/v1/completions", {"prompt": "a", "max_tokens": 2}, {"X-Api-Key": "secret"})[0] == 200, "no work is done")
for one in slow:
    one.close()
endless, n_sent = socket.create_connection(("127.0.0.1", server.port), timeout=60), 0
endless.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 999999999999\r\n\r\n")
try:
    while n_sent < 1 << 30:
        n_sent += endless.send(b"x" * 65536)
except OSError:
    pass
check(n_sent < 1 << 30, "a refused body is read for ever")
server.end()
sys.exit(1 if client.failures else 0)
