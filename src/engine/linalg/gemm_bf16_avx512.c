/* SPDX-License-Identifier: MIT
 * Computes products in bfloat16 by VDPBF16PS. Eight rows times 32 columns of C are sixteen registers; each of 16 pairs
 * of k in a tile takes two loads of B and eight broadcasts of A. */
#include "linalg/gemm_bf16.h"

#include "linalg/lanes_avx512.h"

#include <string.h>

enum { ROWS = 8, PAIRS = 16, PAIR_BYTES = 64 };

/* Returns a vector with the pair of bfloat16 at `at` in every lane. */
static inline __m512bh broadcast_pair(const uint8_t *at)
{
    int pair;
    memcpy(&pair, at, sizeof pair);
    return (__m512bh)_mm512_set1_epi32(pair);
}

/* Multiplies eight rows of a panel of A by 32 columns of B. Stores only the first n_rows rows, and the columns in the
 * masks `low` (0 to 15) and `high` (16 to 31). */
static inline __attribute__((always_inline)) void multiply_block(const uint8_t *a, const uint8_t *b, size_t k_tiles,
                                                                 size_t n_rows, __mmask16 low, __mmask16 high, bool add,
                                                                 float *c, size_t ldc)
{
    __m512 sums[ROWS][2];
#pragma GCC unroll 8
    for (size_t i = 0; i < ROWS; i++) {
        __mmask16 rows = add && i < n_rows ? 0xFFFF : 0;
        sums[i][0] = _mm512_maskz_loadu_ps(rows & low, c + i * ldc);
        sums[i][1] = _mm512_maskz_loadu_ps(rows & high, c + i * ldc + 16);
    }
    for (size_t t = 0; t < k_tiles; t++, a += 2 * WHIT_GEMM_TILE_BYTES, b += 2 * WHIT_GEMM_TILE_BYTES)
        for (size_t pair = 0; pair < PAIRS; pair++) {
            const uint8_t *at = b + pair * PAIR_BYTES;
            __m512bh left = (__m512bh)_mm512_load_si512(at);
            __m512bh right = (__m512bh)_mm512_load_si512(at + WHIT_GEMM_TILE_BYTES);
#pragma GCC unroll 8
            for (size_t i = 0; i < ROWS; i++) {
                __m512bh row = broadcast_pair(a + i * PAIR_BYTES + pair * 4);
                sums[i][0] = _mm512_dpbf16_ps(sums[i][0], row, left);
                sums[i][1] = _mm512_dpbf16_ps(sums[i][1], row, right);
            }
        }
#pragma GCC unroll 8
    for (size_t i = 0; i < ROWS; i++) {
        if (i >= n_rows) break;
        _mm512_mask_storeu_ps(c + i * ldc, low, sums[i][0]);
        _mm512_mask_storeu_ps(c + i * ldc + 16, high, sums[i][1]);
    }
}

static void multiply_panels(const uint8_t *a, const uint8_t *b, size_t n_rows, size_t n, size_t k_tiles, bool add,
                            float *c, size_t ldc)
{
    for (size_t j = 0; j < n; j += WHIT_GEMM_SIDE, b += k_tiles * 2 * WHIT_GEMM_TILE_BYTES) {
        __mmask16 low = whit_low_lanes(n - j), high = whit_low_lanes(n - j > 16 ? n - j - 16 : 0);
        for (size_t i = 0; i < n_rows; i += ROWS) {
            const uint8_t *rows = a + i / 16 * WHIT_GEMM_TILE_BYTES + i % 16 * PAIR_BYTES;
            multiply_block(rows, b, k_tiles, n_rows - i, low, high, add, c + i * ldc + j, ldc);
        }
    }
}

const whit_gemm_kernel whit_gemm_pairs_avx512 = {"gemm_bf16_pairs_avx512", WHIT_ISA_AVX512, whit_gemm_pack_avx512,
                                                 multiply_panels};
