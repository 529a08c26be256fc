# SPDX-License-Identifier: MIT
# rvv.sh BITS TEST: a test program on an emulated RISC-V processor whose vector registers have BITS bits. qemu before
# version 8 does not say that it has vectors: a library that is loaded first says so instead.
set -u
bits=$1 program=$2
emulator="$EMULATOR -cpu rv64,v=true,vlen=$bits,elen=64,vext_spec=v1.0 -E LD_PRELOAD=$HWCAP_VECTORS"
found=$($emulator "$WHIT" kernels --json 2>err | sed -n 's/^  "isa": "\(.*\)",$/\1/p')
[ "$found" = rvv ] || {
    cat err
    echo "FAILED: whit finds '$found' on a processor with vectors of $bits bits, not rvv"
    exit 1
}
export WHIT_TEST_BRIEF=1
exec $emulator "$program"
