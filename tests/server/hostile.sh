# SPDX-License-Identifier: MIT
# Grammars that nothing can follow.
. "$SOURCE/tests/server/lib.sh"
SANITIZED=${WHIT_NO_SANDBOX:-} python3 "$SOURCE/tests/server/hostile.py" || failed=1
exit $failed
