#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A language server for the editor's tests: complains of the word "bad", completes, renames. What it is
told to do wrong is its argument: end (at once), garbage, late (answers after what was typed since), afterwards
(changes a text after the action is over), waits (makes a file "asked" when it is asked to rename, and answers once
there is a file "go"), leaves (after it has offered actions), elsewhere (offers actions that change another file; it
waits in the same way), stale (reads the files at its start only, then makes "asked")."""
import json
import os
import re
import sys
import threading
import time
import urllib.parse

how = sys.argv[1] if len(sys.argv) > 1 else ""
texts = {}
stale = open("b c.py").read() if how == "stale" else None
if stale is not None:
    open("asked", "w").close()


def send(message):
    data = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\nX-Other: 1\r\n\r\n" % len(data) + data)
    sys.stdout.buffer.flush()


def place(text, at):
    before = text[:at]
    line = before.rsplit("\n", 1)[-1]
    return {"line": before.count("\n"), "character": len(line.encode("utf-16-le")) // 2}


def span(text, begin, end):
    return {"start": place(text, begin), "end": place(text, end)}


def complain(uri, number):
    text = texts[uri]
    found = [{"range": span(text, m.start(), m.end()), "severity": 1 if m.group() == "bad" else 2,
              "message": "'%s' is\n\033[31mno good" % m.group()} for m in re.finditer("bad|poor", text)]
    send({"method": "textDocument/publishDiagnostics", "params": {"uri": uri, "version": number, "diagnostics": found}})


def word_at(text, position):
    line = text.split("\n")[position["line"]]
    units = at = 0
    while at < len(line) and units < position["character"]:
        units += 2 if ord(line[at]) > 0xFFFF else 1
        at += 1
    for m in re.finditer(r"\w+", line):
        if m.start() <= at <= m.end():
            return m.group()
    return ""


def shout(target):
    send({"id": "apply", "method": "workspace/applyEdit", "params": {"edit": {"changes": {
        target: [{"range": span(texts[target], 0, 0), "newText": "LOUD\n"}]}}}})


def send_later(*messages):
    open("asked", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)
    for message in messages:
        send(message)


def answer(method, params):
    document = params.get("textDocument", {})
    uri = document.get("uri", "")
    if method == "initialize":
        able = {"textDocumentSync": 1}
        if how in ("able", "afterwards", "leaves", "elsewhere"):
            able.update({"documentFormattingProvider": True, "codeActionProvider": True,
                         "signatureHelpProvider": {"triggerCharacters": ["("]}})
        return {"capabilities": able, "serverInfo": {"name": "test"}}
    if method == "textDocument/formatting":
        text, options = texts[uri], params["options"]
        return [{"range": span(text, m.start(), m.end()), "newText": " = "} for m in re.finditer(" *= *", text)] + [
            {"range": span(text, 0, 0), "newText": "# %d\n" % options["tabSize"]}]
    if method == "textDocument/codeAction" and how == "elsewhere":
        target = uri.rsplit("/", 1)[0] + "/b%20c.py"
        text = open("b c.py").read()
        edit = {"changes": {target: [{"range": span(text, 0, text.index("\n")), "newText": "one = 2"}]}}
        return [{"title": "change it there", "edit": edit},
                {"title": "by a command", "command": {"title": "x", "command": "change", "arguments": [edit]}}]
    if method == "textDocument/codeAction":
        wrong = [d["range"] for d in params["context"]["diagnostics"]]
        return [{"title": "make it good", "edit": {"changes": {uri: [{"range": r, "newText": "good"} for r in wrong]}}},
                {"title": "by a command", "command": {"title": "x", "command": "shout", "arguments": [uri]}},
                {"title": "not now", "disabled": {"reason": "no"}}] if wrong else []
    if method == "workspace/executeCommand":
        if how == "able":
            shout(params["arguments"][0])
        return None
    if method == "textDocument/signatureHelp":
        return {"signatures": [{"label": "call(first, second)", "parameters": [{"label": "first"}, {"label": [12, 18]}]}],
                "activeSignature": 0, "activeParameter": texts[uri].count(",")}
    if method == "textDocument/completion" and texts[uri].startswith("far"):
        whole = {"start": {"line": 0, "character": 0}, "end": params["position"]}
        return [{"label": "band", "textEdit": {"range": whole, "newText": "band"}}, {"label": "banana"}]
    if method == "textDocument/completion":
        return {"isIncomplete": False, "items": [
            {"label": "banana", "detail": "a fruit"}, {"label": "band", "insertText": "bandage"},
            {"label": "cherry"}]}
    if method == "textDocument/hover":
        return {"contents": {"kind": "plaintext", "value": "word: " + word_at(texts[uri], params["position"]) + "\nline two"}}
    if method == "textDocument/rename":
        old, new = word_at(texts[uri], params["position"]), params["newName"]
        folder = uri.rsplit("/", 1)[0]
        if new in ("outside", "linked"):
            target = os.environ.get("OUTSIDE", "file:///etc/hostname") if new == "outside" else folder + "/linked/d.py"
            return {"changes": {target: [{"range": span("", 0, 0), "newText": "x"}]}}
        changes = {}
        for name in ["a.py", "b%20c.py"]:
            file = folder + "/" + name
            text = texts.get(file)
            if text is None and stale and "%20" in name:
                text = stale
            elif text is None:
                try:
                    text = open(urllib.parse.unquote(file[7:]), newline="").read()
                except OSError:
                    continue
            edits = [{"range": span(text, m.start(), m.end()), "newText": new}
                     for m in re.finditer(r"\b%s\b" % old, text)]
            if edits:
                changes[file] = edits
        return {"changes": changes}
    if method == "textDocument/definition":
        at = texts[uri].find("def ")
        return [{"uri": uri, "range": span(texts[uri], at, at)}] if at >= 0 else None
    return None


if how == "end":
    sys.exit(1)
while True:
    size = 0
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        if line == b"\r\n":
            break
        if line.lower().startswith(b"content-length:"):
            size = int(line.split(b":")[1])
    message = json.loads(sys.stdin.buffer.read(size))
    method, params = message.get("method"), message.get("params") or {}
    if method == "exit":
        sys.exit(0)
    if method == "initialized":
        send({"id": "mine", "method": "workspace/configuration", "params": {"items": [{}]}})
        if how == "garbage":
            sys.stdout.buffer.write(b"Content-Length: 99999999999999999999\r\n\r\nnonsense")
            sys.stdout.buffer.flush()
    if method == "textDocument/didOpen":
        open(".opened", "w").close()  # scenes wait for it
    if method in ("textDocument/didOpen", "textDocument/didChange"):
        document = params["textDocument"]
        texts[document["uri"]] = (document if method.endswith("didOpen") else params["contentChanges"][0])["text"]
        complain(document["uri"], document["version"])
    if method == "textDocument/rename" and how == "waits":
        threading.Thread(target=send_later, args=({"id": message["id"], "result": answer(method, params)},)).start()
    elif method == "workspace/executeCommand" and how == "elsewhere":
        change = {"id": "apply", "method": "workspace/applyEdit", "params": {"edit": params["arguments"][0]}}
        threading.Thread(target=send_later, args=(change, {"id": message["id"], "result": None})).start()
    elif method and "id" in message:
        send({"id": message["id"], "result": answer(method, params)})
        if method == "textDocument/codeAction" and how == "leaves":
            sys.exit(0)
    if method == "workspace/executeCommand" and how == "afterwards":
        shout(params["arguments"][0])
