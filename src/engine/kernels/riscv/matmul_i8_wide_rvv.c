/* SPDX-License-Identifier: MIT
 * Builds the products with int8 activations for the level rvv. */
#include "kernels/riscv/lanes_rvv.inc"

#include "kernels/wide/quads.inc"
#include "kernels/wide/matmul_i8.inc"
#include "kernels/wide/matmul_i8_super.inc"
#include "kernels/wide/matmul_i8_gemv.inc"
