# SPDX-License-Identifier: MIT
# Many clients at once, and bad ones.
. "$SOURCE/tests/cli/lib.sh"
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
whit serve --host nowhere.invalid 2>err && complain "served on a host that is none"
if grep -q libmicrohttpd err; then
    echo "skipped: $(cat err)"
    exit 77
fi
if grep -qE 'WHIT_SANITIZE_[A-Z]*:BOOL=ON' "$BUILD/CMakeCache.txt"; then
    WHIT_NO_SANDBOX=1
    export WHIT_NO_SANDBOX
fi
XDG_CACHE_HOME=$PWD/cache
export XDG_CACHE_HOME
python3 "$SOURCE/tests/server/soak.py" || failed=1
exit $failed
