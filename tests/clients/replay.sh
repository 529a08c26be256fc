# SPDX-License-Identifier: MIT
# Requests of people's clients, replayed (tests/clients/requests).
. "$SOURCE/tests/server/lib.sh"
python3 "$SOURCE/tests/clients/replay.py" || failed=1
exit $failed
