/* SPDX-License-Identifier: MIT
 * Builds the products with f32 and quaternary activations for the level avx2. */
#include "kernels/x86/lanes_avx2.inc"

#include "kernels/wide/matmul.inc"
#include "kernels/wide/popcount.inc"
