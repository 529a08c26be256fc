# SPDX-License-Identifier: MIT
# Options are named for messages of the library by phrases of theirs (src/cli/output.c): each phrase is in a message.
set -u
failed=0
cd "$SOURCE" || exit 1
joined=$(mktemp)
trap 'rm -f "$joined"' EXIT

# All C files but that one, with the parts of a string joined.
find src -name '*.c' ! -path src/cli/output.c -exec cat {} + | tr '\n' ' ' | sed 's/" *"//g' >"$joined"
phrases=$(sed -n '/hints\[\] = {$/,/^    };$/s/^ *{"\([^"]*\)", ".*/\1/p' src/cli/output.c)
[ "$(printf '%s\n' "$phrases" | wc -l)" -ge 5 ] || {
    echo "the phrases in src/cli/output.c were not found"
    exit 1
}
while IFS= read -r phrase; do
    grep -qF -e "$phrase" "$joined" || {
        echo "src/cli/output.c: no message says '$phrase'"
        failed=1
    }
done <<END
$phrases
END
exit $failed
