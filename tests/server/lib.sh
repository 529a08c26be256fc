# SPDX-License-Identifier: MIT
# What the scripts of this folder share: they skip where no server can run.
. "$SOURCE/tests/cli/lib.sh"
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
whit serve --host nowhere.invalid 2>err && complain "served on a host that is none"
if grep -q libmicrohttpd err; then
    echo "skipped: $(cat err)"
    exit 77
fi
# Sanitizers look at the process's end in ways that the sandbox refuses.
if grep -qE 'WHIT_SANITIZE_[A-Z]*:BOOL=ON' "$BUILD/CMakeCache.txt"; then
    WHIT_NO_SANDBOX=1
    export WHIT_NO_SANDBOX
fi
XDG_CACHE_HOME=$PWD/cache
export XDG_CACHE_HOME
