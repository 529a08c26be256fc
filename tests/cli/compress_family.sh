# SPDX-License-Identifier: MIT
# whit compress on a model whose family's program has 67 matrices in a layer, one of them used twice: each is solved
# once, and a run whose output could not be written goes on with all of them.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache model out.ndf out.ndf.work ./*.ndf && mkdir cache
n_extra=60 j=0
"$BUILD/tests/make_folder" tinyllama-1.1b model --layers 1 --divide 32 --vocab 300 || complain "no folder"
python3 - $n_extra <<'END_OF_PYTHON' || complain "no extra matrices"
import json, random, struct, sys

with open("model/model.safetensors", "rb") as file:
    n, = struct.unpack("<Q", file.read(8))
    head, data = json.loads(file.read(n)), bytearray(file.read())
config = json.load(open("model/config.json"))
config.update(architectures=["CombForCausalLM"], model_type="comb")
json.dump(config, open("model/config.json", "w"))
rng, width = random.Random(3), config["hidden_size"]
for layer in range(config["num_hidden_layers"]):
    for i in range(int(sys.argv[1])):
        values = [rng.uniform(-0.05, 0.05) for _ in range(width * width)]
        head[f"model.layers.{layer}.extra{i}.weight"] = {
            "dtype": "F32", "shape": [width, width], "data_offsets": [len(data), len(data) + 4 * len(values)]}
        data += struct.pack(f"<{len(values)}f", *values)
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
with open("model/model.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data)
END_OF_PYTHON
{
    sed -n '1,/return add(l, "ffn_residual"/p' "$SOURCE/src/engine/model/families/decoder.ndl" | sed '$d'
    echo '    x = add(l, "ffn_residual", x, h)'
    echo '    h = rms_norm(l, "comb_in", x, "ffn_norm", norm_eps)'
    for i in $(seq 0 $((n_extra - 1))) 1; do
        j=$((j + 1))
        echo "    x = add(l, \"comb$j\", x, linear(l, \"tooth$j\", h, \"extra$i\", \"\", n_embd))"
    done
    echo '    return x'
    sed '1,/return add(l, "ffn_residual"/d' "$SOURCE/src/engine/model/families/decoder.ndl"
} >comb.ndl
for i in $(seq 300); do echo "line $i of the calibration text says $((i * i % 977))"; done >text
expect 0 whit convert model --family comb.ndl -o source.ndf
run="compress source.ndf --codec q2 --calib text -c 32 --calib-tokens 256"
expect 0 whit $run --json -o whole.ndf
python3 -c 'import json, sys
names = [m["name"] for m in json.load(open("out"))["matrices"]]
assert len(names) == len(set(names)) == 7 + int(sys.argv[1]), names' $n_extra || complain "matrices: $(cat out)"
# A run that is killed after its first matrices leaves a work file.
${EMULATOR:-} "$WHIT" $run -o out.ndf 2>/dev/null &
while kill -0 $! 2>/dev/null && [ "$(stat -c %s out.ndf.work 2>/dev/null || echo 0)" -le 1000 ]; do sleep 0.01; done
kill -9 $!
wait 2>/dev/null
[ -s out.ndf.work ] || complain "no work file after a run that was killed"
# Another version of the program may solve otherwise: it does not go on from these matrices.
python3 - "$WHIT" "$SOURCE/include/whit/base.h" <<'END_OF_PYTHON' || complain "no program of another version"
import os, re, sys

program, header = open(sys.argv[1], "rb").read(), open(sys.argv[2]).read()
numbers = [re.search(rf"WHIT_VERSION_{part}\s+(\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH")]
version = ".".join(numbers).encode()
other = version[:-1] + (b"1" if version[-1:] != b"1" else b"2")
assert version + b"\0" in program
open("other", "wb").write(program.replace(version + b"\0", other + b"\0"))
os.chmod("other", 0o755)
END_OF_PYTHON
WHIT=$PWD/other expect 2 whit $run --resume -o out.ndf
one_line 'another version of whit'
expect 0 whit $run --resume -o out.ndf
cmp -s whole.ndf out.ndf || complain "another file after --resume"
finish
