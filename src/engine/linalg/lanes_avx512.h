/* SPDX-License-Identifier: MIT
 * compile with: -mavx512f */
#ifndef WHIT_LINALG_LANES_AVX512_H
#define WHIT_LINALG_LANES_AVX512_H

#include <immintrin.h>
#include <stddef.h>

/* Returns a mask of the lowest n of sixteen lanes; all of them if n is 16 or more. */
static inline __attribute__((always_inline)) __mmask16 whit_low_lanes(size_t n)
{
    return (__mmask16)(n >= 16 ? 0xFFFF : (1u << n) - 1);
}

#endif
