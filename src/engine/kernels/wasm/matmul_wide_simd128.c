/* SPDX-License-Identifier: MIT
 * Builds the products with f32 and quaternary activations for the level simd128. */
#include "kernels/wasm/lanes_simd128.inc"

#include "kernels/wide/matmul.inc"
#include "kernels/wide/popcount.inc"
