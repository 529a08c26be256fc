/* SPDX-License-Identifier: MIT
 * Matrix products with f32 activations at the level avx512; those of integers have files of their
 * own. */
#include "kernels/x86/lanes_avx512.inc"

#include "kernels/wide/matmul.inc"
