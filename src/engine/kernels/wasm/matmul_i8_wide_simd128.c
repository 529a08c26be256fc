/* SPDX-License-Identifier: MIT
 * Builds the products with int8 activations for the level simd128. */
#include "kernels/wasm/lanes_simd128.inc"

#include "kernels/wide/quads.inc"
#include "kernels/wide/matmul_i8.inc"
#include "kernels/wide/matmul_i8_super.inc"
#include "kernels/wide/matmul_i8_gemv.inc"
