# SPDX-License-Identifier: MIT
# The array language's programs in examples/ print what their first lines say, on every tier.
. "$SOURCE/tests/cli/lib.sh"
count=0
for program in "$SOURCE"/examples/*.ndl; do
    name=$(basename "$program")
    count=$((count + 1))
    sed -n '/^# It prints/,/^$/s/^#     //p' "$program" >wanted
    [ -s wanted ] || complain "$name does not say what it prints"
    grep -q "^#     whit exec examples/$name\$" "$program" || complain "$name does not say how it is run"
    grep -q "examples/$name" "$SOURCE/docs/use/arrays.md" || complain "$name is not in docs/use/arrays.md"
    for tier in 2 1 0; do
        expect 0 env WHIT_TIER=$tier $EMULATOR "$WHIT" exec "$program"
        cmp -s out wanted || complain "$name prints on tier $tier: $(cat out)"
    done
done
[ $count -ge 3 ] || complain "$count programs"
finish
