# SPDX-License-Identifier: MIT
# Folders as published models have them (configs, tensor names and shapes, random weights) convert
# and chat. Layers and widths are cut, vocabularies have their full size; bench/convert_2b4t does a
# whole one.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache

# The chat formats of the families, in a few words of Jinja; shared data has the published files.
cat >bitnet.jinja <<'END'
{% for m in messages %}{{ m.role | capitalize }}: {{ m.content | trim }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}Assistant: {% endif %}
END
cat >llama3.jinja <<'END'
{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>

{{ m.content | trim }}<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>

{% endif %}
END
cat >chatml.jinja <<'END'
{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}
END
cat >roles.jinja <<'END'
{% for m in messages %}<|{{ m.role }}|>
{{ m.content }}{{ eos_token }}
{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}
END

# folder NAME TEMPLATE PUBLISHED_TEMPLATE VOCABULARY: one model, from its folder to a conversation.
folder() {
    local name=$1 template=$2 vocabulary='' form
    [ -d "$SHARED/tokenizers/$4" ] && vocabulary="--vocabulary $SHARED/tokenizers/$4"
    [ -f "$SHARED/templates/$3" ] && template=$SHARED/templates/$3
    rm -rf model model.ndf
    # shellcheck disable=SC2086 # the emulator and the vocabulary are words
    ${EMULATOR:-} "$BUILD/tests/make_folder" "$name" model --layers 2 --divide 8 --template "$template" $vocabulary || {
        complain "no folder of $name"
        return
    }
    expect 0 whit convert model -o model.ndf
    expect 0 whit verify model.ndf
    for form in model.ndf model; do
        printf 'The land and the sea\n/show tokens\n/save 1.json\nAnd then?\n/show prompt\n/show tokens\n/save 2.json\n/clear\n/load 2.json\n/regen\n/save 3.json\n' |
            whit chat -m $form -c 512 -n 12 --temp 0 --stats -sys 'Be brief.' >out 2>err ||
            complain "$name: $form does not chat: $(cat err)"
        cp out "out-$form"
        cmp -s 2.json 3.json || complain "$name: a loaded conversation goes on otherwise"
        # What the prompts must be, by the verbs for templates and tokens.
        whit template -m $form --jsonl <2.json >/dev/null || complain "$name: template of a conversation"
        # shellcheck disable=SC2086
        python3 "$SOURCE/tests/cli/folders.py" $form ${EMULATOR:-} "$WHIT" || complain "$name: see above"
    done
    cmp -s out-model.ndf out-model || complain "$name: folder and .ndf say different things"
}
folder bitnet-2b4t bitnet.jinja bitnet-b1.58-2B-4T.jinja llama-3
folder falcon3-1b-1.58 roles.jinja none none
folder qwen3-0.6b chatml.jinja Qwen-Qwen3-0.6B.jinja none
folder tinyllama-1.1b roles.jinja zephyr-tinyllama.jinja none
folder llama-3.2-1b llama3.jinja meta-llama-Llama-3.2-3B-Instruct.jinja llama-3
# Matrices with one scale each, and wide enough: a prompt takes the kernels for whole rows where there are some. The same
# logits by pieces, and without any instructions of this processor.
rm -rf model
${EMULATOR:-} "$BUILD/tests/make_folder" bitnet-2b4t model --layers 2 --divide 2 --vocab 2048 --template bitnet.jinja || complain "no wider folder"
seq 3 42 >ids
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do cat ids; done >many # 560: products in two parts
for codec in t2 t5; do
    expect 0 whit convert model --codec $codec -o model.ndf
    expect 0 whit logits -m model.ndf --tokens ids --act i8 -o whole.f32
    expect 0 whit logits -m model.ndf --tokens ids --act i8 -ub 7 -o pieces.f32
    expect 0 env WHIT_CPU=generic $EMULATOR "$WHIT" logits -m model.ndf --tokens ids --act i8 -o generic.f32
    cmp -s whole.f32 pieces.f32 || complain "$codec: a prompt in pieces has other logits"
    cmp -s whole.f32 generic.f32 || complain "$codec: WHIT_CPU=generic has other logits"
    expect 0 whit logits -m model.ndf --tokens many --act i8 -ub 560 -o whole.f32
    expect 0 whit logits -m model.ndf --tokens many --act i8 -ub 100 -o pieces.f32
    cmp -s whole.f32 pieces.f32 || complain "$codec: a long prompt in pieces has other logits"
done
rm -rf model many model.ndf cache whole.f32 pieces.f32 generic.f32
finish
