# SPDX-License-Identifier: MIT
# What clients do by habit.
. "$SOURCE/tests/server/lib.sh"
python3 "$SOURCE/tests/server/habits.py" || failed=1
exit $failed
