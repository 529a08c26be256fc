# SPDX-License-Identifier: MIT
# Conversations with a model that has recurrent layers: what is computed again, and what outlives the server.
. "$SOURCE/tests/server/lib.sh"
[ -d "$SHARED/models-tiny/qwen35-hybrid/hf" ] || {
    echo "no $SHARED/models-tiny/qwen35-hybrid: this test needs the shared test data"
    exit 77
}
python3 "$SOURCE/tests/server/hybrid.py" || failed=1
exit $failed
