/* SPDX-License-Identifier: MIT
 * Matrix products at the level rvv. */
#include "kernels/riscv/lanes_rvv.inc"

#include "kernels/wide/matmul.inc"
#include "kernels/wide/popcount.inc"
