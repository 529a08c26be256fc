# SPDX-License-Identifier: MIT
# --family FILE: an architecture that nothing here knows runs by a text alone, its program travels in
# the .ndf, and a mistake is shown at its place.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache model && mkdir cache
python3 "$SOURCE/tests/cli/family.py" make model || exit 1
echo 3 14 15 9 2 6 5 35 8 9 7 9 32 38 4 6 >ids

# Attention and feed-forward read the same norm and are added together; half of every head turns.
cat >sideways.ndl <<'END'
fn block(l, x) {
    let h = rms_norm(l, "in", x, "attn_norm", norm_eps)
    let q = rope(l, "q_rotated", linear(l, "q_proj", h, "q", "", n_heads * head_dim), head_dim, rope_dim)
    let k = rope(l, "k_rotated", linear(l, "k_proj", h, "k", "", n_kv_heads * head_dim), head_dim, rope_dim)
    let v = linear(l, "v_proj", h, "v", "", n_kv_heads * head_dim)
    let a = attention(l, "attended", q, k, v, head_dim, window, 1.0 / sqrt(head_dim))
    a = linear(l, "attn_out", a, "self_attn.dense", "", n_embd)
    let f = gated(l, "gated", gate, linear(l, "g", h, "gate", "", n_ff), linear(l, "u", h, "up", "", n_ff))
    f = linear(l, "ffn_out", f, "down", "", n_embd)
    return add(l, "residual", add(l, "attn_residual", x, a), f)
}
let x = embed("embedded", "embed", n_vocab)
for l in 0..n_layers { x = block(l, x) }
x = rms_norm(-1, "final", selected("last", x), "final_norm", norm_eps)
output(x, linear(-1, "logits", x, "head", "", n_vocab))
END

expect 3 whit logits -m model --tokens ids -o nothing.f32
one_line "Sideways"
expect 0 whit logits -m model --family sideways.ndl --tokens ids -o by-file.f32 --kv f32
python3 "$SOURCE/tests/cli/family.py" check model ids by-file.f32 || complain "the logits are not the model's"
sed 's/"in"/"inward"/' sideways.ndl >other.ndl
cmp -s sideways.ndl other.ndl && complain "the other program is the same"
expect 0 whit logits -m model --family other.ndl --tokens ids -o other.f32 --kv f32
[ "$(ls cache/whit/*.ndf | wc -l)" = 2 ] || complain "another program is another conversion: $(ls cache/whit)"
cmp -s by-file.f32 other.f32 || complain "names of values changed the logits"

# In the .ndf, and a part of its identity.
expect 0 whit convert model --family sideways.ndl -o inside.ndf
expect 0 whit convert model --family other.ndl -o inside-other.ndf
expect 0 whit logits -m inside.ndf --tokens ids -o inside.f32 --kv f32
cmp -s by-file.f32 inside.f32 || complain "the program in the file gives other bits"
whit inspect inside.ndf --json >a.json
whit inspect inside-other.ndf --json >b.json
python3 -c 'import json; a, b = (json.load(open(n)) for n in ("a.json", "b.json")); assert a["identity"] != b["identity"]' ||
    complain "the program is no part of the identity"
expect 0 whit convert inside.ndf -o again.ndf
expect 0 whit logits -m again.ndf --tokens ids -o again.f32 --kv f32
cmp -s by-file.f32 again.f32 || complain "the program was lost in a conversion"
expect 0 whit logits -m inside-other.ndf --family sideways.ndl --tokens ids -o over.f32 --kv f32
cmp -s by-file.f32 over.f32 || complain "--family does not replace the program in the file"
expect 3 whit export inside.ndf -o out.gguf
one_line "GGUF cannot store the program"

# Mistakes: at their place, whether the text or the graph finds them.
mistake() { # EXPRESSION LINE COLUMN MESSAGE
    sed "$1" sideways.ndl >wrong.ndl
    whit logits -m model --family wrong.ndl --tokens ids -o nothing.f32 >out 2>err && complain "$1: accepted"
    grep -qF "wrong.ndl:$2:$3: " err && grep -qF "$4" err || complain "$1: $(cat err)"
    [ "$(sed -n 3p err | wc -c)" = $((4 + $3 + 1)) ] || complain "$1: no caret: $(cat err)"
}
mistake '3s/rope_dim)$/rope_dims)/' 3 97 "'rope_dims' is not defined"
mistake '6s/head_dim, window/window/' 6 13 "'attention' takes"
mistake '8s/gate, linear/9, linear/' 8 13 "gate 9 is not known"
mistake '7s/self_attn.dense/o/' 7 9 "tensor 'layers.0.o' is missing"
mistake '3s/, rope_dim)/, 80)/' 3 13 "cannot rotate 80"
mistake '10s/add(l, "residual"/x + add(l, "residual"/' 10 12 "an operator needs a value"
mistake '12s/"embed", n/"final_norm", n/' 12 9 "tensor 'final_norm' is 1 x 32"
mistake '12s/$/ @/' 12 45 "'@' has no meaning here"
sed 's/selected("last", x)/x/' sideways.ndl >wrong.ndl
expect 3 whit logits -m model --family wrong.ndl --tokens ids -o nothing.f32
one_line "selected rows"
sed '13s/n_layers/n_layers - 1/' sideways.ndl >wrong.ndl
expect 3 whit logits -m model --family wrong.ndl --tokens ids -o nothing.f32
one_line "layer 1 has no attention"
printf 'while 1 { }\n' >endless.ndl
whit logits -m model --family endless.ndl --tokens ids -o nothing.f32 >out 2>err && complain "an endless program ends"
grep -q 'endless.ndl:1:1: stopped after' err || complain "endless: $(cat err)"
expect 5 whit logits -m model --family nowhere.ndl --tokens ids -o nothing.f32

# The server reads a program from its frame, too.
if grep -q 'WHIT_HAVE_MICROHTTPD *1' "$BUILD/generated/whit_config.h"; then
    tiny tiny.gguf 1 chat
    cp "$SOURCE/src/engine/model/families/decoder.ndl" .
    expect 0 whit exec decoder.ndl --binary decoder.ndf
    rm -f socket
    # shellcheck disable=SC2086
    ${EMULATOR:-} "$WHIT" serve -m tiny.gguf --family decoder.ndf --socket socket --no-sandbox >out 2>err &
    server=$!
    for _ in $(seq 300); do [ -S socket ] || ! kill -0 $server 2>/dev/null && break; sleep 0.1; done
    [ -S socket ] || complain "the server does not start: $(cat err)"
    kill -TERM $server 2>/dev/null
    wait $server || complain "the server ended with $?: $(cat err)"
fi
finish
