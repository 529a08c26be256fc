# SPDX-License-Identifier: MIT
# The package for JavaScript by emscripten: the module's bits beside the program's in Node, the package in equal bytes,
# the demo page in a browser. WHIT_WASM names a build that is there already.
set -u
for tool in emcc node; do
    command -v $tool >/dev/null || {
        echo "[ SKIPPED ] no $tool"
        exit 77
    }
done
rm -rf place page first second
mkdir page first second
built=${WHIT_WASM:-build}
[ -n "${WHIT_WASM:-}" ] || "$SOURCE/tools/cross/wasm.sh" build || exit 1

# Fused multiply-adds, which WebAssembly does not have.
NODE_PATH=/usr/share/nodejs
export NODE_PATH
include="-I$SOURCE/include -I$SOURCE/src -I$SOURCE/src/engine -I$SOURCE/src/files"
cc -O2 -ffp-contract=off $include "$SOURCE/tests/js/fma.c" -o fma -lm || exit 1
emcc -O2 -ffp-contract=off -msimd128 -D_GNU_SOURCE -include "$SOURCE/src/base/wasm/posix.h" $include \
    -I"$built/libraries/include" -sSINGLE_FILE "$SOURCE/tests/js/fma.c" -o fma.js 2>/dev/null || exit 1
[ "$(./fma)" = "$(node fma.js)" ] || {
    echo "FAILED: fused multiply-adds differ: $(./fma), $(node fma.js)"
    exit 1
}

make="$SOURCE/bindings/js/make_npm.py $built"
$make --package place || exit 1
one=$($make -o first) && two=$($make -o second) || exit 1
cmp "$one" "$two" || exit 1

# The program's logits of these tokens, with each kind of cache, and a text that is sampled.
echo "1 5 9 300 12 700 44" >ids.txt
for kv in f16 f32 i8; do
    for act in f32 i8; do
        $WHIT logits --tokens ids.txt --kv $kv --act $act -t 1 -o logits-$kv-$act.f32 2>/dev/null || exit 1
    done
done
$WHIT run --raw --no-display-prompt -p "Once upon a time" -n 120 --seed 7 -t 1 2>/dev/null >sampled.txt || exit 1
node "$SOURCE/tests/js/wasm.mjs" "$PWD/place/package" "$PWD" "$SOURCE/docs/use/javascript.md" || exit 1

$make --page page/whit.html || exit 1
python3 "$SOURCE/tests/js/page.py" "$PWD/page" || [ $? = 77 ]
