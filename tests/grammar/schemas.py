# SPDX-License-Identifier: MIT
"""The schemas of the grammar tests, and a validator for what they use, written from the standard."""
import math
import re

OBJ = lambda props, required=None, **more: dict(
    {"type": "object", "properties": props, "required": list(props) if required is None else required,
     "additionalProperties": False}, **more)
S, I, N, B = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}
SHORT = {"type": "string", "maxLength": 12}


def tool(i):
    return OBJ({"name": {"const": f"tool_{i}"},
                "arguments": OBJ({"path": SHORT, "count": {"type": "integer", "minimum": i, "maximum": i + 50},
                                  "mode": {"enum": ["fast", "slow", f"mode{i}"]}}, ["path"])})


SCHEMAS = [
    S, I, N, B, {"type": "null"}, SHORT,
    {"type": "string", "minLength": 3, "maxLength": 5},
    {"type": "string", "maxLength": 1000000},
    {"type": "string", "minLength": 40, "maxLength": 2000},
    {"enum": ["red", "green", "blue", "greenish", 1, None, True, "say \"hi\"\\", 2.5]},
    {"const": {"a": [1, 2, {"b": "c"}]}},
    {"type": "string", "enum": ["x", "yy", 3]},
    {"type": "integer", "minimum": -17, "maximum": 1234},
    {"type": "integer", "minimum": 0}, {"type": "integer", "maximum": -5},
    {"type": "integer", "exclusiveMinimum": 9, "exclusiveMaximum": 11},
    {"type": "number", "minimum": 0, "maximum": 1},
    {"type": "number", "exclusiveMinimum": -0.5, "maximum": 12.25},
    {"type": "number", "minimum": 1000000}, {"type": "integer", "multipleOf": 7}, {"multipleOf": 0.25, "maximum": 9},
    {"type": ["string", "null"], "maxLength": 20},
    {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3,5}$"},
    {"type": "string", "pattern": "^(foo|ba[rz]+)\\.(c|h)$"},
    {"type": "string", "pattern": "needle"},
    {"type": "string", "pattern": "^\\w+\\s\\d{2}$"},
    {"type": "string", "pattern": "^[^\"\\\\a-z]{1,8}\"?$"},
    {"type": "string", "format": "date"}, {"type": "string", "format": "time"},
    {"type": "string", "format": "date-time"}, {"type": "string", "format": "uuid"},
    {"type": "string", "pattern": "^a*[bc]*$", "maxLength": 3}, {"type": "string", "pattern": "^(?!ab)(?=.*c)[abc]{3,9}$"},
    {"type": "string", "format": "uuid", "pattern": "^[0-9A-F-]*$"}, {"allOf": [{"pattern": "x"}, {"pattern": "^.{2,9}$"}]},
    {"type": "string", "format": "ipv4"}, {"type": "string", "format": "email"},
    {"type": "array", "items": I, "maxItems": 5}, {"type": "array", "items": SHORT, "minItems": 2, "maxItems": 4},
    {"type": "array", "prefixItems": [SHORT, I, B], "items": False},
    {"type": "array", "prefixItems": [I, I], "items": SHORT, "minItems": 1, "maxItems": 6},
    {"type": "array", "items": {"type": "array", "items": {"type": "array", "items": B, "maxItems": 3},
                                "maxItems": 3}, "maxItems": 3},
    OBJ({}), OBJ({"a": I}), OBJ({"a": I, "b": SHORT, "c": B}, []), OBJ({"a": I, "b": SHORT, "c": B}, ["b"]),
    OBJ({"na\"me": SHORT, "täg": I, "new\nline": B}),
    {"type": "object", "properties": {"a": I, "ab": B}, "required": ["a"],
     "additionalProperties": {"type": "string", "maxLength": 5}, "maxProperties": 5},
    {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 4},
    OBJ({f"p{i}": {"type": ["integer", "null"]} for i in range(40)}, ["p3", "p20"]),
    {"anyOf": [I, SHORT, OBJ({"x": N})]},
    {"oneOf": [OBJ({"kind": {"const": "circle"}, "r": N}), OBJ({"kind": {"const": "square"}, "side": N}),
               OBJ({"kind": {"enum": ["a", "b"]}})]},
    {"oneOf": [{"type": "string", "maxLength": 9}, {"type": "integer"}, {"type": "array", "maxItems": 2, "items": B}]},
    {"allOf": [{"type": "object", "properties": {"a": I}, "required": ["a"]},
               {"type": "object", "properties": {"b": SHORT}, "required": ["b"]}]},
    {"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 9}]},
    {"$ref": "#/$defs/node", "$defs": {"node": OBJ({"value": I, "next": {"anyOf": [{"$ref": "#/$defs/node"},
                                                                               {"type": "null"}]}})}},
    {"$defs": {"tree": OBJ({"name": SHORT, "children": {"type": "array", "maxItems": 2,
                                                       "items": {"$ref": "#/$defs/tree"}}})},
     "$ref": "#/$defs/tree"},
    {"definitions": {"e": {"anyOf": [I, {"type": "object", "properties": {"op": {"enum": ["+", "*"]},
     "l": {"$ref": "#/definitions/e"}, "r": {"$ref": "#/definitions/e"}}, "required": ["op", "l", "r"],
     "additionalProperties": False}]}}, "$ref": "#/definitions/e"},
    {"anyOf": [tool(i) for i in range(100)]},
    {"type": "array", "items": {"anyOf": [tool(i) for i in range(20)]}, "maxItems": 2},
    OBJ({"person": OBJ({"name": {"type": "string", "minLength": 1, "maxLength": 30}, "age": {"type": "integer",
         "minimum": 0, "maximum": 150}, "mails": {"type": "array", "items": {"type": "string", "format": "email"},
         "maxItems": 2}}), "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "maxItems": 4}}),
    {"type": "object", "properties": {"id": {"type": "string", "nullable": True, "maxLength": 8}}, "required": ["id"]},
    {"type": "object", "required": ["x", "y"], "properties": {"x": I}, "additionalProperties": SHORT,
     "maxProperties": 3},
    {"enum": [f"word{i:04d}" for i in range(3000)]},
    {"type": "object", "minProperties": 2, "properties": {"a": I, "b": I, "c": I}, "additionalProperties": False},
    {"type": "array", "items": {"type": "string", "pattern": "^[0-9a-f]{32}$"}, "minItems": 1, "maxItems": 3},
    {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {
        "b": {"type": "object", "properties": {"c": {"type": "array", "items": SHORT, "maxItems": 2}},
              "required": ["c"], "additionalProperties": False}}, "required": ["b"],
        "additionalProperties": False}, "maxItems": 2}}, "required": ["a"], "additionalProperties": False},
    {"anyOf": [{"type": "number", "minimum": 5, "maximum": 6}, {"const": "none"}]},
]

REFUSED = [
    ({"type": "object", "properties": {"a": {"not": {"format": "uuid"}}}}, "#/properties/a/not"),
    ({"type": "string", "pattern": "^(a)\\1$"}, "#/pattern"),
    ({"type": "array", "items": {"type": "integer", "multipleOf": 65537.5}}, "#/items/multipleOf"),
    ({"type": "array", "uniqueItems": True}, "#/uniqueItems"),
    ({"not": {"uniqueItems": True}}, "#/not"), ({"$recursiveRef": "#"}, "#/$recursiveRef"),
    ({"$ref": "#/nowhere"}, "#/$ref"), ({"$ref": "http://example.org/x"}, "#/$ref"),
    ({"$ref": "#"}, "#"),
    ({"anyOf": [{"$ref": "#/$defs/b"}, I], "$defs": {"b": {"anyOf": [{"$ref": "#"}, S]}}}, "#/anyOf/0"),
    ({"type": "strin"}, "#/type"), ({"type": "string", "minLength": -1}, "#/minLength"),
    ({"properties": {"tools": {"items": {"dependentRequired": []}}}}, "#/properties/tools/items/dependentRequired"),
]

# No finite text satisfies these.
IMPOSSIBLE = [
    {"type": "array", "minItems": 2, "maxItems": 1}, {"enum": []}, False,
    {"allOf": [{"type": "string"}, {"type": "integer"}]},
    {"$ref": "#/$defs/n", "$defs": {"n": OBJ({"next": {"$ref": "#/$defs/n"}})}},
    {"type": "integer", "minimum": 5, "maximum": 4}, {"type": "string", "minLength": 5, "maxLength": 2},
]

TYPES = {"string": str, "boolean": bool, "null": type(None), "array": list, "object": dict}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, (int, float)) and not isinstance(value, bool) and value == math.floor(value)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def same(a, b):
    return a == b and isinstance(a, bool) == isinstance(b, bool)


FORMATS = {
    "date": lambda s: __import__("datetime").date.fromisoformat(s),
    "time": lambda s: re.fullmatch(r"\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", s).group(0),
    "date-time": lambda s: __import__("datetime").date.fromisoformat(s[:10]) and FORMATS["time"](s[11:]),
    "uuid": lambda s: __import__("uuid").UUID(s),
    "ipv4": lambda s: __import__("ipaddress").IPv4Address(s),
    "email": lambda s: re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", s).group(0),
}


def valid(value, schema, root):
    """Does JSON Schema (2020-12, and `nullable`) accept the value?"""
    if schema is True or schema is False:
        return schema
    if "$ref" in schema:
        at = root
        for part in schema["$ref"].split("/")[1:]:
            at = at[part]
        if not valid(value, at, root):
            return False
    if value is None and schema.get("nullable"):
        return True
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_type(value, t) for t in types):
        return False
    if "enum" in schema and not any(same(value, v) for v in schema["enum"]):
        return False
    if "const" in schema and not same(value, schema["const"]):
        return False
    if not all(valid(value, s, root) for s in schema.get("allOf", [])):
        return False
    if "anyOf" in schema and not any(valid(value, s, root) for s in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(valid(value, s, root) for s in schema["oneOf"]) != 1:
        return False
    if isinstance(value, str):
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", math.inf):
            return False
        if "pattern" in schema:
            own = schema["pattern"].replace("$", r"\Z").replace(r"\w", "[A-Za-z0-9_]").replace(r"\d", "[0-9]")
            if not re.search(own.replace(r"\s", "[\\s\ufeff]"), value):
                return False
        if "format" in schema:
            try:
                FORMATS[schema["format"]](value)
            except (ValueError, AttributeError):
                return False
    if is_type(value, "number"):
        if not schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf):
            return False
        if not schema.get("exclusiveMinimum", -math.inf) < value < schema.get("exclusiveMaximum", math.inf):
            return False
        if value % schema.get("multipleOf", value or 1) != 0:
            return False
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf):
            return False
        prefix = schema.get("prefixItems", [])
        for i, item in enumerate(value):
            if not valid(item, prefix[i] if i < len(prefix) else schema.get("items", True), root):
                return False
    if isinstance(value, dict):
        if not schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", math.inf):
            return False
        if any(name not in value for name in schema.get("required", [])):
            return False
        known = schema.get("properties", {})
        for name, item in value.items():
            if not valid(item, known[name] if name in known else schema.get("additionalProperties", True), root):
                return False
    return True
