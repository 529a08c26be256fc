/* SPDX-License-Identifier: MIT
 * Probes the rate of AVX2 with VPDPBUSD in its VEX form. */
#include <immintrin.h>

#include "kernels/kernels.h"
#include "kernels/x86/dot_vex.h"

enum { TOKENS = 3, OPEN_QUADS = WHIT_PROBE_COLS / 4 };

static inline __m256i open_sums(__m256i sums)
{
    return sums;
}

static inline __m256i close_sums(__m256i sums, __m256i open)
{
    (void)sums;
    return open;
}

#define add_products whit_dot_vex
#include "kernels/x86/probe_avx2.inc"

uint32_t whit_probe_int8_avx2vnni(const uint8_t *w, const int8_t *x, uint32_t n_rounds)
{
    return multiply_rounds(w, x, n_rounds);
}
