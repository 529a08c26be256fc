/* SPDX-License-Identifier: MIT
 * Builds the products with int8 activations for the level dotprod. */
#include "kernels/arm/lanes_dotprod.inc"

#include "kernels/wide/quads.inc"
#include "kernels/wide/matmul_i8.inc"
#include "kernels/wide/matmul_i8_super.inc"
#include "kernels/wide/matmul_i8_gemv.inc"
