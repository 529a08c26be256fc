# SPDX-License-Identifier: MIT
# Random shapes of every family beside a reference in double precision that shares no code with the program.
. "$SOURCE/tests/cli/lib.sh"
# Debian's packages are for Debian's interpreter, which need not be the first one.
python=''
for one in python3 /usr/bin/python3; do
    [ -n "$python" ] || ! $one -c 'import numpy' 2>/dev/null || python=$one
done
[ -n "$python" ] || { echo "skipped: no python3-numpy"; exit 77; }
$python "$SOURCE/tests/golden/shapes/shapes.py" "${FIRST:-1}" "${COUNT:-1}" || failed=1
exit $failed
