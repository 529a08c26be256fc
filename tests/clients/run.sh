#!/bin/sh
# SPDX-License-Identifier: MIT
# make test-clients: people's clients, with the versions of package-lock.json, against build/whit serve.
# WHIT is the program, BUILD where tests/make_folder lies.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
build=${BUILD:-$source/build}
whit=${WHIT:-$build/whit}
command -v npm >/dev/null || { echo "skipped: no npm"; exit 0; }
work=$build/clients
mkdir -p "$work"
cp "$here"/*.mjs "$here"/*.ts "$here/package.json" "$here/package-lock.json" "$work"
cd "$work"
# Mastra brings 400 packages along, which would be most of the lock file.
npm ci --no-audit --no-fund --loglevel=error &&
    npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error @mastra/core@0.24.9 ||
    { echo "skipped: the packages cannot be had"; exit 0; }
python3 - "$source/tests/server/serve.py" >tools.jinja <<'END'
import re, sys
print(re.search(r'TOOLS_TEMPLATE = r"""(.*?)"""', open(sys.argv[1], encoding="utf-8").read(), re.S).group(1), end="")
END
rm -rf tools_model
"$build/tests/make_folder" qwen3-0.6b tools_model --layers 1 --divide 8 --vocab 300 --template tools.jinja >/dev/null
texts=${SHARED:-$source/../shared}/models/stories260K/stories260K.gguf
set -- -m tales -m tools=tools_model
[ ! -e "$texts" ] || set -- "$@" -m "stories=$texts"
XDG_CACHE_HOME=$work/cache "$whit" serve --port 0 -t 2 -c 2048 "$@" 2>serve.log &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT INT TERM
for _ in $(seq 300); do
    BASE=$(sed -n 's/.* at \(http:[^ ]*\) .*/\1/p' serve.log)
    [ -z "$BASE" ] || break
    kill -0 $server 2>/dev/null || { cat serve.log; exit 1; }
    sleep 0.1
done
export BASE
[ ! -e "$texts" ] || export TEXTS=stories
REQUESTS=$here/requests
export REQUESTS
status=0
node_modules/.bin/node clients.mjs || status=$?
tokenizers=${SHARED:-$source/../shared}
if [ -d "$tokenizers/tokenizers" ]; then
    WHIT=$whit SHARED=$tokenizers node_modules/.bin/node tokenizers.mjs || status=$?
else
    echo "skipped: no $tokenizers/tokenizers"
fi
kill $server
wait $server || { echo "the server did not end well"; status=1; }
exit $status
