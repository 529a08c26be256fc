# SPDX-License-Identifier: MIT
# Several models and adapters in one server, files that are replaced.
. "$SOURCE/tests/server/lib.sh"
rm -rf cache lora ./*.ndf ./*.gguf
tiny one.gguf
tiny two.gguf 2
expect 0 whit convert one.gguf -o one.ndf
python3 "$SOURCE/tests/server/lora.py" lora
expect 0 whit convert lora --for one.gguf -o verse.ndf
tiny talks.gguf 1 chat
expect 0 whit convert talks.gguf -o talks.ndf
expect 0 whit convert lora --for talks.gguf -o talking.ndf
expect 0 whit convert "$SOURCE/tools/tales/tales.ndf" --codec q2 -o signs.ndf
python3 "$SOURCE/tests/server/models.py" || failed=1
exit $failed
