# SPDX-License-Identifier: MIT
"""More commands in a project of a stranger: the editor's agent, vi's lines, several tasks, files named in options, a server."""
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

from looks import describe, photograph
from person import attend, run_piped
from plays import Endpoint, answer_all, draw_answers, is_pipe, leave_editor, note_requests
from project import MARK, PLAIN

KEPT_FROM_MODELS = {".env", "id_ed25519", "credentials", ".netrc"}  # names of files that hold keys


def read_names(project):
    """Trapped names that a person may well name in a command: reading a pipe or a device by name waits for it."""
    def is_plain(name):
        real = os.path.realpath(os.path.join(project.root, name))
        return not is_pipe(project, name) and not real.startswith(("/dev/", "/proc/")) and not name.startswith(("-", "+"))
    return [name for name in project.names if is_plain(name)] or ["plain"]


def play_panel(play, whit, rng, env, bound_s):
    """The agent in the editor, whose changes are refused, and a model that explains what is selected."""
    project = play.project
    opened = rng.sample(read_names(project), 1) + rng.sample([*PLAIN, ".env"], 1)
    explains = rng.random() < 0.4
    for name in opened:
        play.expose(name)
    if explains:
        play.sendable = {text for text in play.exposed if os.path.basename(project.secrets[text]) not in KEPT_FROM_MODELS}
    play.title += f" {opened} explains={explains}"
    asks = [b"\x01", rng.choice([b"\x1b[17~", b"\x1b[17;2~make it short\r"])] if explains else [b"\x1b[20~", b"do it\r"]
    waiting, ends = [*asks, *rng.choices([b"n", b"d", b"\x1b", b"\x1b[6~", b"\x1b[20~"], k=rng.randrange(8, 16))], [0]
    endpoint = Endpoint(draw_answers(project, rng))

    def answer(_):
        if waiting:
            return waiting.pop(0)
        ends[0] += 1
        return leave_editor(ends[0])
    options = []
    if rng.random() < 0.3:  # suggestions are asked for while a text is typed, of files that hold no keys
        options = ["--config", os.path.join(project.home, ".local/share/whit/suggest.conf")]
        with open(options[1], "w", encoding="utf-8") as file:
            file.write("suggest = yes\n")
        waiting[:0] = [b"\x1b[F", b"word ", b"", b"", b"", b"", b""]
        play.sendable |= {text for text in play.exposed if os.path.basename(project.secrets[text]) not in KEPT_FROM_MODELS}
    attend(play, [whit, "edit", *options, "--url", endpoint.url, "--model", "m", *opened], answer, env, project.root, bound_s, quiet_s=0.1)
    note_requests(play, endpoint)


def play_vi(play, whit, rng, env, bound_s):
    """Lines of vi's ':' with names of the project, which no shell may take for more than names."""
    project = play.project
    config = os.path.join(project.home, ".local/share/whit/vi.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write("keys = vi\n")
    names = [name for name in read_names(project) if "\n" not in name and "\r" not in name and "\x1b" not in name] or ["plain/a.c"]
    opened = rng.choice(names) if rng.random() < 0.4 else rng.choice(list(PLAIN))
    lines = [rng.choice(["e! {}", "r {}", "Ex", "ls", "sp {}", "grep " + MARK, "set", "!true %", "w !true %", "r !true %", "1,1!cat", "e! {}", "bn", "tag x", "q"])
             .format(rng.choice(names)) for _ in range(rng.randrange(2, 7))]
    if play.says_yes and opened in PLAIN:
        lines = ["!true %", "w !true %", "s/e/E/", "wq"]
    for name in [opened, *(line[2:].strip(" !") for line in lines if line[:2] in ("e!", "r ", "sp"))]:
        play.expose(name)
    play.exposed |= {text for text, place in project.secrets.items() if place.startswith(project.root + "/")}
    play.title += f" {opened!r} {lines}"
    play.agreed |= {opened} if "wq" in lines else set()
    waiting, ends = [b":" + line.encode(errors="surrogateescape") + b"\r" for line in lines], [0]
    if ":" in env["PATH"].replace(os.pathsep + os.pathsep, ""):  # a shell finds its programs as its own PATH says
        env = dict(env, PATH=os.path.join(project.home, "tools/bin") + ":/usr/bin:/bin")

    def answer(_):
        if waiting:
            return waiting.pop(0)
        ends[0] += 1
        return {1: b"\x1b\x1b", 3: b":qa!\r"}.get(ends[0] % 12)
    attend(play, [whit, "edit", "--config", config, opened], answer, env, project.root, bound_s)


def play_jobs(play, whit, rng, env, bound_s):
    endpoint = Endpoint([answer for _ in range(3) for answer in draw_answers(play.project, rng)])
    play.is_lenient = play.says_yes
    command = [whit, "agent", "-j", "2", "do this", "do that", "--url", endpoint.url, "--model", "m"]
    if rng.random() < 0.5:
        run_piped(play, command + (["--yes"] if play.says_yes else []), env, play.project.root, bound_s)
    else:
        attend(play, command, answer_all(play), env, play.project.root, bound_s)
    note_requests(play, endpoint)


def play_named(play, whit, rng, env, bound_s):
    """Options that name a file of the project."""
    project = play.project
    tiny = os.path.join(project.home, ".local/share/whit/tiny.gguf")
    name = rng.choice(read_names(project))
    play.expose(name)
    play.sendable = set(play.exposed)
    run = ["run", "-m", tiny, "-n", "2"]
    endpoint = Endpoint([])
    agent = ["agent", "-p", "x", "--url", endpoint.url, "--model", "m"]
    command = rng.choice([
        [*run, "-f", name], [*run, "-p", "x", "--grammar", name], [*run, "-p", "x", "--json-schema-file", name], [*run, "-p", "x", "--family", name],
        [*run, "-p", "x", "--adapter", name], [*run, "-p", "x", "--program", name], [*run, "-p", "x", "--draft", name],
        ["chat", "-m", tiny, "-n", "2", "--load", name], ["chat", "-m", tiny, "-n", "2", "--tools", name], ["chat", "-m", tiny, "-n", "2", "--mcp"],
        ["run", "-n", "2", "-p", "x", "--chat-template", name], [*agent, "--key-file", name], ["edit", "--list-keys", "--config", name],
        ["agent", "apply", name], ["agent", "apply", name, "--preview"], ["graph", name, "map"], ["compare", name, tiny], ["eval", "-m", tiny, name],
        ["merge", name, "--adapter", name, "/dev/null"], ["list", name], ["rm", name], ["sign", name], ["rerank", "-m", tiny, "-f", name],
        ["mcp", name], ["mcp", ".", "--memory", name], ["grammar", name], ["train", name, "/dev/null"]])
    play.title += f" {command}"
    if rng.random() < 0.6:
        run_piped(play, [whit, *command], env, project.root, bound_s, b"hello\n")
    else:
        ends = itertools.cycle([b"\x04", b"/bye\n", b"n\n", b"q", b"\n", b"\x04"])
        attend(play, [whit, *command], lambda _: next(ends), env, project.root, bound_s)
    note_requests(play, endpoint)


def play_serve(play, whit, rng, env, bound_s):
    """A server that is started in the project answers nothing but its model."""
    project = play.project
    tiny = os.path.join(project.home, ".local/share/whit/tiny.gguf")
    env = {name: value for name, value in env.items() if not name.startswith("WHIT_")}
    server = subprocess.Popen([whit, "serve", "-m", tiny, "--port", "0", "-c", "64"], env=env, cwd=project.root, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    said = [b"", b""]
    readers = [threading.Thread(target=lambda i=i, pipe=pipe: [said.__setitem__(i, said[i] + line) for line in pipe], daemon=True)
               for i, pipe in enumerate((server.stdout, server.stderr))]
    for reader in readers:
        reader.start()
    end, got = time.monotonic() + bound_s, []
    while not (found := re.search(rb"http://127\.0\.0\.1:\d+", said[0] + said[1])) and server.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    if found:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for path in ["/", "/health", "/../.env", "/%2e%2e/.env", "/.env", "/v1/models/..%2f.env", "/" + "../" * 8 + project.home + "/.bashrc"]:
            try:
                got.append(opener.open(found.group().decode() + path, timeout=bound_s).read())
            except (urllib.error.HTTPError, OSError) as refused:
                got.append(str(refused).encode())
        body = json.dumps({"model": rng.choice(read_names(project)).encode(errors="replace").decode(), "prompt": "x", "max_tokens": 2}).encode()
        try:
            got.append(opener.open(urllib.request.Request(found.group().decode() + "/v1/completions", body, method="POST"), timeout=bound_s).read())
        except (urllib.error.HTTPError, OSError) as refused:
            got.append(str(refused).encode())
    server.send_signal(signal.SIGTERM)
    try:
        play.note_status(server.wait(timeout=bound_s))
    except subprocess.TimeoutExpired:
        play.hangs = b"(the server did not end)"
        server.kill()
        server.wait()
    for reader in readers:
        reader.join(bound_s)
    play.shown += [("stdout", said[0]), ("stderr", said[1])]
    play.sent.append(("answers of the server", b"\n".join(got)))


def play_model(play, whit, rng, env, bound_s):
    """A model's folder, as somebody has published it, in which files are traps."""
    project = play.project
    if not os.environ.get("FOLDER"):
        return
    name = f"model{len(project.names)}"
    folder = os.path.join(project.root, name)
    shutil.copytree(os.environ["FOLDER"], folder)
    names = sorted(os.listdir(folder)) + ["chat_template.jinja", "model.safetensors.index.json", "adapter_config.json", "adapter_model.safetensors",
                                          "special_tokens_map.json", "added_tokens.json", "merges.txt", "vocab.json", "tokenizer.model", "model.safetensors.sig"]
    for trapped in rng.sample(names, rng.randrange(1, 4)):
        path = os.path.join(folder, trapped)
        if os.path.lexists(path):
            os.remove(path)
        project.place(os.path.join(name, trapped))
        play.expose(os.path.join(name, trapped))  # a message may quote a line of a file that the model's folder names
    play.sendable = set(play.exposed)
    play.before = photograph(project.home)
    out = os.path.join(project.home, ".local/share/whit/out.ndf")
    command = rng.choice([["run", "-m", name, "-n", "1", "-p", "x"], ["inspect", name], ["convert", name, out], ["verify", name],
                          ["run", "-m", f"{name}/model.safetensors", "-n", "1", "-p", "x"], ["tokenize", "-m", name, "x"], ["chat", "-m", name, "-n", "1"],
                          ["verify", f"{name}/model.safetensors", "--detached", "--key", f"{name}/config.json"], ["run", "-n", "1", "-p", "x", "--adapter", name],
                          ["template", "-m", name], ["tokenize", "-m", f"{name}/tokenizer.json"], ["compress", name, out]])
    play.title += f" {command} {[(path, describe(os.path.join(folder, path))[:2]) for path in sorted(os.listdir(folder))]}"
    run_piped(play, [whit, *command], env, project.root, bound_s, b"hello\n")


MORE = {"model": (play_model, 2), "panel": (play_panel, 3), "vi": (play_vi, 3), "jobs": (play_jobs, 1), "named": (play_named, 3), "serve": (play_serve, 1)}
