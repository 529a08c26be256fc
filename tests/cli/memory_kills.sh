# SPDX-License-Identifier: MIT
# memory_kills.sh [N]: N kills (10) while lines are added: what was said to be committed is there each time,
# and the store goes on.
. "$SOURCE/tests/cli/lib.sh"
python3 -c 'for i in range(20000): print(f"line {i} of a long text about {i * 7919 % 1000} things")' >many
before=0 killed=0
rm -f kills.mem
for kill in $(seq "${1:-10}"); do
    [ "$before" -gt 100000 ] && rm kills.mem && before=0
    # shellcheck disable=SC2086 # not the function: its shell would be killed, and not the program
    ${EMULATOR:-} "$WHIT" memory import kills.mem many --batch 200 >progress 2>err &
    pid=$!
    # A busy machine may kill every import before its first batch: in every second one it is awaited.
    while [ $((kill % 2)) = 0 ] && kill -0 $pid 2>/dev/null && [ ! -s progress ]; do sleep 0.01; done
    sleep "0.$((kill * 37 % 7))$((kill % 10))"
    kill -9 $pid 2>/dev/null && killed=$((killed + 1))
    wait $pid 2>/dev/null
    said=$(tail -n 1 progress | sed -n 's/.*: \([0-9]*\)}$/\1/p')
    [ -f kills.mem ] || continue
    whit memory stats kills.mem >out 2>err || complain "kill $kill: $(cat err)"
    now=$(sed -n 's/.*"records": \([0-9]*\).*/\1/p' out)
    [ "$now" -ge $((before + ${said:-0})) ] && [ $(((now - before) % 200)) = 0 ] ||
        complain "kill $kill: $now records, $before before and ${said:-0} committed"
    before=$now
done
[ "$before" -gt 0 ] || complain "nothing was committed between the kills"
echo "$killed of ${1:-10} were killed at work; $before records are left"
finish
