/* SPDX-License-Identifier: MIT
 * Matrix products at the level simd128. */
#include "kernels/wasm/lanes_simd128.inc"

#include "kernels/wide/matmul.inc"
#include "kernels/wide/popcount.inc"
