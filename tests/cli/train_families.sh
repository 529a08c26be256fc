# SPDX-License-Identifier: MIT
# whit train, distill and tune on models with recurrent layers and with experts: small ones from a configuration learn a
# text, run, and become low-bit students; a resumed run ends with the same bytes.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
rm -rf cache ./*.ndf ./*.run ./*.jsonl
for i in $(seq 60); do
    printf '<s>The fox number %s has a ball. The owl has the ball of the fox.</s>\n' "$i"
done >text
common='"hidden_size": 32, "vocab_size": 280, "max_position_embeddings": 64, "rms_norm_eps": 1e-6,
    "num_attention_heads": 2, "num_key_value_heads": 1, "tie_word_embeddings": true'
cat >qwen35.json <<END
{"architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text", $common, "head_dim": 16, "hidden_act": "silu",
 "intermediate_size": 48, "num_hidden_layers": 3, "attn_output_gate": true,
 "layer_types": ["linear_attention", "linear_attention", "full_attention"],
 "linear_conv_kernel_dim": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16, "linear_num_key_heads": 1,
 "linear_num_value_heads": 2,
 "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}}
END
cat >lfm2.json <<END
{"architectures": ["Lfm2ForCausalLM"], "model_type": "lfm2", $common, "norm_eps": 1e-6, "intermediate_size": 48,
 "block_auto_adjust_ff_dim": false, "num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "conv"],
 "conv_L_cache": 3, "conv_bias": false, "rope_theta": 10000.0}
END
cat >mixture.json <<END
{"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", $common, "head_dim": 16, "intermediate_size": 48,
 "num_hidden_layers": 2, "hidden_act": "silu", "rope_theta": 10000.0, "moe_intermediate_size": 16, "num_experts": 4,
 "num_experts_per_tok": 2, "norm_topk_prob": true, "decoder_sparse_step": 1}
END
for family in qwen35 lfm2 mixture; do
    run="train --text text --specials --config $family.json -c 24 --sequences 2 --threads 1 --embedding f32 --codec f32"
    run="$run --steps 150 --rate 5e-3 --seed 3"
    [ $family != mixture ] || run="$run --balance 0.01"
    # shellcheck disable=SC2086 # options are lists
    expect 0 whit $run --held-out text --log $family.jsonl --checkpoint $family.run -o $family.ndf
    python3 - $family.jsonl <<'END' || complain "$family: $(tail -n 1 $family.jsonl)"
import json, math, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert lines[-1]["step"] == 150 and lines[-1]["ce"] < 1 < math.log(280) - 4, lines[-1] # as a uniform guess: 5.6
END
    expect 0 whit verify $family.ndf
    expect 0 whit run -m $family.ndf -p 'The fox' -n 8 --temp 0
    grep -q '^The fox' out || complain "$family: the new model does not run: $(cat out)"
    # shellcheck disable=SC2086
    expect 0 whit $run --threads 2 -o twin.ndf
    cmp -s $family.ndf twin.ndf || complain "$family: another number of threads gave another model"
    if [ $family != lfm2 ]; then
        # shellcheck disable=SC2086
        python3 "$SOURCE/tests/cli/cut.py" ${EMULATOR:-} "$WHIT" $run || failed=1
        cmp -s $family.ndf cut.ndf || complain "$family: a run that was cut and resumed ended with other bits"
        rm -f cut.run cut.ndf
    fi
    low="--text text --specials -c 24 --sequences 2 --threads 1"
    # shellcheck disable=SC2086
    expect 0 whit distill --teacher $family.ndf $low --codec q2 --steps 4 -o student.ndf
    expect 0 whit run -m student.ndf -p 'The fox' -n 4 --temp 0
    # shellcheck disable=SC2086
    expect 0 whit tune -m $family.ndf $low --steps 2 -o tuned.ndf
    expect 0 whit compress $family.ndf --codec q2 --group 32 --calib text -c 32 -o small.ndf
    expect 0 whit compare $family.ndf small.ndf -f text -c 32 --chunks 4 --json
done
# ---- experts within a budget: the same text, and a line that says what was read
expect 0 whit run -m mixture.ndf -p 'The fox' -n 12 --temp 0
mv out without
expect 0 whit run -m mixture.ndf -p 'The fox' -n 12 --temp 0 --experts-memory 1
cmp -s out without || complain "--experts-memory changed a text"
grep -qE '^whit: experts: [0-9.]+ MB read in [1-9][0-9]* pieces' err || complain "no line about experts: $(cat err)"
expect 3 whit run -m lfm2.ndf -p 'The fox' -n 1 --experts-memory 1
one_line 'has no experts'
expect 2 whit train --text text --config mixture.json --width 64 --steps 1 -o none.ndf
one_line '--width, --layers'
finish
