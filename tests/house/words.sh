# SPDX-License-Identifier: MIT
# Words that were replaced by the field's do not come back (words.txt has them), an exception that nothing
# needs any more is taken out of the list, and the list itself finds what it is there to find.
set -u
failed=0
list=$SOURCE/tests/house/words.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$SOURCE" || exit 1

# What would be complained about, without exceptions: FILE:LINE:TEXT, and the word to use behind a tab.
find_words() {
    while IFS='|' read -r line; do
        case $line in '' | '#'*) continue ;; esac
        # A pattern has '|' without blanks around it, columns are parted by " | ".
        pattern=${line%% | *} rest=${line#* | }
        folders=${rest%% | *} word=${rest#* | }
        [ "$word" != "$rest" ] || continue # an exception
        # shellcheck disable=SC2086 # folders are a list
        grep -rnIE --exclude-dir=corpus -e "$pattern" $folders | grep -v '^tests/house/words' | sed "s#\$#\t$word#"
    done <"$list"
}
find_words >"$work/all"

grep -vE '^(#|$)' "$list" | while IFS= read -r line; do
    [ "${line#* | * | }" = "$line" ] && printf '%s\n' "$line"
done >"$work/exceptions"

cp "$work/all" "$work/left"
while IFS= read -r line; do
    path=${line%% | *} text=${line#* | }
    if ! grep -F "$path" "$work/all" | grep -qF -e "$text"; then
        echo "tests/house/words.txt: the exception '$line' is no longer needed"
        failed=1
    fi
    awk -v path="$path" -v text="$text" 'index($0, path) != 1 || !index($0, text)' "$work/left" >"$work/next"
    mv "$work/next" "$work/left"
done <"$work/exceptions"
if [ -s "$work/left" ]; then
    awk -F '\t' '{ print $1 "\n    the field says: " $2 }' "$work/left"
    failed=1
fi

# Each microkernel of a matrix product states its microtile, and what else holds of it, in its first comment.
n=0
while read -r file; do
    n=$((n + 1))
    head=$(sed '/\*\//q' "$file")
    for word in 'MR =' 'NR =' KC; do
        case $head in *"$word"*) ;; *)
            echo "$file: its head does not state $word"
            failed=1
            ;;
        esac
    done
done < <(grep -rlE '^(    )?const whit_matmul_kernel .*= \{' src/engine/kernels)
[ "$n" -ge 10 ] || {
    echo "only $n files of matrix kernels were found"
    failed=1
}

# The patterns find what they were written for.
mkdir -p "$work/tree/docs/dev/perf" "$work/tree/src/engine/kernels" "$work/tree/src/engine/model" "$work/tree/src/cli" "$work/tree/src/lab/train" "$work/tree/docs" \
    "$work/tree/include" "$work/tree/tests/cli" "$work/tree/tests/unit" "$work/tree/tests/kernels" "$work/tree/src/engine/kv" \
    "$work/tree/bench" "$work/tree/tools"
touch "$work/tree/README.md" "$work/tree/docs/dev/ARCHITECTURE.md" "$work/tree/docs/dev/kernels.md" "$work/tree/docs/dev/numerics.md" "$work/tree/src/cli/train.c" \
    "$work/tree/src/cli/distill.c"
cat >"$work/tree/src/engine/kernels/a.c" <<'END'
n_asked
a line is asked for twice
the first cache
vf_store_past
threads meet
kv_makes_f16
softened
partials joined
attend divided
q_turned
many int8 columns
is_body
--ends
a fresh one
a said exit status
nothing says
quantize
END
printf '%s\n' '--held FILE' >"$work/tree/src/cli/a.c"
echo 'guide' >"$work/tree/src/lab/train/a.c"
found=$(cd "$work/tree" && find_words | wc -l)
[ "$found" = 19 ] || {
    echo "of 19 words in a tree of their own $found were found"
    (cd "$work/tree" && find_words)
    failed=1
}
exit $failed
