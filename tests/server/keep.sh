# SPDX-License-Identifier: MIT
# Beginnings that outlive a server.
. "$SOURCE/tests/server/lib.sh"
python3 "$SOURCE/tests/server/keep.py" || failed=1
exit $failed
