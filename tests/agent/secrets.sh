# SPDX-License-Identifier: MIT
# Keys reach no model by a detour, and one hostile answer or file stops nothing that comes later.
grep -q 'WHIT_HAVE_CURL *1' "$BUILD/generated/whit_config.h" || {
    echo "[ SKIPPED ] a build without libcurl asks no endpoint"
    exit 77
}
. "$SOURCE/tests/cli/lib.sh"
exec python3 "$SOURCE/tests/agent/secrets.py" "$WHIT"
