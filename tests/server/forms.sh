# SPDX-License-Identifier: MIT
# Requests of odd forms, and what is right for each.
. "$SOURCE/tests/server/lib.sh"
rm -rf ./*_model ./*.gguf
tiny tiny.gguf
python3 "$SOURCE/tests/server/forms.py" || failed=1
exit $failed
