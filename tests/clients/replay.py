# SPDX-License-Identifier: MIT
"""Requests as people's clients send them, each with what its reply must have.

A file of requests/ is {"client", "requests": [...]}, and a request has

  name, path, method (POST), headers, body   the request; "model" is put into the body where it has none
  models      the models that it is sent to, each in turn: "tales" (no tools in its template), "tools" (["tales"])
  status      of the reply (200)
  want        {"a.0.b": value}: members of the reply; {"type": "string"} asks for a kind of value, {"has": "text"} for
              a text that has another, {"size": n} for a list of so many
  absent      members that must not be there
  stream      true: the reply is events; `events` names their types in order, repeated ones once; `want` then looks at
              {"events": [...]}, all of them
"""
import glob
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["SOURCE"], "tests/server"))
import client  # noqa: E402
from client import Server, check  # noqa: E402

KINDS = {"string": str, "number": (int, float), "list": list, "object": dict, "boolean": bool, "null": type(None)}
MISSING = object()


def find(value, place):
    for step in place.split("."):
        if isinstance(value, list) and re.fullmatch(r"-?\d+", step) and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        else:
            return MISSING
    return value


def fits(value, wanted):
    if isinstance(wanted, dict) and set(wanted) <= {"type", "has", "size"} and wanted:
        return value is not MISSING and ("type" not in wanted or isinstance(value, KINDS[wanted["type"]])) and (
            "has" not in wanted or wanted["has"] in str(value)) and ("size" not in wanted or len(value) == wanted["size"])
    return value is not MISSING and value == wanted


def read_events(text):
    """Server-sent events, or lines of JSON."""
    events = []
    for block in text.decode().replace("\r", "").split("\n"):
        if block.startswith("data: "):
            block = block[6:]
        elif block.startswith((":", "event: ")):
            continue
        if block and block != "[DONE]":
            events.append(json.loads(block))
    return events


def kinds_of(events):
    kinds = []
    for event in events:
        kind = event.get("type") or event.get("object")
        if not kinds or kinds[-1] != kind:
            kinds.append(kind)
    return kinds


def set_seed(path, body):
    """The same answers in each run."""
    if "/v1beta/" in path and "contents" in body:
        body["generationConfig"] = {"seed": 7, **body.get("generationConfig", {})}
    elif path.startswith(("/api/chat", "/api/generate")):
        body["options"] = {"seed": 7, **body.get("options", {})}
    elif not path.startswith("/api/"):
        body.setdefault("seed", 7)


def replay(server, request, model):
    method = request.get("method", "POST")
    body = request.get("body") if method == "POST" else None
    if body is not None:
        body = {"model": model, **body}
    path = request["path"].replace("MODEL", model)
    if isinstance(body, dict):
        set_seed(path, body)
    status, text = server.ask(method, path, body, {"Content-Type": "application/json", **request.get("headers", {})})
    what = (request["name"], model, path)
    check(status == request.get("status", 200), *what, "gave", status, text[:400])
    if status != request.get("status", 200):
        return
    if request.get("stream"):
        reply = {"events": read_events(text)}
        if "events" in request:
            check(kinds_of(reply["events"]) == request["events"], *what, kinds_of(reply["events"]))
    else:
        reply = json.loads(text)
    for place, wanted in request.get("want", {}).items():
        found = find(reply, place)
        check(fits(found, wanted), *what, place, "is", "missing" if found is MISSING else found, "not", wanted, text[:300])
    for place in request.get("absent", []):
        check(find(reply, place) is MISSING, *what, place, "is there:", find(reply, place))


def main():
    here = os.path.join(os.environ["SOURCE"], "tests/clients/requests")
    source = open(os.path.join(os.environ["SOURCE"], "tests/server/serve.py"), encoding="utf-8").read()
    with open("tools.jinja", "w", encoding="utf-8") as out:
        out.write(re.search(r'TOOLS_TEMPLATE = r"""(.*?)"""', source, re.S).group(1))
    subprocess.run([os.path.join(os.environ["BUILD"], "tests/make_folder"), "qwen3-0.6b", "tools_model", "--layers", "1",
                    "--divide", "8", "--vocab", "300", "--template", "tools.jinja"], check=True, stdout=subprocess.DEVNULL)
    server = Server("-c", "2048", "-m", "tales", "-m", "tools=tools_model")
    n = 0
    for path in sorted(glob.glob(os.path.join(here, "*.json"))):
        with open(path, encoding="utf-8") as file:
            for request in json.load(file)["requests"]:
                for model in request.get("models", ["tales"]):
                    replay(server, request, model)
                    n += 1
    check(n > 0, "no requests were found")
    server.end()
    print(n, "requests replayed")
    sys.exit(client.failures > 0)


if __name__ == "__main__":
    main()
