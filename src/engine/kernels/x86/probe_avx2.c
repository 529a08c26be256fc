/* SPDX-License-Identifier: MIT
 * Probes the rates of AVX2. Products are summed in 16 bits, which 32 quads of codes up to 3 cannot exceed. */
#include <immintrin.h>

#include "kernels/kernels.h"
#include "kernels/x86/pairs_avx2.h"

enum { TOKENS = 2, OPEN_QUADS = 32 };

static inline __m256i open_sums(__m256i sums)
{
    (void)sums;
    return _mm256_setzero_si256();
}

static inline __m256i close_sums(__m256i sums, __m256i open)
{
    return _mm256_add_epi32(sums, _mm256_madd_epi16(open, _mm256_set1_epi16(1)));
}

#define add_products whit_add_pairs
#include "kernels/x86/probe_avx2.inc"

uint64_t whit_probe_read_avx2(const void *memory, size_t size_bytes)
{
    const __m256i *at = memory, *end = at + size_bytes / sizeof *at;
    __m256i sums[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (; at < end; at += 2)
        for (int i = 0; i < 2; i++) sums[i] = _mm256_add_epi64(sums[i], _mm256_load_si256(at + i));
    sums[0] = _mm256_add_epi64(sums[0], sums[1]);
    __m128i half = _mm_add_epi64(_mm256_castsi256_si128(sums[0]), _mm256_extracti128_si256(sums[0], 1));
    return (uint64_t)_mm_cvtsi128_si64(half) + (uint64_t)_mm_extract_epi64(half, 1);
}

uint32_t whit_probe_int8_avx2(const uint8_t *w, const int8_t *x, uint32_t n_rounds)
{
    return multiply_rounds(w, x, n_rounds);
}
