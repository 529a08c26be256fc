# SPDX-License-Identifier: MIT
# Writers that are killed leave nothing behind once they have run well: killed.sh [KILLS].
. "$SOURCE/tests/cli/lib.sh"
[ -z "${EMULATOR:-}" ] || { echo "[ SKIPPED ] emulated processes start too slowly to be cut at chosen moments"; exit 77; }
export XDG_CACHE_HOME=$PWD/own
rm -rf ./*
for i in $(seq 60); do
    printf '<s>The fox number %s has a ball. The owl has the ball of the fox.</s>\n' "$i"
done >text
tiny tiny.gguf
printf '{{ messages[0].content }}' >plain.jinja
"$BUILD/tests/make_folder" qwen3-0.6b big --layers 1 --divide 8 --vocab 300 --template plain.jinja || complain "no folder"
expect 0 whit convert tiny.gguf -o model.ndf
shape="--width 32 --layers 2 --heads 2 --ffn 48 --context 64 --vocab 300 -c 24 --sequences 2 --threads 1"
# shellcheck disable=SC2086 # a list of options
{
    expect 0 whit train --text text --specials $shape --codec f32 --steps 20 --seed 3 -o float.ndf
    expect 0 whit compress float.ndf --codec q2 --method rtn -o low.ndf
}
expect 0 whit tune -m float.ndf --text text -c 24 --sequences 2 --threads 1 --steps 2 --rank 2 -o adapter.ndf
expect 0 whit sign --new-key key
seq 1 40 >ids
mkdir code
printf 'int helper(void) { return 1; }\nint main(void) { return helper(); }\n' >code/main.c
[ $failed = 0 ] || finish
python3 "$SOURCE/tests/cli/killed.py" "${1:-2}" || failed=1
finish
