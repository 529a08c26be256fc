# SPDX-License-Identifier: MIT
# The model of threads on machines with many cores (tools/cores.c): times that a reader can calculate.
cores=$1
failed=0
# simulated TOPOLOGY WANTED [NAME=NUMBER...]: the row of numbers.
simulated() {
    local topology=$1 wanted=$2 row
    shift 2
    row=$("$cores" simulate "$topology" "$@" | tail -n 1 | tr '\t' ' ')
    [ "$row" = "$wanted" ] || { echo "FAILED: $topology $*: '$row', not '$wanted'"; failed=1; }
}
# 100 MB at 10 GB/s a core: 10 ms; one thread has no barrier.
simulated "core:1" "1 1 1 10.000 10.000 10.000 0.00 0.00 10.000" bytes=1e8 core=10
# Two threads: half of it, and four transfers of a line a job: 1,000 jobs of 4 x 50 ns.
simulated "package:1 core:2 pu:2" "2 1 1 5.000 5.000 5.000 0.20 0.20 5.200" bytes=1e8 core=10 near=50 jobs=1000
# 16 cores on one memory of 40 GB/s: the memory is the limit.
simulated "core:16" "16 1 1 2.500 2.500 2.500 0.00 0.00 2.500" bytes=1e8 core=10 node=40 near=0.001 jobs=1
# Four nodes in two sockets: all bytes in one memory, a quarter in each with half of each socket's over a link of 20
# GB/s, or each node's own.
simulated "package:2 numanode:2 core:8 pu:2" "32 4 4 2.500 1.250 0.625 0.00 0.00 0.625" \
    bytes=1e8 core=10 node=40 link=20 near=0.001 far=0.001 remote=0.001 jobs=1
# Clusters wait beside each other: 8 caches of 8 cores, 10 ns within and 100 ns between them. One word: 63 workers read
# it, of which 7 are near, and the count goes round with 56 near transfers and 7 far ones, and two more far ones at
# the end. By cluster: 7 workers of 2 near transfers, one far line of the count, 14 far lines of words and two.
simulated "l3:8 core:8" "64 1 8 1.000 1.000 1.000 7.13 1.84 1.002" bytes=64e7 core=10 node=1e4 near=10 far=100 jobs=1
for bad in "" "core:0" "core:x" "core:2000" "package:9 core:999" "core:2 package:2" "socket:2" "core:2,"; do
    "$cores" simulate "$bad" >/dev/null 2>&1 && { echo "FAILED: took '$bad'"; failed=1; }
done
for bad in "near" "near=" "near=0" "near=-1" "near=1x" "nea=1" "=1"; do
    "$cores" simulate "core:2" "$bad" >/dev/null 2>&1 && { echo "FAILED: took '$bad'"; failed=1; }
done
exit $failed
