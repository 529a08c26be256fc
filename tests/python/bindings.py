# SPDX-License-Identifier: MIT
"""whit's package for Python, in place and as a wheel: the library's own structs, texts, forms, chats, errors, memory."""
import ctypes
import json
import os
import resource
import subprocess
import sys
import threading
import time

sys.path.insert(0, sys.argv[1])
import whit  # noqa: E402
from whit import _abi, _library  # noqa: E402

MODEL = os.environ["SOURCE"] + "/tools/tales/tales.ndf"
failed = []


def check(ok, *what):
    if not ok:
        print("FAILED:", *what)
        failed.append(what)


def raises(kind, function):
    try:
        function()
    except kind as error:
        return error
    check(False, "no", kind.__name__)
    return None


def test_structs():
    """Every struct that the library fills has the library's size."""
    found = 0
    for name in dir(_abi):
        if hasattr(_library.lib, name + "_init"):
            size = getattr(_library.lib, name + "_init")(None, 0)
            check(size == ctypes.sizeof(getattr(_abi, name)), name, size, ctypes.sizeof(getattr(_abi, name)))
            found += 1
    check(found >= 12, "only", found, "structs")


def test_texts(model):
    ids = model.tokenize("Once upon a time")
    check(model.detokenize(ids[1:]).strip() == "Once upon a time", model.detokenize(ids))
    with model.session(context=256, logits=8) as session:
        text = "".join(session.generate("Once upon a time", max_tokens=24, temperature=0))
        said = subprocess.run([*os.environ["WHIT"].split(), "run", MODEL, "--raw", "--no-display-prompt", "-p",
                               "Once upon a time", "-n", "24", "--temp", "0"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=True).stdout.decode()
        check(text.strip() == said.strip(), text, said)
        again = "".join(session.generate("Once upon a time", max_tokens=24, temperature=0))
        check(again == text, "a second generation differs")
        stopped = "".join(session.generate("Once upon a time", max_tokens=24, temperature=0, stop=[text[5:9]]))
        check(stopped == text[:5], stopped)
        schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9, "minimum": 0}},
                  "required": ["n"], "additionalProperties": False}
        check(0 <= json.loads("".join(session.generate("A number:", schema=schema, max_tokens=200)))["n"] <= 9, "schema")
        for piece in session.generate("Once", max_tokens=100):
            check(piece, "an empty piece")
            break  # a generation that is left early gives its sequence back
        session.truncate(0)
        one = list(session.step(ids))
        session.truncate(0)
        every = session.step(ids, every=True)
        check(len(every) == len(ids) and list(every[len(ids) - 1]) == one, "logits of every token")
    raises(TypeError, lambda: list(model.session().generate("a", heat=1)))
    raises(whit.Error, lambda: session.position())


def test_adapters_and_grammars(model):
    with model.session(context=256) as session, whit.Adapter(model, "verse.ndf") as verse:
        ids = model.tokenize("Once upon a")
        rows = []
        for mounts in ({}, {verse: 8.0}, {}):
            session.truncate()
            session.mount(mounts)
            rows.append(list(session.step(ids)))
        check(rows[0] == rows[2] and rows[0] != rows[1], "logits with an adapter and without it")
        session.truncate()
        text = "".join(session.generate("The sea:", grammar='root ::= " calm" | " rough"', max_tokens=20))
        check(text in (" calm", " rough"), text)
    raises(whit.Error, lambda: whit.Adapter(model, "nowhere.ndf"))


def test_pieces(model):
    """A fast model's tokens come together, the first of a prompt that takes longer at once."""
    with model.session(context=512, threads=1) as session:
        begin = time.monotonic()
        pieces = list(session.generate("Once", max_tokens=400, temperature=0, ignore_end=True))
        seconds = time.monotonic() - begin
        check(1 < len(pieces) <= seconds / 0.002 + 1, len(pieces), "pieces in", seconds)


def test_chat(model):
    asked = []
    tools = {"add": (lambda a, b: asked.append((a, b)) or a + b,
                     {"description": "Adds.", "parameters": {"type": "object", "properties": {
                         "a": {"type": "integer"}, "b": {"type": "integer"}}}})}
    with whit.Chat(model, system="Be brief.", tools=tools, context=512) as chat:
        answer = chat.ask("A tale of a fox.", max_tokens=12, temperature=0)
        check(answer.text and answer.finish == "length" and answer.tokens == 12, answer.message)
        check([m["role"] for m in chat.messages] == ["system", "user", "assistant"], chat.messages)
        pieces = []
        raises(KeyboardInterrupt, lambda: chat.ask("More.", on_text=lambda text: interrupt(pieces, text)))
        check(len(pieces) == 1, pieces)
        check("".join(chat.stream("And then?", max_tokens=8, temperature=0)) == chat.messages[-1]["content"], "stream")
        for _piece in chat.stream("Again?", max_tokens=400):
            break
        chat.append([{"role": "user", "content": "2 and 3?"},
                     {"role": "assistant", "content": "", "tool_calls": [
                         {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'}},
                         {"id": "d", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}]}])
        chat._return_results()
        results = [m["content"] for m in chat.messages[-2:]]
        check(asked == [(2, 3)] and results[0] == "5" and results[1].startswith("error: TypeError"), results)
        chat.save("talk.json")
        n = len(chat.messages)
        check(chat.undo() > 0 and len(chat.messages) < n, "undo")
        chat.load("talk.json")
        check(len(chat.messages) == n, "load")


def interrupt(pieces, text):
    pieces.append(text)
    raise KeyboardInterrupt


def test_errors(model):
    error = raises(whit.Error, lambda: whit.Model("nowhere.ndf"))
    check(error and "nowhere.ndf" in str(error) and error.status, error)
    closed = model.session()
    closed.close()
    closed.close()
    raises(whit.Error, lambda: closed.step([1]))
    check("one of" in str(raises(whit.Error, lambda: model.session(kv="i9"))), "kv")
    raises(whit.Error, lambda: list(model.session().generate("a", grammar="root ::= (")))
    session = model.session()
    pieces = session.generate("Once", max_tokens=50)
    next(pieces)
    session.close()
    raises(whit.Error, lambda: list(pieces))
    session = model.session()
    child = os.fork()
    if not child:
        try:
            session.position()
        except whit.Error:
            os._exit(7)
        os._exit(0)
    check(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7, "a session in a child")


def test_threads_and_memory(model):
    texts = [None] * 3

    def run(i):
        with model.session(context=128, threads=1) as session:
            texts[i] = "".join(session.generate("Once", max_tokens=16, temperature=0))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(texts[0] and texts[0] == texts[1] == texts[2], texts)
    vectors = model.embed(["a fox", "an owl"])
    check(abs(sum(float(x) ** 2 for x in vectors[0]) - 1) < 1e-4 and len(vectors[1]) == model.embedding_size, "embed")
    check(list(model.embed("a fox")) == list(vectors[0]), "a vector depends on the texts beside it")
    for n in range(400):
        if n == 100:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with whit.Model(MODEL) as one, one.session(context=64, threads=1):
            pass
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    check(after - before < 2000, "300 cycles took", after - before, "KiB")


def main():
    test_structs()
    with whit.Model(MODEL) as model:
        check(model.vocab_size == 1536 and model.context_size == 512 and len(model.identity) == 64, "the model")
        check(model.metadata("general.architecture") == "llama" and model.metadata("x") is None, "metadata")
        test_texts(model)
        test_adapters_and_grammars(model)
        test_pieces(model)
        test_chat(model)
        test_errors(model)
        test_threads_and_memory(model)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
