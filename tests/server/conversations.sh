# SPDX-License-Identifier: MIT
# Conversations and the slots that hold them.
. "$SOURCE/tests/server/lib.sh"
rm -rf slots
python3 "$SOURCE/tests/server/conversations.py" || failed=1
exit $failed
