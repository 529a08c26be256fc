# SPDX-License-Identifier: MIT
# Random answers over the schemas of schemas.py are valid with each of the shared tokenizers.
set -u
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
failed=0 ran=0
for name in llama-3 llama-2; do
    tokenizer=$SHARED/tokenizers/$name
    [ -d "$tokenizer" ] || continue
    ran=1
    python3 "$SOURCE/tests/grammar/check.py" "$1" "$tokenizer" 2 4096 || failed=1
done
[ $ran = 1 ] || { echo "skipped: no shared tokenizers"; exit 77; }
exit $failed
