# SPDX-License-Identifier: MIT
# Many clients at once, and bad ones.
. "$SOURCE/tests/server/lib.sh"
python3 "$SOURCE/tests/server/soak.py" || failed=1
exit $failed
