#!/bin/sh
# SPDX-License-Identifier: MIT
# Coding agents from npm, ten turns with tools each, against build/whit serve, where only the loopback device is there:
# agents.sh [AGENT...] [MODEL...]; models are llama (Llama 3's template), qwen3 and plain (one without tools).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
SOURCE=$(cd "$here/../.." && pwd)
BUILD=${BUILD:-$SOURCE/build}
WHIT=${WHIT:-$BUILD/whit}
shared=${SHARED:-$SOURCE/../shared}
PACKAGES=${PACKAGES:-$BUILD/agents}
MODELS=$PACKAGES/models
XDG_CACHE_HOME=$PACKAGES/cache
export SOURCE BUILD WHIT PACKAGES MODELS XDG_CACHE_HOME
command -v npm >/dev/null || { echo "skipped: no npm"; exit 0; }
[ -d "$shared/tokenizers/llama-3" ] || { echo "skipped: no tokenizer in $shared/tokenizers/llama-3"; exit 0; }
unshare -rn true 2>/dev/null || { echo "skipped: no network of its own can be had (unshare -rn)"; exit 0; }
mkdir -p "$PACKAGES"
cp "$here/agents.json" "$PACKAGES/package.json"
# Two of the packages put their program in place by a script; the scripts of all others stay unused.
(cd "$PACKAGES" && npm install --ignore-scripts --no-audit --no-fund --loglevel=error &&
    npm rebuild --loglevel=error @anthropic-ai/claude-code opencode-ai) || { echo "skipped: the packages cannot be had"; exit 0; }
for one in llama:llama-3.2-1b:16:meta-llama-Llama-3.1-8B-Instruct qwen3:qwen3-0.6b:8:Qwen-Qwen3-0.6B \
    plain:llama-3.2-1b:16:bitnet-b1.58-2B-4T; do
    IFS=: read -r name shape divisor template <<END
$one
END
    rm -rf "${MODELS:?}/$name"
    mkdir -p "$MODELS"
    "$BUILD/tests/make_folder" "$shape" "$MODELS/$name" --layers 1 --divide "$divisor" \
        --vocabulary "$shared/tokenizers/llama-3" --template "$shared/templates/$template.jinja" >/dev/null
done
exec unshare -rn sh -c 'ip link set lo up; exec python3 "$0" "$@"' "$here/agents.py" "$@"
