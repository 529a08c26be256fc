# SPDX-License-Identifier: MIT
# --override-kv: metadata of a GGUF file from the command line, wherever a model is opened or converted.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache folder
tiny model.gguf
entries() { find cache -name '*.ndf' | wc -l; }

# inspected NAME: a number of the configuration in the JSON that inspect wrote.
inspected() {
    python3 -c 'import json, sys; print(json.load(open("out"))["config"][sys.argv[1]])' "$1"
}

# ---- what the family reads, and a conversion of its own for each set of values
expect 0 whit inspect model.gguf --json
[ "$(inspected n_ctx)" = 256 ] || complain "the file's own context"
expect 0 whit inspect model.gguf --json --override-kv llama.context_length=int:128
[ "$(inspected n_ctx)" = 128 ] || complain "an int: $(inspected n_ctx)"
expect 0 whit inspect model.gguf --json --override-kv llama.context_length=int:64,llama.rope.freq_base=float:500.5 \
    --override-kv general.name=str:other
[ "$(inspected n_ctx) $(inspected rope_theta)" = "64 500.5" ] || complain "two in one: $(cat out)"
grep -q '"general.name": "other"' out || complain "a str"
[ "$(entries)" = 3 ] || complain "$(entries) conversions of three"
expect 0 whit inspect model.gguf --json
[ "$(inspected n_ctx)" = 256 ] || complain "the file's own context, after others"
expect 0 whit inspect model.gguf --json --override-kv llama.context_length=int:128
[ "$(entries)" = 3 ] || complain "the same values are converted again"

# ---- tokenizer and arithmetic; convert writes what run computes
printf 'the land' | whit tokenize -m model.gguf --override-kv tokenizer.ggml.add_bos_token=bool:false >out
printf 'the land' | whit tokenize -m model.gguf --no-special >plain
cmp -s out plain || complain "a bool: $(cat out)"
eps='--override-kv llama.attention.layer_norm_rms_epsilon=float:0.5'
expect 0 whit run -m model.gguf -p 'the land' --temp 0 -n 24
cp out before
# shellcheck disable=SC2086 # an option and its value
expect 0 whit run -m model.gguf -p 'the land' --temp 0 -n 24 $eps
cmp -s out before && complain "another epsilon changes nothing"
cp out changed
# shellcheck disable=SC2086
expect 0 whit convert model.gguf -o model.ndf $eps
expect 0 whit run -m model.ndf -p 'the land' --temp 0 -n 24
cmp -s out changed || complain "convert and run differ"

# ---- refused in one line
n=$(entries)
for bad in llama.context_length=64 llama.context_length=double:64 llama.context_length=int:x a general.alignment=int:32; do
    expect 2 whit run -m model.gguf a --override-kv "$bad"
    one_line override-kv
    expect 2 whit convert model.gguf -o none.ndf --override-kv "$bad"
    one_line override-kv
done
expect 2 whit serve -m model.gguf --port 0 --override-kv a=int
one_line KEY=TYPE:VALUE
expect 3 whit run -m model.gguf a --override-kv llama.context_length=float:64
one_line llama.context_length "an integer"
expect 3 whit run -m model.gguf a --override-kv llama.rope.spiral=int:1
one_line llama.rope.spiral
expect 3 whit run -m model.gguf a --override-kv general.architecture=str:mamba
one_line mamba
expect 2 whit run -m model.ndf a --override-kv llama.context_length=int:64
one_line model.ndf "an .ndf" "convert its GGUF file again"
expect 2 whit run -m tales a --override-kv llama.context_length=int:64
one_line "-m FILE"
${EMULATOR:-} "$BUILD/tests/make_folder" qwen3-0.6b folder --layers 1 --divide 8 --vocab 300 || complain "no folder"
expect 2 whit run -m folder a --override-kv llama.context_length=int:64
one_line folder config.json
expect 2 whit compare model.gguf model.ndf --override-kv a=int:1
one_line "whit convert FILE --override-kv"
[ "$(entries)" = "$n" ] || complain "a refused value left a conversion"
[ ! -e none.ndf ] || complain "a refused value left a file"
finish
