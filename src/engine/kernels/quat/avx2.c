/* SPDX-License-Identifier: MIT
 * Builds the kernels of quaternary vectors in 256-bit words; bits are counted by looking up nibbles. */
#include <immintrin.h>

#include "kernels/quat/declare.h"

#define QUAT(op) whit_quat_##op##_avx2
#define VN       4
#define V        __m256i
#define v_and    _mm256_and_si256
#define v_xor    _mm256_xor_si256
#define v_zero   _mm256_setzero_si256()
#define v_not(a) v_xor(a, _mm256_set1_epi64x(-1))
#define v_minus  _mm256_sub_epi64
#define v_plus   _mm256_add_epi64

static inline __m256i first(uint32_t n)
{
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}

static inline __m256i v_load(const uint64_t *p, uint32_t n)
{
    if (__builtin_expect(n == VN, 1)) return _mm256_loadu_si256((const __m256i *)p);
    return _mm256_maskload_epi64((const long long *)p, first(n));
}

static inline __m256i v_load_lanes(const uint64_t *p, uint32_t n, uint64_t mask)
{
    __m256i at = _mm256_cmpeq_epi64(_mm256_set1_epi64x((long long)n - 1), _mm256_setr_epi64x(0, 1, 2, 3));
    __m256i ones = _mm256_set1_epi64x(-1);
    return v_and(v_load(p, n), _mm256_blendv_epi8(ones, _mm256_set1_epi64x((long long)mask), at));
}

static inline __m256i v_count(__m256i v)
{
    const __m256i nibbles = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1,
                                             2, 2, 3, 2, 3, 3, 4);
    const __m256i low = _mm256_set1_epi8(15);
    __m256i bytes = _mm256_add_epi8(_mm256_shuffle_epi8(nibbles, v_and(v, low)),
                                    _mm256_shuffle_epi8(nibbles, v_and(_mm256_srli_epi64(v, 4), low)));
    return _mm256_sad_epu8(bytes, v_zero);
}

static inline uint64_t v_total(__m256i v)
{
    __m128i pair = _mm_add_epi64(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    return (uint64_t)_mm_cvtsi128_si64(pair) + (uint64_t)_mm_extract_epi64(pair, 1);
}

#include "kernels/quat/counts.inc"
#include "kernels/quat/elements.inc"
