# SPDX-License-Identifier: MIT
# Requests that must not harm one another.
. "$SOURCE/tests/server/lib.sh"
rm -rf lora wild ./*.ndf ./*.gguf
tiny one.gguf
expect 0 whit convert one.gguf -o one.ndf
python3 "$SOURCE/tests/server/lora.py" wild 1e9
expect 0 whit convert wild --for one.gguf -o wild.ndf
python3 "$SOURCE/tests/server/apart.py" || failed=1
exit $failed
