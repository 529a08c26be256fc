/* SPDX-License-Identifier: MIT
 * Matrix products at the level neon. */
#include "kernels/arm/lanes_neon.inc"

#include "kernels/wide/matmul.inc"
#include "kernels/wide/popcount.inc"
