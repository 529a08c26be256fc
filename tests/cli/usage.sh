# SPDX-License-Identifier: MIT
# Help, mistakes on the command line, exit statuses, output that cannot be written.
. "$SOURCE/tests/cli/lib.sh"

expect 0 whit --version
grep -qE '^whit [0-9]+\.[0-9]+\.[0-9]+$' out || complain "version: $(cat out)"
expect 0 whit help
[ ! -s err ] || complain "help wrote to stderr"
expect 0 whit help --list
cp out verbs
while read -r verb; do
    expect 0 whit "$verb" --help
    grep -q '^SYNOPSIS' out || complain "$verb --help is no manual"
    [ "$(awk 'length > 96' out | wc -l)" = 0 ] || complain "$verb --help has long lines"
    cp out text
    expect 0 whit help "$verb"
    cmp -s out text || complain "help $verb and $verb --help differ"
    expect 0 whit help --man "$verb"
    grep -q "^.TH whit-$verb 1" out || complain "$verb has no man page"
    expect 2 whit "$verb" --no-such-option
    one_line "unknown option --no-such-option" "whit $verb"
done <verbs
for shell in bash zsh fish; do
    expect 0 whit help --completion "$shell"
    while read -r verb; do grep -qw -- "$verb" out || complain "$shell completion lacks $verb"; done <verbs
done
expect 0 whit help --completion fish
for option in 'train.* -l text' 'bench.* -l model' 'compare.* -l file' 'run.* -l session'; do # files, once or again
    grep -q "from $option -r -F " out || complain "fish: no files for $option: $(grep -- "from $option" out)"
done
grep -q 'from tune.* -l matrix -x ' out || complain "fish: files for what is no file"
expect 0 whit help --completion bash
bash -n out || complain "the bash completion is no bash"

expect 2 whit
one_line "whit help"
for number in ' 1' '0x1' 'inf' 'nan' '1e99' '1,5' ''; do # numbers are decimal, whole words
    expect 2 whit run --temp "$number"
    one_line "--temp takes"
done
expect 2 whit run -n ' 3'
one_line "-n"
for bias in ' 5+1' '+5+1' 5+0x1 5+inf2 5+nan 5+ '5+ 1'; do
    expect 2 whit run --logit-bias "$bias"
    one_line "--logit-bias takes ID+BIAS or ID-BIAS"
done
expect 2 whit rum
one_line "rum" "whit help"
expect 2 whit doctor --jsno
one_line "did you mean --json"
expect 2 whit doctor --json=yes
one_line "takes no value"
expect 2 whit doctor extra
one_line "extra"
expect 2 whit help --completion
one_line "needs a value"
expect 2 whit help --completion tcsh
one_line "bash|zsh|fish" "tcsh"

expect 0 whit doctor --json
python3 - out <<'END' || complain "doctor --json"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["cores"] >= 1 and report["memory_bytes"] > 0 and isinstance(report["problems"], list)
END

# WHIT_CPU: empty is no cap, a level of another family or above the machine's is no error.
expect 0 env WHIT_CPU=generic $EMULATOR "$WHIT" kernels --json
grep -q '"isa": "generic"' out || complain "WHIT_CPU=generic is not obeyed"
for level in '' avx2 avx512 amx neon dotprod i8mm; do
    expect 0 env WHIT_CPU=$level $EMULATOR "$WHIT" kernels
done
expect 2 env WHIT_CPU=avx9 $EMULATOR "$WHIT" kernels
one_line "avx9"

# Output that is lost is an error; a reader that goes away ends the program quietly.
if [ -w /dev/full ]; then
    whit help >/dev/full 2>err
    [ $? = 5 ] || complain "a full disk should be status 5"
    one_line "stdout"
fi
rm -f closed
mkfifo closed
exec 3<>closed 4>closed 3>&- # a pipe without a reader
whit help --man 2>err >&4
status=$?
exec 4>&-
[ $status = 5 ] || complain "a closed pipe should be status 5, not $status"
[ ! -s err ] || complain "a closed pipe should be quiet: $(cat err)"
finish
