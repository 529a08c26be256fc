# SPDX-License-Identifier: MIT
# Random requests, beside one another and alone.
. "$SOURCE/tests/server/lib.sh"
rm -rf wild random_model ./*.ndf ./*.gguf
tiny one.gguf
expect 0 whit convert one.gguf -o one.ndf
python3 "$SOURCE/tests/server/lora.py" wild 1e9
expect 0 whit convert wild --for one.gguf -o wild.ndf
python3 "$SOURCE/tests/server/mixture.py" || failed=1
exit $failed
