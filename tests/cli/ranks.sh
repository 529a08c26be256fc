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
mpirun -np 1 "$BUILD/whit" compress model.gguf --codec q2 --calib text -o small.ndf >out 2>err && complain "compressed by ranks"
grep -q 'compress works on one machine' err || complain "$(cat err)"
exit $failed
