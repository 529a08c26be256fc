/* SPDX-License-Identifier: MIT
 * Builds the products with int8 activations for the level avx2. */
#include "kernels/x86/lanes_avx2.inc"

#include "kernels/wide/quads.inc"
#include "kernels/wide/matmul_i8.inc"
#include "kernels/wide/matmul_i8_super.inc"
#include "kernels/wide/matmul_i8_gemv.inc"
