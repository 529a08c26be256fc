/* SPDX-License-Identifier: MIT
 * Matrix products at the level avx2. */
#include "kernels/x86/lanes_avx2.inc"

#include "kernels/wide/matmul.inc"
#include "kernels/wide/popcount.inc"
