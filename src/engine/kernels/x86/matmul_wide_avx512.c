/* SPDX-License-Identifier: MIT
 * Builds the matrix products with f32 activations for the level avx512; products with integers have files of their
 * own. */
#include "kernels/x86/lanes_avx512.inc"

#include "kernels/wide/matmul.inc"
