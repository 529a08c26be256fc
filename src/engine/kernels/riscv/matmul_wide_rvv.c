/* SPDX-License-Identifier: MIT
 * Builds the products with f32 and quaternary activations for the level rvv. */
#include "kernels/riscv/lanes_rvv.inc"

#include "kernels/wide/matmul.inc"
#include "kernels/wide/popcount.inc"
