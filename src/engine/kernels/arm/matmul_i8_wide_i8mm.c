/* SPDX-License-Identifier: MIT
 * Builds the products with int8 activations for the level i8mm. */
#include "kernels/arm/lanes_i8mm.inc"

#include "kernels/arm/pairs_i8mm.inc"
#include "kernels/wide/matmul_i8.inc"
#include "kernels/wide/matmul_i8_super.inc"
#include "kernels/wide/matmul_i8_gemv.inc"
