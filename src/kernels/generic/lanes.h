/* SPDX-License-Identifier: MIT
 * Sixteen virtual lanes: how true reductions are ordered on every ISA. Element i belongs to lane
 * i mod 16; at the end lanes are joined 16 -> 8 -> 4 -> 2 -> 1, lane i with lane i + half. */
#ifndef WHIT_KERNELS_GENERIC_LANES_H
#define WHIT_KERNELS_GENERIC_LANES_H

#define WHIT_LANES 16

static inline float whit_lanes_sum(float lanes[WHIT_LANES])
{
    for (unsigned half = WHIT_LANES / 2; half; half /= 2)
        for (unsigned i = 0; i < half; i++) lanes[i] += lanes[i + half];
    return lanes[0];
}

#endif
