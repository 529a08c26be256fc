# SPDX-License-Identifier: MIT
# --draft: a draft model from another file changes no text of run and chat; what does not fit is refused with one line.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache XDG_STATE_HOME=$PWD/state
rm -rf cache state draft other ./*.ndf
tiny model.gguf 1 chat
expect 0 whit convert model.gguf -o model.ndf
python3 "$SOURCE/tests/cli/draft.py" draft 64 310 || complain "no draft model"
python3 "$SOURCE/tests/cli/draft.py" other 32 310 || complain "no other draft model"
run="whit run -m model.ndf --raw --no-display-prompt --ignore-eos -p land -n 60 -s 5"

for how in "--temp 0" "--temp 0.9 -t 2" "--temp 0 --kv i8 -ub 3" "--temp 0.9 --kv k4v2"; do
    expect 0 $run $how --spec 0
    cp out plain
    for spec in "" "--spec 1" "--spec 3" "--spec 7"; do
        expect 0 $run $how --draft draft $spec
        cmp -s plain out || complain "--draft draft $spec changes the text of $how"
    done
done
expect 0 $run --temp 0 --draft none
expect 0 whit run -m model.ndf --chat -p land -n 30 --temp 0 --spec 0
cp out plain
expect 0 whit run -m model.ndf --chat -p land -n 30 --temp 0 --draft draft --spec 3
cmp -s plain out || complain "--draft draft changes an answer"

expect 3 $run --draft mtp
one_line 'no block that predicts further tokens'
expect 3 $run --draft other
grep -q 'the draft model reads rows of 32' err || complain "a draft model of another width: $(cat err)"
expect 5 $run --draft absent.gguf
exit $failed
