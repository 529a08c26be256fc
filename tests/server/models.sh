# SPDX-License-Identifier: MIT
# Several models and adapters in one server, files that are replaced.
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
rm -rf cache lora ./*.ndf ./*.gguf
tiny one.gguf
tiny two.gguf 2
expect 0 whit convert one.gguf -o one.ndf
python3 "$SOURCE/tests/server/models.py" lora
expect 0 whit convert lora --for one.gguf -o verse.ndf
expect 0 whit convert "$SOURCE/tools/tales/tales.ndf" --codec q2 -o signs.ndf
python3 "$SOURCE/tests/server/models.py" || failed=1
exit $failed
