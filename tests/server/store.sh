# SPDX-License-Identifier: MIT
# Ollama's pull, copy, create and delete over the store, by a helper process outside the sandbox (--allow-pull).
. "$SOURCE/tests/server/lib.sh"
serve=$1
whit doctor --json 2>/dev/null | grep -q '"hub_library": "libcurl' || { echo "no libcurl: no downloads to test"; exit 77; }
export HF_HOME=$PWD/none no_proxy=127.0.0.1
unset HF_TOKEN HF_TOKEN_PATH
rm -rf cache files
mkdir files
tiny files/tiny-f32.gguf
tiny files/other-q8_0.gguf 2
head -c 60000000 /dev/zero >files/large.gguf # minutes at the hub's speed
rm -f pipe address
mkfifo pipe
# shellcheck disable=SC2086 # the emulator is a command with arguments
$EMULATOR "$serve" owner/tiny-GGUF files 300000 <pipe >address 2>requests &
hub=$!
exec 9>pipe
while [ ! -s address ]; do sleep 0.05; done
HF_ENDPOINT=$(cat address)
export HF_ENDPOINT
python3 "$SOURCE/tests/server/store.py" || failed=1
exec 9>&-
wait "$hub"
exit $failed
