# SPDX-License-Identifier: MIT
# Training by several processes, which mpirun starts: the same file with 1, 2, 3 and 4 of them.
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/cli/mpirun.sh"
rm -f ./*.ndf log? cut alone
tiny model.gguf
for i in $(seq 40); do echo "$i: the land and the time of an ocean, then the end of the day."; done >text
# One file for every number of ranks, whatever they share: 5 sequences of two batches.
tuned="tune -m model.gguf --text text --rate 0.01 --sequences 5 --accumulate 2 -c 16 --rank 4 -t 1 --held-out text"
for n in 1 2 3 4; do
    # shellcheck disable=SC2086 # a list of arguments
    ranks $n $tuned --steps 4 -o tuned$n.ndf --log log$n
    cmp -s tuned1.ndf tuned$n.ndf || complain "tune: $n ranks give another file than one"
    [ "$(grep -c '"run"' log$n) $(grep -c '"step": 4,' log$n)" = "1 1" ] || complain "tune: $n ranks: $(cat log$n)"
done
[ "$(grep -c 'training on 4 ranks' err)" = 1 ] || complain "it is not said once: $(cat err)"
# A run whose ranks are killed, at any moment, goes on with another number of ranks, and ends with the same bytes.
# shellcheck disable=SC2086
{
    ranks 1 $tuned --steps 60 -o whole.ndf
    for kill in $(seq "${KILLS:-1}"); do
        rm -f cut
        mpirun -np $((kill % 3 + 2)) "$BUILD/whit" $tuned --steps 60 --checkpoint cut --checkpoint-seconds 0 -o cut.ndf >out 2>err &
        started=$!
        while [ ! -e cut ] && kill -0 $started 2>/dev/null; do sleep 0.02; done
        [ "$kill" = 1 ] || sleep "0.$((RANDOM % 90 + 10))"
        kill -KILL "$(pgrep -P $started | tail -n 1)" 2>/dev/null || echo "it had ended"
        wait $started 2>/dev/null
        [ -s cut ] || complain "no checkpoint: $(cat err)"
        ranks $((kill % 2 + 1)) $tuned --steps 60 --checkpoint cut --resume -o resumed.ndf
        cmp -s whole.ndf resumed.ndf || complain "kill $kill: a run that was resumed gives another file"
    done
}
# The other verbs.
for verb in "distill --teacher model.gguf --steps 2 --codec t" "train --steps 2 --width 32 --layers 1 --heads 2 --ffn 48 --context 64 --vocab 300"; do
    for n in 1 3; do
        # shellcheck disable=SC2086
        ranks $n $verb --text text --sequences 3 -c 16 -t 1 -o made$n.ndf
    done
    cmp -s made1.ndf made3.ndf || complain "$verb: 3 ranks give another file than one"
done
# A checkpoint of one process alone has other sums, and is refused.
# shellcheck disable=SC2086
whit $tuned --steps 2 --checkpoint alone -o alone.ndf 2>/dev/null
# shellcheck disable=SC2086
mpirun -np 2 "$BUILD/whit" $tuned --steps 2 --checkpoint alone --resume -o refused.ndf >out 2>err && complain "took another run's checkpoint"
# Compression shares the calibration text: windows of which some are held out, corrections and rotations among the
# stages; a run that a killed rank ended resumes with another number of ranks.
for i in $(seq 300); do echo "$i: $((i * i)) times the time of $((i * 7919 % 1000)) and the land of $((i * 31 % 97))."; done >calib
solved="compress model.gguf --codec q2 --calib calib -c 16 --group 32 -t 1"
# shellcheck disable=SC2086
{
    for n in 1 ${KILLS:+2 4} 3; do
        ranks $n $solved -o small$n.ndf
        cmp -s small1.ndf small$n.ndf || complain "compress: $n ranks give another file than one"
    done
    [ "$(grep -c 'bits per weight of the layers' err)" = 1 ] || complain "the result is not told once: $(cat err)"
    rm -f cut.ndf cut.ndf.work
    mpirun -np 3 "$BUILD/whit" $solved -o cut.ndf >out 2>err &
    started=$!
    while kill -0 $started 2>/dev/null && [ "$(stat -c %s cut.ndf.work 2>/dev/null || echo 0)" -le 1000 ]; do sleep 0.02; done
    kill -KILL "$(pgrep -P $started | tail -n 1)" 2>/dev/null || echo "it had ended"
    wait $started 2>/dev/null
    ranks 2 $solved --resume -o cut.ndf
    cmp -s small1.ndf cut.ndf || complain "compress: a run that was resumed gives another file"
}
# Experts: each has its own statistics, of the tokens that all ranks route to it.
cat >mixture.json <<'END'
{"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 64, "vocab_size": 280,
 "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "num_attention_heads": 2, "num_key_value_heads": 1,
 "tie_word_embeddings": true, "head_dim": 32, "intermediate_size": 64, "num_hidden_layers": 1, "hidden_act": "silu",
 "rope_theta": 10000.0, "moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2,
 "norm_topk_prob": true, "decoder_sparse_step": 1}
END
expect 0 whit train --text text --config mixture.json -c 24 --sequences 2 --steps 2 --codec f32 --embedding f32 -t 1 -o mixture.ndf
for n in 1 2 3 4; do
    ranks $n compress mixture.ndf --codec q2 --calib calib -c 16 --group 32 -t 1 -o experts$n.ndf
    cmp -s experts1.ndf experts$n.ndf || complain "compress of experts: $n ranks give another file than one"
done
expect 0 whit inspect --tensors experts1.ndf
grep -q 'expert_gate .* l2 ' out || complain "no experts were compressed: $(cat out)"
mpirun -np 2 "$BUILD/whit" compress model.gguf --codec q2 --method rtn -o plain.ndf >out 2>err && complain "rounded by ranks"
grep -q 'several machines share the calibration text' err || complain "$(cat err)"
exit $failed
