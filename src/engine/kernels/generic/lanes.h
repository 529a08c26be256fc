/* SPDX-License-Identifier: MIT
 * Defines the order of reductions, which is the same on every ISA: the largest magnitude is found by bit patterns, and
 * sums are computed in sixteen virtual lanes. Element i belongs to lane i mod 16; at the end lanes are merged 16 -> 8
 * -> 4 -> 2 -> 1, lane i with lane i + half. */
#ifndef WHIT_KERNELS_GENERIC_LANES_H
#define WHIT_KERNELS_GENERIC_LANES_H

#include "base/half.h"

#define WHIT_LANES 16

static inline float whit_lanes_sum(float lanes[WHIT_LANES])
{
    for (unsigned half = WHIT_LANES / 2; half; half /= 2)
        for (unsigned i = 0; i < half; i++) lanes[i] += lanes[i + half];
    return lanes[0];
}

/* Returns the bits of the largest magnitude of n numbers. Bits are compared as integers, so infinity is above every
 * number, and NaN above infinity. */
static inline uint32_t whit_amax_bits(const float *x, uint32_t n)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits = whit_f32_bits(x[i]) & 0x7FFFFFFF;
        if (bits > largest) largest = bits;
    }
    return largest;
}

#endif
