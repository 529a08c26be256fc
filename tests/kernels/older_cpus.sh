# SPDX-License-Identifier: MIT
# older_cpus.sh CPU LEVEL TEST: a test program on an emulated older processor, where an instruction
# that it does not have traps. LEVEL is what whit must find there.
set -u
cpu=$1 level=$2 program=$3
skip() {
    echo "skipped: $*"
    exit 77
}
command -v qemu-x86_64 >/dev/null || skip "no qemu-x86_64 (Debian's qemu-user)"
found=$(qemu-x86_64 -cpu "$cpu" "$WHIT" kernels --json 2>err | sed -n 's/^  "isa": "\(.*\)",$/\1/p')
case $found in
"$level") ;;
generic) skip "this qemu does not emulate $level on a $cpu" ;;
*)
    cat err
    echo "FAILED: whit finds '$found' on a $cpu, not $level"
    exit 1
    ;;
esac
export WHIT_TEST_BRIEF=1
exec qemu-x86_64 -cpu "$cpu" "$program"
