# SPDX-License-Identifier: MIT
# Text from files reaches a terminal without what could command it, whatever verb prints it, also through a pipe, since
# a pager or head shows it there; JSON has escapes; what a model generates goes into a pipe as it is.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache XDG_STATE_HOME=$PWD/state
rm -rf cache state
has_terminals || exit 77
tiny model.gguf 1 chat
expect 0 whit run model.gguf the -n 1 # converted: no progress bar in what follows
PYTHONPATH=$SOURCE/tests/cli python3 - $EMULATOR "$WHIT" <<'END' || failed=1
import json, os, re, subprocess, sys
import at_terminal, checks
from checks import check
program = sys.argv[1:]
C1, RAW, ESC, BIDI, TAG = b"\xc2\x9b2J", b"\xc2\xc2\x9bJ", b"\x1b[2J", b"\xe2\x80\xaex", b"\xf3\xa0\x81\x81"


def shown(*arguments, lines=b""):
    """What a terminal is sent by the program."""
    return at_terminal.run(program + list(arguments), lines, term="dumb")[1]


def strings(value):
    """All strings of a JSON value, one after another."""
    if isinstance(value, (dict, list)):
        return "\n".join(strings(x) for x in (value.values() if isinstance(value, dict) else value))
    return str(value)


def is_safe(text):
    text = text.replace(b"\r\n", b"\n").replace(b"\r", b"", 1)
    try:
        return not any(ord(c) < 32 and c not in "\n\t" or 127 <= ord(c) < 160 or c in "\u202e\U000e0041" for c in text.decode())
    except UnicodeDecodeError:
        return False


model = open("model.gguf", "rb").read()
at = model.index(b"general.name") + len("general.name") + 4 + 8
check("the model's name", model[at:at + 4] == b"tiny", model[at:at + 4])
start = model.index(b"tokenizer.chat_template") + len("tokenizer.chat_template") + 4
n = int.from_bytes(model[start:start + 8], "little")
template = model[start + 8:start + 8 + n]
for name, evil in ("c1", C1), ("raw", RAW), ("esc", ESC), ("bidi", BIDI), ("tag", TAG):
    patched = model[:at] + evil[:4] + model[at + 4:]
    # A comment at the template's end takes its place in what /show template prints.
    hidden = template.replace(b"{%", b"{#" + evil + b"#}{%", 1)[:n + len(evil) + 4]
    patched = patched[:start] + len(hidden).to_bytes(8, "little") + hidden + patched[start + 8 + n:]
    open(name + ".gguf", "wb").write(patched)
    # The tensors' data begins at a multiple of 32: the longer template moves it.
    pad = -(len(hidden) - n) % 32
    if pad:
        filler = hidden + b" " * pad
        patched = patched[:start] + len(filler).to_bytes(8, "little") + filler + patched[start + 8 + len(hidden):]
        open(name + ".gguf", "wb").write(patched)
    piped = subprocess.run(program + ["inspect", "--json", name + ".gguf"], capture_output=True)
    check("inspect", piped.returncode == 0 and is_safe(piped.stdout), name, piped.stderr)
    facts = json.loads(piped.stdout)
    check("a name in JSON", evil == RAW or evil[:4].decode() in strings(facts), facts)
    for arguments in ["inspect"], ["inspect", "--tensors"]:
        piped = subprocess.run(program + arguments + [name + ".gguf"], capture_output=True)
        check("inspect in a pipe", piped.returncode == 0 and is_safe(piped.stdout), name, piped.stdout)
    for arguments in ["inspect"], ["inspect", "--json"], ["inspect", "--tensors"]:
        check("inspect", is_safe(shown(*arguments, name + ".gguf")), name, arguments)
    text = shown("chat", name + ".gguf", "-n", "4", "--temp", "0",
                 lines=b"/show model\n/show template\nthe land\n/show prompt\n/show history\n/bye\n")
    check("chat", b"template" in text and is_safe(text), name, text)
    if evil == RAW:  # no UTF-8: the importer replaces it already
        continue
    check("the template", evil not in text and b"{#" in text, name)
    piped = subprocess.run(program + ["chat", name + ".gguf"], input=b"/show template\n/bye\n", capture_output=True)
    check("a pipe", b"{#" in piped.stdout and is_safe(piped.stdout), name)

# Generated text: the small model writes any bytes at a high temperature.
for seed in range(8):
    text = shown("run", "model.gguf", "the", "-n", "120", "-c", "256", "--temp", "50", "--top-k", "0", "--top-p", "1",
                 "--min-p", "0", "-s", str(seed), "--ignore-eos")
    check("generated text", is_safe(text), seed, text)
raw = subprocess.run(program + ["run", "model.gguf", "the", "-n", "120", "-c", "256", "--temp", "50", "--top-k", "0", "--top-p", "1",
                                "--min-p", "0", "-s", "0", "--ignore-eos"], capture_output=True).stdout
check("generated text in a pipe", not is_safe(raw), raw)
# Names in messages.
for evil in C1, RAW, ESC:
    text = shown("run", b"/nowhere/" + evil, "x")
    check("a name", b"nowhere" in text and is_safe(text), text)
    text = shown("run", "model.gguf", "-p", "x", b"--" + evil)
    check("an option", is_safe(text), text)
sys.exit(checks.failed)
END
finish
