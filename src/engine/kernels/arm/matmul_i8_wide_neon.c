/* SPDX-License-Identifier: MIT
 * Builds the products with int8 activations for the level neon. */
#include "kernels/arm/lanes_neon.inc"

#include "kernels/wide/quads.inc"
#include "kernels/wide/matmul_i8.inc"
#include "kernels/wide/matmul_i8_super.inc"
#include "kernels/wide/matmul_i8_gemv.inc"
