/* SPDX-License-Identifier: MIT
 * Builds the products with f32 and quaternary activations for the level neon. */
#include "kernels/arm/lanes_neon.inc"

#include "kernels/wide/matmul.inc"
#include "kernels/wide/popcount.inc"
