#!/bin/sh
# SPDX-License-Identifier: MIT
# make test-clients: llama.cpp's tests of its server, restated (llama.py), against build/whit serve.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
SOURCE=$(cd "$here/../.." && pwd)
BUILD=${BUILD:-$SOURCE/build}
WHIT=${WHIT:-$BUILD/whit}
SHARED=${SHARED:-$SOURCE/../shared}
XDG_CACHE_HOME=$BUILD/clients/cache
export SOURCE BUILD WHIT SHARED XDG_CACHE_HOME
[ -d "$SHARED/tokenizers/llama-3" ] || { echo "skipped: no tokenizer in $SHARED/tokenizers/llama-3"; exit 0; }
mkdir -p "$BUILD/clients"
cd "$BUILD/clients"
rm -rf slots llama31 qwen3
for one in llama31:llama-3.2-1b:16:meta-llama-Llama-3.1-8B-Instruct qwen3:qwen3-0.6b:8:Qwen-Qwen3-0.6B; do
    IFS=: read -r name shape divisor template <<END
$one
END
    "$BUILD/tests/make_folder" "$shape" "$name" --layers 1 --divide "$divisor" \
        --vocabulary "$SHARED/tokenizers/llama-3" --template "$SHARED/templates/$template.jinja" >/dev/null
done
python3 "$here/llama.py"
