# SPDX-License-Identifier: MIT
# whit serve, as its clients meet it.
. "$SOURCE/tests/server/lib.sh"
python3 "$SOURCE/tests/server/serve.py" || failed=1
exit $failed
