# SPDX-License-Identifier: MIT
# Forty-five tasks, against scripted endpoints and whit serve.
grep -q 'WHIT_HAVE_CURL *1' "$BUILD/generated/whit_config.h" || {
    echo "[ SKIPPED ] a build without libcurl asks no endpoint"
    exit 77
}
grep -q 'WHIT_HAVE_MICROHTTPD *1' "$BUILD/generated/whit_config.h" || {
    echo "[ SKIPPED ] a build without libmicrohttpd serves nothing"
    exit 77
}
# Sanitizers look at the process's end in ways that the server's sandbox refuses.
if grep -qE 'WHIT_SANITIZE_[A-Z]*:BOOL=ON' "$BUILD/CMakeCache.txt"; then
    WHIT_NO_SANDBOX=1
    export WHIT_NO_SANDBOX
fi
exec python3 "$SOURCE/tests/agent/tasks.py" "$WHIT"
