# SPDX-License-Identifier: MIT
# Ctrl-C ends every long verb cleanly; a mapped file that is cut short ends in a line that names it.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
export XDG_STATE_HOME=$PWD/state XDG_CONFIG_HOME=$PWD/config
export no_proxy='*'
rm -rf cache state config project
mkdir project
tiny model.gguf
expect 0 whit convert model.gguf -o model.ndf
for _ in $(seq 400); do printf 'the land and the ocean and then an inn on the land. '; done >some
for _ in $(seq 40); do cat some; done >text # more than a second's work
for _ in 1 2 3 4 5 6 7 8; do cat some; done >parts
seq 0 300 | tr '\n' ' ' >ids
for _ in $(seq 600); do cat ids; done >many
# shellcheck disable=SC2086 # the emulator is a command with arguments
python3 "$SOURCE/tests/cli/signals.py" ${EMULATOR:-} "$WHIT" || failed=1
finish
