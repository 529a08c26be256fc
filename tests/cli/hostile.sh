# SPDX-License-Identifier: MIT
# Damaged and absurd files: one clear line, a status from 1 to 123, soon, in little memory.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache
tiny model.gguf
expect 0 whit convert model.gguf -o model.ndf
# shellcheck disable=SC2086 # the emulator is a command with arguments
python3 "$SOURCE/tests/cli/hostile.py" ${EMULATOR:-} "$WHIT" || failed=1
finish
