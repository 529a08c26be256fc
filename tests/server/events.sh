# SPDX-License-Identifier: MIT
# KV events by ZeroMQ: a subscriber knows exactly what a replica holds.
. "$SOURCE/tests/server/lib.sh"
# Debian's packages are for Debian's interpreter, which need not be the first one.
python=''
for one in python3 /usr/bin/python3; do
    [ -n "$python" ] || ! $one -c 'import zmq, msgpack' 2>/dev/null || python=$one
done
[ -n "$python" ] || { echo "skipped: no python3-zmq or python3-msgpack"; exit 77; }
whit serve --host nowhere.invalid --kv-events tcp://nowhere.invalid:1 2>err && complain "served nowhere"
whit serve --port 0 --kv-events nonsense 2>err && complain "nonsense is taken for an endpoint"
if grep -q 'no libzmq\|need libzmq' err; then
    echo "skipped: $(cat err)"
    exit 77
fi
grep -q 'expected tcp://HOST:PORT' err || complain "$(cat err)"
whit serve --port 0 --kv-replay tcp://127.0.0.1:5558 2>err && complain "replays without events"
if [ "${1:-}" = router ]; then
    $python "$SOURCE/tests/server/router.py" || failed=1
    exit $failed
fi
EVENTS=$([ -n "${LONG:-}" ] && echo 10000 || echo 400) $python "$SOURCE/tests/server/events.py" || failed=1
exit $failed
