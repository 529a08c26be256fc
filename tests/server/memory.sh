# SPDX-License-Identifier: MIT
# Memory that requests take.
. "$SOURCE/tests/server/lib.sh"
SANITIZED=${WHIT_NO_SANDBOX:-} python3 "$SOURCE/tests/server/memory.py" || failed=1
exit $failed
