/* SPDX-License-Identifier: MIT
 * Builds the products of signs with quaternary activations, with VPOPCNTDQ. */
#include "kernels/x86/lanes_avx512.inc"

#include "kernels/wide/tile.inc"

#include "kernels/wide/popcount.inc"
