/* SPDX-License-Identifier: MIT
 * Builds the functions that count bits with VPOPCNTDQ, which the AVX-512 level does not include. */
#include <immintrin.h>

#include "kernels/quat/declare.h"

#define QUAT(op) whit_quat_##op##_avx512
#define VN       8
#define V        __m512i
#define v_xor    _mm512_xor_si512
#define v_not(a) _mm512_ternarylogic_epi64(a, a, a, 0x0F)
#define v_plus   _mm512_add_epi64
#define v_minus  _mm512_sub_epi64
#define v_zero   _mm512_setzero_si512()
#define v_count  _mm512_popcnt_epi64
#define v_total  (uint64_t) _mm512_reduce_add_epi64

static inline __m512i v_load(const uint64_t *p, uint32_t n)
{
    return n == VN ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi64((__mmask8)((1u << n) - 1), p);
}

static inline __m512i v_load_lanes(const uint64_t *p, uint32_t n, uint64_t mask)
{
    __m512i v = v_load(p, n);
    return _mm512_mask_and_epi64(v, (__mmask8)(1u << (n - 1)), v, _mm512_set1_epi64((long long)mask));
}

#include "kernels/quat/counts.inc"
