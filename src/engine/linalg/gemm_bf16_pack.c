/* SPDX-License-Identifier: MIT
 * Rounds and packs operands of products in bfloat16 (gemm_bf16.h) with AVX-512.
 *
 * A tile is 16 x 16 dwords, each with two neighbours in k; seen so, a tile of A is the transpose of a tile of B. Every
 * operand is therefore loaded along its own rows, and transposed where needed. VCVTNE2PS2BF16 rounds to nearest, ties
 * to even, and turns subnormals into zeros. */
#include "linalg/gemm_bf16.h"

#include "linalg/lanes_avx512.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* Loads n_rows rows as pairs of bfloat16: t[i] gets row i, elements [0, n_k) followed by zeros. */
INLINE void load_rows(const float *from, size_t stride, size_t n_rows, size_t n_k, __m512i t[16])
{
    __mmask16 low = whit_low_lanes(n_k), high = whit_low_lanes(n_k > 16 ? n_k - 16 : 0);
    for (size_t i = 0; i < 16; i++) {
        const float *row = from + i * stride;
        t[i] = i < n_rows
            ? (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(high, row + 16), _mm512_maskz_loadu_ps(low, row))
            : _mm512_setzero_si512();
    }
}

/* Loads pairs of rows: dword j of t[i] gets element j of rows 2 i and 2 i + 1, for j < n_columns. */
INLINE void load_pairs(const float *from, size_t stride, size_t n_columns, size_t n_k, __m512i t[16])
{
    const __m512i weave = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    __mmask16 mask = whit_low_lanes(n_columns);
    for (size_t i = 0; i < 16; i++) {
        const float *row = from + 2 * i * stride;
        __m512 first = _mm512_maskz_loadu_ps(2 * i < n_k ? mask : 0, row);
        __m512 second = _mm512_maskz_loadu_ps(2 * i + 1 < n_k ? mask : 0, row + stride);
        t[i] = _mm512_permutexvar_epi16(weave, (__m512i)_mm512_cvtne2ps_pbh(second, first));
    }
}

INLINE void transpose(__m512i t[16])
{
    __m512i u[16];
    for (int i = 0; i < 16; i += 2) {
        u[i] = _mm512_unpacklo_epi32(t[i], t[i + 1]);
        u[i + 1] = _mm512_unpackhi_epi32(t[i], t[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 2; j++) {
            t[i + 2 * j] = _mm512_unpacklo_epi64(u[i + j], u[i + j + 2]);
            t[i + 2 * j + 1] = _mm512_unpackhi_epi64(u[i + j], u[i + j + 2]);
        }
    for (int i = 0; i < 4; i++) {
        u[i] = _mm512_shuffle_i32x4(t[i], t[i + 4], 0x88);
        u[i + 4] = _mm512_shuffle_i32x4(t[i], t[i + 4], 0xDD);
        u[i + 8] = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0x88);
        u[i + 12] = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0xDD);
    }
    for (int i = 0; i < 8; i++) {
        t[i] = _mm512_shuffle_i32x4(u[i], u[i + 8], 0x88);
        t[i + 8] = _mm512_shuffle_i32x4(u[i], u[i + 8], 0xDD);
    }
}

/* Packs one tile: n rows of A, or n columns of B if for_b, from i on (n <= 16), times n_k of k (n_k <= 32), padded with
 * zeros. along_k: neighbouring k are adjacent in memory. */
INLINE void pack_tile(const whit_gemm_operand *o, bool along_k, bool for_b, size_t i, size_t n, size_t k, size_t n_k,
                      uint8_t *to)
{
    __m512i t[16];
    if (along_k)
        load_rows(o->at + i * o->stride + k, o->stride, n, n_k, t);
    else
        load_pairs(o->at + k * o->stride + i, o->stride, n, n_k, t);
    if (along_k == for_b) transpose(t);
    for (int r = 0; r < 16; r++) _mm512_store_si512(to + 64 * r, t[r]);
}

/* Packs a panel: n rows of A, or n columns of B if for_b, from i on (n <= 32), times [k, k + n_k), as two tiles for
 * every 32 of k. */
INLINE void pack_panel(const whit_gemm_operand *o, bool along_k, bool for_b, size_t i, size_t n, size_t k, size_t n_k,
                       uint8_t *to)
{
    for (size_t at = 0; at < n_k; at += WHIT_GEMM_TILE_K)
        for (size_t half = 0; half < WHIT_GEMM_SIDE; half += 16, to += WHIT_GEMM_TILE_BYTES) {
            size_t rest = n > half ? whit_gemm_min(n - half, 16) : 0,
                   rest_k = whit_gemm_min(n_k - at, WHIT_GEMM_TILE_K);
            if (rest == 16 && rest_k == WHIT_GEMM_TILE_K)
                pack_tile(o, along_k, for_b, i + half, 16, k + at, WHIT_GEMM_TILE_K, to);
            else if (rest)
                pack_tile(o, along_k, for_b, i + half, rest, k + at, rest_k, to);
            else
                memset(to, 0, WHIT_GEMM_TILE_BYTES);
        }
}

void whit_gemm_pack_avx512(const whit_gemm_operand *x, bool along_k, bool for_b, size_t i, size_t n, size_t k,
                           size_t n_k, uint8_t *to)
{
    if (along_k && for_b)
        pack_panel(x, true, true, i, n, k, n_k, to);
    else if (along_k)
        pack_panel(x, true, false, i, n, k, n_k, to);
    else if (for_b)
        pack_panel(x, false, true, i, n, k, n_k, to);
    else
        pack_panel(x, false, false, i, n, k, n_k, to);
}
