#!/bin/bash
# SPDX-License-Identifier: MIT
# make static-check: the static program in roots where nothing else is, or where everything is in the way.
#   tests/packaging/static.sh PROGRAM HUB_SERVE TINY_MODEL
set -eu
program=$(realpath "$1") hub_serve=$(realpath "$2") tiny=$(realpath "$3")
source=$(cd "$(dirname "$0")/../.." && pwd)
[ "$(id -u)" = 0 ] || { echo "skipped: roots are changed by root alone"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"; kill ${hub:-} ${server:-} 2>/dev/null || true' EXIT
cd "$work"
fail() {
    echo "FAILED: $*"
    exit 1
}
in_root() { env -i "PATH=$PATH" HOME=/ "${variables[@]}" chroot root "$@"; }
variables=(XDG_CACHE_HOME=/cache)

# ---- the file itself
strip -o stripped "$program"
size=$(stat -c %s stripped)
[ "$size" -le 12000000 ] || fail "the program has $size bytes; at most 12 MB"
readelf -d "$program" | grep -E 'NEEDED|RPATH|RUNPATH' && fail "the program needs libraries"
if grep -qaF "$source" stripped; then fail "the program has this machine's paths"; fi

# ---- an empty root
mkdir root
cp stripped root/whit
in_root /whit run -n 20 --seed 1 -p "Once upon a time" >tale 2>log </dev/null || fail "run: $(cat log)"
[ -s tale ] || fail "no tale"
"$program" run -n 20 --seed 1 -p "Once upon a time" >tale2 2>log </dev/null
cmp -s tale tale2 || fail "another tale than outside"
in_root /whit doctor >doctor
grep -q 'libraries.* libedit libcurl libmicrohttpd.* libseccomp ncursesw' doctor || fail "$(grep libraries doctor)"
for name in openblas tree-sitter libgit2; do grep -q "static build.*$name" doctor || fail "doctor does not name $name"; done
in_root /whit pull owner/name 2>log && fail "pulled from nowhere"
grep -q "no file of certificate authorities" log || fail "no word about certificates: $(cat log)"
# No function here: its shell would be ended in place of the server.
env -i "PATH=$PATH" HOME=/ "${variables[@]}" chroot root /whit serve --port 0 2>serve.log &
server=$!
for _ in $(seq 100); do
    address=$(sed -n 's/.* at \(http:[^ ]*\) .*/\1/p' serve.log)
    [ -z "$address" ] || break
    sleep 0.1
done
python3 - "$address" <<'END' || fail "serve: $(cat serve.log)"
import json, sys, urllib.request
base = sys.argv[1].rstrip("/")
assert b"<html" in urllib.request.urlopen(base).read()
body = json.dumps({"prompt": "Once upon a time", "max_tokens": 8}).encode()
answer = json.load(urllib.request.urlopen(urllib.request.Request(base + "/v1/completions", body)))
assert answer["choices"][0]["text"], answer
END
kill $server
wait $server || true

# ---- name services that would crash it, and none of a locale
mkdir -p root/etc root/lib/x86_64-linux-gnu root/lib/terminfo/x files
echo "hosts: broken" >root/etc/nsswitch.conf
echo "no library" >root/lib/x86_64-linux-gnu/libnss_broken.so.2
echo "127.0.0.1 localhost hub.test" >root/etc/hosts
"$tiny" files/tiny.gguf
mkfifo pipe
"$hub_serve" owner/tiny-GGUF files <pipe >address 2>/dev/null &
hub=$!
exec 9>pipe
while [ ! -s address ]; do sleep 0.05; done
variables+=(HF_ENDPOINT="$(sed 's|//[^:]*|//hub.test|; s|/$||' address)" no_proxy=hub.test,127.0.0.1)
in_root /whit pull owner/tiny-GGUF >out 2>log || fail "pull by a name: $(cat log)"
exec 9>&-

cp "$(find /lib/terminfo /usr/share/terminfo /etc/terminfo -name xterm 2>/dev/null | head -n 1)" root/lib/terminfo/x/
mkdir -p root/dev root/tmp
python3 - <<'END' || fail "the editor or the chat"
import os, pty, select, sys, time

def play(arguments, keys):
    """Runs the program on a terminal, types keys, and gives what it wrote."""
    child, fd = pty.fork()
    if child == 0:
        os.chroot("root")
        os.chdir("/")
        os.execve("/whit", ["whit", *arguments], {"TERM": "xterm", "HOME": "/", "XDG_CACHE_HOME": "/cache"})
    shown = b""
    def read(seconds):
        nonlocal shown
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([fd], [], [], left)[0]:
                return
            try:
                shown += os.read(fd, 65536)
            except OSError:
                return
    read(2)
    for key in keys:
        os.write(fd, key)
        read(0.7)
    read(2)
    os.close(fd)
    os.waitpid(child, 0)
    return shown

shown = play(["edit", "/tmp/text"], ["é→漢".encode(), b"\x13", b"\x11"])
assert open("root/tmp/text", "rb").read().rstrip(b"\n") == "é→漢".encode(), open("root/tmp/text", "rb").read()
assert "é→漢".encode() in shown, shown[-400:]
# The line editor: the left arrow moves over one character of two bytes.
shown = play(["chat", "-n", "4"], ["ab→é".encode(), b"\x1b[D", b"X", b"\x15", b"/quit\r"])
assert "ab→é".encode() in shown and "X".encode() in shown, shown[-600:]
END
echo "the static program works alone: $size bytes"
