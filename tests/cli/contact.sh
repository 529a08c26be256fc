# SPDX-License-Identifier: MIT
# First contact: a model is given in every way that people try, and what fails says what to type.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache HOME=$PWD/home
rm -rf cache home "with space.gguf" sub
mkdir -p home sub
tiny model.gguf
cp model.gguf "with space.gguf"
cp model.gguf home/mine.gguf
greedy="--temp 0 -n 8 -c 64"

# ---- run MODEL [PROMPT], run with options on either side, and a path of any look
# shellcheck disable=SC2086 # options are a list
{
    expect 0 whit run -m model.gguf -p 'the land' $greedy
    cp out text
    expect 0 whit run model.gguf 'the land' $greedy
    cmp -s out text || complain "run MODEL PROMPT: $(cat out)"
    expect 0 whit run model.gguf the land $greedy
    cmp -s out text || complain "words of a prompt: $(cat out)"
    expect 0 whit run $greedy model.gguf -p 'the land'
    cmp -s out text || complain "run MODEL -p: $(cat out)"
    expect 0 whit run -m model.gguf 'the land' $greedy
    cmp -s out text || complain "run -m MODEL PROMPT: $(cat out)"
    expect 0 whit run "with space.gguf" 'the land' $greedy
    cmp -s out text || complain "a file's name with a space: $(cat out)"
    expect 0 whit run --model=~/mine.gguf 'the land' $greedy
    cmp -s out text || complain "a ~ that the shell leaves: $(cat out)"
    printf 'the land' | whit run model.gguf $greedy >out 2>err
    cmp -s out text || complain "run MODEL with a prompt on stdin: $(cat out)"
}
expect 0 whit run tales -s 1 -n 12
cp out text
expect 0 whit run -m tales -s 1 -n 12
cmp -s out text || complain "-m tales is another model than tales"
expect 0 whit run -s 1 -n 12
cmp -s out text || complain "tales is not the built-in model"
expect 0 whit run "Once upon a time" -s 1 -n 12
cmp -s out text || complain "a text alone is a prompt for tales"
expect 2 whit run model.gguf 'the land' -p 'the ocean'
one_line "unexpected argument 'the land'"
printf 'the land\n' >lines
for verb in "tokenize" "perplexity -f lines -c 8" "logits --tokens ids -o l.f32" "template"; do
    printf '1 300' >ids
    # shellcheck disable=SC2086
    whit ${verb%% *} model.gguf $(case $verb in *' '*) echo "${verb#* }" ;; esac) >out 2>err </dev/null
    grep -q "unexpected argument" err && complain "$verb MODEL: $(cat err)"
done
expect 5 whit tokenize land
one_line "(a text: whit tokenize MODEL land)"
expect 0 whit tokenize -m model.gguf "the land"
cp out text
for given in "model.gguf -p" "model.gguf"; do
    # shellcheck disable=SC2086
    expect 0 whit tokenize $given "the land"
    cmp -s out text || complain "tokenize $given: $(cat out)"
done
printf 'the land' | whit tokenize -m model.gguf >out
cmp -s out text || complain "the same text on stdin: $(cat out)"
expect 2 whit tokenize model.gguf "the land" other.gguf
one_line "unexpected argument 'other.gguf'"
expect 2 whit tokenize model.gguf "the land" -f lines
one_line "a text cannot be combined with -f or --jsonl"
expect 0 whit perplexity -m model.gguf -f lines -c 8 --json
cp out text
expect 0 whit perplexity model.gguf lines -c 8 --json
cmp -s out text || complain "perplexity MODEL TEXT: $(cat out)"
expect 2 whit distill model.gguf
grep -q "unexpected argument" err && complain "distill TEACHER: $(cat err)"
expect 2 whit distill model.gguf other.gguf
one_line "unexpected argument 'other.gguf'"

# ---- what names nothing
for path in absent.gguf ./absent sub/absent sub/absent.gguf /nowhere/model.ndf ~/absent.ndf absent.safetensors; do
    expect 5 whit run "$path" x
    one_line "No such file or directory"
done
expect 5 whit chat Hello
one_line "no pulled model has this name"
expect 2 whit
one_line "no command given; try 'whit run' or 'whit help'"
expect 2 whit model.gguf
one_line "'whit run model.gguf' or 'whit chat model.gguf'"
expect 2 whit -m "with space.gguf" -p 'it'
one_line "whit run -m 'with space.gguf' -p it"

# ---- addresses
for address in https://huggingface.co/nobody/nothing huggingface.co/nobody/nothing/tree/main hf.co/nobody/nothing \
    https://huggingface.co/nobody/nothing/blob/main/a%20b.gguf?download=true; do
    expect 5 whit run "$address" x
    one_line "whit pull"
done
expect 2 whit pull https://example.com/nobody/nothing
one_line "not the address of a model on the hub"
expect 2 whit pull https://huggingface.co/nobody/nothing/discussions
one_line "not the page of a model"

# ---- a run at a terminal without a prompt says what to type
has_terminals && { PYTHONPATH=$SOURCE/tests/cli python3 - $EMULATOR "$WHIT" <<'END' || complain "a run without a prompt at a terminal"; }
import sys
import at_terminal
status, text = at_terminal.run(sys.argv[1:] + ["run", "model.gguf"])
assert status == 2, text
assert b"whit chat MODEL" in text, text
END
expect 2 whit verify tales
one_line "built into the program"
expect 5 whit verify ./absent.ndf
one_line "No such file or directory"

# ---- serve: every model has a name of its own, and a queue has room
if grep -q 'WHIT_HAVE_MICROHTTPD *1' "$BUILD/generated/whit_config.h"; then
    expect 2 timeout 600 $EMULATOR "$WHIT" serve --port 0 -m model.gguf -m big=model.gguf --alias big
    grep -q "another model is called big" err || complain "serve --alias: $(cat err)"
fi
expect 2 timeout 600 $EMULATOR "$WHIT" serve --port 0 --queue 0
one_line "queue" "from 1 to 65536"
finish
