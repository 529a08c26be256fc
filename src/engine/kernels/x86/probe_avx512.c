/* SPDX-License-Identifier: MIT
 * Probes the rates of AVX-512. The product is a tile of 32 rows by 8 tokens: 16 sums in registers, 2 loads and 8
 * broadcasts for 16 VPDPBUSD. */
#include <immintrin.h>

#include "kernels/x86/tiles_avx512.h"

enum { TOKENS = 8 };

uint64_t whit_probe_read_avx512(const void *memory, size_t size_bytes)
{
    const __m512i *line = memory, *end = line + size_bytes / sizeof *line;
    __m512i sums[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
    for (; line + 4 <= end; line += 4)
        for (int i = 0; i < 4; i++) sums[i] = _mm512_add_epi64(sums[i], _mm512_load_si512(line + i));
    for (; line < end; line++) sums[0] = _mm512_add_epi64(sums[0], _mm512_load_si512(line));
    sums[0] = _mm512_add_epi64(_mm512_add_epi64(sums[0], sums[1]), _mm512_add_epi64(sums[2], sums[3]));
    /* Added in a loop, because the compiler's reduce_add adds signed numbers, which must not overflow, and these sums
     * wrap. */
    uint64_t lanes[8], sum = 0;
    _mm512_storeu_si512(lanes, sums[0]);
    for (int i = 0; i < 8; i++) sum += lanes[i];
    return sum;
}

uint32_t whit_probe_int8_avx512(const uint8_t *w, const int8_t *x, uint32_t n_rounds)
{
    uint32_t sum = 0;
    for (uint32_t token = 0; token < 32; token += TOKENS) {
        const int8_t *q = x + token * WHIT_PROBE_COLS;
        __m512i acc[2][TOKENS];
        for (int c = 0; c < TOKENS; c++) acc[0][c] = acc[1][c] = _mm512_setzero_si512();
        for (uint32_t round = 0; round < n_rounds; round++)
            for (uint32_t k = 0; k < WHIT_PROBE_COLS; k += 4) {
                __m512i low = load_line(w + k * 32), high = load_line(w + k * 32 + 64);
#pragma GCC unroll 8
                for (int c = 0; c < TOKENS; c++) {
                    __m512i quad = broadcast_quad(q + c * WHIT_PROBE_COLS + k);
                    acc[0][c] = add_quad_products(acc[0][c], low, quad);
                    acc[1][c] = add_quad_products(acc[1][c], high, quad);
                }
            }
        for (int c = 0; c < TOKENS; c++) {
            uint32_t lanes[16];
            _mm512_storeu_si512(lanes, _mm512_add_epi32(acc[0][c], acc[1][c]));
            for (int i = 0; i < 16; i++) sum += lanes[i];
        }
    }
    return sum;
}
