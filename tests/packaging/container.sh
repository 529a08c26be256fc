#!/bin/bash
# SPDX-License-Identifier: MIT
# make container-check: buildah loads the container image, its program tells the tale that the same program tells outside,
# serves as nobody, and after the image is removed no layer is left.
#   tests/packaging/container.sh PROGRAM
set -euo pipefail
program=$(realpath "$1")
source=$(cd "$(dirname "$0")/../.." && pwd)
[ "$(id -u)" = 0 ] || { echo "skipped: the store of images is made by root alone"; exit 77; }
command -v buildah >/dev/null || { echo "skipped: no buildah (apt-get install buildah)"; exit 77; }
work=$(mktemp -d)
trap 'kill ${server:-} 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
fail() {
    echo "FAILED: $*"
    exit 1
}
buildah() { command buildah --storage-driver=vfs --root "$work/store" --runroot "$work/run" "$@"; }
# Isolation by chroot needs neither cgroups nor permission to raise limits.
inside() { buildah run --isolation chroot "$container" -- "$@"; }

"$source/packaging/oci" "$program" amd64 check image.tar >/dev/null
image=$(buildah pull -q "oci-archive:$work/image.tar")
container=$(buildah from "$image")
user=$(buildah inspect --format '{{.OCIv1.Config.User}}' "$container")
[ "$user" = 65534:65534 ] || fail "the image's user is '$user'"

inside /whit run -n 20 --seed 1 -p "Once upon a time" >tale 2>log </dev/null || fail "run: $(cat log)"
"$program" run -n 20 --seed 1 -p "Once upon a time" >outside 2>log </dev/null
[ -s tale ] && cmp -s tale outside || fail "another tale than outside"

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
inside /whit serve --host 127.0.0.1 --port "$port" >serve.log 2>&1 </dev/null &
server=$!
for _ in $(seq 60); do
    models=$(curl -s "http://127.0.0.1:$port/v1/models") && break
    kill -0 $server 2>/dev/null || fail "serve ended: $(cat serve.log)"
    sleep 0.5
done
echo "$models" | grep -q tales || fail "serve does not answer: $(cat serve.log)"
listener=$(pgrep -f "^/whit serve --host 127.0.0.1 --port $port" | head -n 1)
[ "$(awk '/^Uid:/ { print $2 }' "/proc/$listener/status")" = 65534 ] || fail "the server is not nobody's"
kill "$listener"
wait $server || true

buildah rm "$container" >/dev/null
buildah rmi "$image" >/dev/null
[ -z "$(buildah images -q)" ] || fail "an image is left"
left=$(find store -path '*/dir/*' -name whit)
[ -z "$left" ] || fail "left: $left"
echo "container: tells the same tale, serves as nobody, and leaves nothing"
