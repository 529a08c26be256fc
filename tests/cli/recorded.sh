# SPDX-License-Identifier: MIT
# The command that a written model keeps of itself: every option of the verbs that write models is in it, unless the
# option leaves the result as it is.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache ./*.ndf ./*.gguf
python3 "$SOURCE/tests/cli/make_text.py" 200 >text
cp text "a text"
tiny tiny.gguf
cp "$SOURCE/src/engine/model/families/decoder.ndl" .
# shellcheck disable=SC2086 # the emulator is a command with arguments
python3 "$SOURCE/tests/cli/recorded.py" ${EMULATOR:-} "$WHIT" || complain "see above"
finish
