/* SPDX-License-Identifier: MIT
 * Defines fmaf in place of the C library's for WebAssembly, which rounds subnormal results twice. */
#include <math.h>

#include "kernels/wasm/fma.inc"

float fmaf(float x, float y, float z)
{
    return whit_fma_by_odd(x, y, z);
}
