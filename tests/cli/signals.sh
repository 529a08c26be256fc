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
# Minutes of work, so that no verb ends, and none finishes a layer, before it is interrupted.
for _ in $(seq 20); do cat some; done >more
for _ in $(seq 20); do cat more; done >text
for _ in $(seq 80); do seq 0 300 | tr '\n' ' '; done >ids
for _ in $(seq 75); do cat ids; done >many
# shellcheck disable=SC2086 # the emulator is a command with arguments
python3 "$SOURCE/tests/cli/signals.py" ${EMULATOR:-} "$WHIT" || failed=1
finish
