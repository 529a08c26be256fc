# SPDX-License-Identifier: MIT
# The JSON Schema test suite, as distributions install it (json-schema-test-suite), or in the folder WHIT_SCHEMA_SUITE:
# no instance that is not valid may be written, and so many schemas are taken.
set -u
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
suite=${WHIT_SCHEMA_SUITE:-/usr/share/json-schema-test-suite}/tests
failed=0 ran=0

# draft FOLDER PERCENT N LEAST [OPTION]: at least PERCENT of its schemas are taken, and of exactly N at least LEAST.
draft() {
    [ -d "$suite/$1" ] || return 0
    ran=1
    python3 "$SOURCE/tests/grammar/suite.py" "$PROGRAM" "$suite/$1" ${5:+"$5"} >"$1.txt" || failed=1
    grep '^UNSOUND' "$1.txt" && failed=1
    python3 - "$@" "$(tail -n 1 "$1.txt")" <<'END' || failed=1
import json, sys
draft, percent, n, least, counts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), json.loads(sys.argv[-1])
print(draft, counts)
enough = 100 * counts["taken"] >= percent * counts["schemas"] and 2 * counts["written"] >= counts["valid"]
if counts["schemas"] == n: enough = enough and counts["taken"] >= least
sys.exit(0 if enough and counts["unsound"] == 0 and counts["schemas"] > 100 else 1)
END
}
PROGRAM=$1
draft draft2020-12 80 461 405
# Schemas are read as of 2020-12: of an older draft, what both demand.
[ $ran = 1 ] || draft draft7 75 0 0 --required
[ $ran = 1 ] || { echo "skipped: no JSON Schema test suite (json-schema-test-suite) is installed"; exit 77; }
exit $failed
