# SPDX-License-Identifier: MIT
# Writes golden files of the format, and golden.json: what a reader must find in them. They are made once, for
# a version of the format, and stay: every later reader must find the same (files.sh). From an empty folder:
#   WHIT=.../build/whit sh .../tests/golden/format/make.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
whit() { "$WHIT" "$@"; }
XDG_CACHE_HOME=$PWD/cache XDG_STATE_HOME=$PWD/cache
export XDG_CACHE_HOME XDG_STATE_HOME
python3 "$here/../../cli/make_text.py" 1500 >text
head -c 20000 text >calibration
whit train --text text --width 64 --layers 1 --heads 2 --ffn 128 --context 128 --vocab 300 -c 32 --sequences 8 --threads 1 \
    --embedding f32 --codec f32 --steps 250 --rate 1e-2 -o original.ndf --seed 1
full="--calib calibration -c 32 --tune-tokens 0"
whit compress original.ndf --codec b1 --pure $full --plane 25 --outliers 0.3 --rank 2 --embedding i4 -o b1.ndf
whit compress original.ndf --codec t $full --outliers 0.3 --embedding i8 -o t.ndf
whit compress original.ndf --codec q2 $full --scales u8 --embedding f16 -o q2.ndf
# columns of outliers in two bytes
whit train --text text --width 32 --layers 1 --heads 2 --ffn 320 --context 64 --vocab 300 -c 32 --sequences 8 --threads 1 \
    --embedding f32 --codec f32 --steps 50 --rate 1e-2 -o wide-original.ndf --seed 1
whit compress wide-original.ndf --codec t $full --outliers 0.3 --embedding i8 -o wide.ndf
# appended to a model: an adapter, a program, a signature
whit compress original.ndf --codec t --method rtn --embedding i8 -o appended.ndf
whit convert appended.ndf --codec t2 -o t2.ndf
whit convert appended.ndf --codec q2 -o ternary-q2.ndf
whit tune -m appended.ndf --text calibration --rank 2 --steps 3 -c 32 -o adapter.ndf
whit convert adapter.ndf --for appended.ndf --append --name tuned
printf 'logits = logits * 2\n' >double.ndl
whit exec double.ndl --binary appended.ndf
whit sign --new-key key
whit sign appended.ndf --key key
mv key.pub appended.pub
# loose chains
for kv in f16 i8 k4v2 k2v2 bitmap; do
    whit run -m t.ndf --session session-$kv.ndf --kv $kv -p "The old man" --ignore-eos --seed 3 -n 75 >/dev/null
done
printf 'fn gcd(a, b) { while b { let t = a %% b; a = b\n b = t }\n return a }\nprint gcd(1071, 462), [1, 2.5] * 2\n' >program.ndl
whit exec program.ndl --binary program.ndf
printf 'tomatoes want sun and water\nthe engine needs oil\nrivers run to the sea\n' | whit memory import memory.mem - >/dev/null
rm -rf cache text calibration key double.ndl program.ndl original.ndf wide-original.ndf
mkdir copies
cp ./*.ndf ./*.mem ./*.pub copies
(cd copies && python3 "$here/golden.py" write ../golden.json)
rm -r copies
