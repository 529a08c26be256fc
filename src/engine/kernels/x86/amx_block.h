/* SPDX-License-Identifier: MIT
 * Multiplies two tiles of A by two of B, the microtile of the GEMMs: 32 rows by 32 tokens.
 *
 *   tiles 0..3  C[a][b]      4, 5  A       6, 7  B
 *
 * A is reused while B is streamed, so B is loaded with the hint not to keep it in the cache.
 * compile with: -mamx-tile -mamx-int8 */
#ifndef WHIT_KERNELS_X86_AMX_BLOCK_H
#define WHIT_KERNELS_X86_AMX_BLOCK_H

#include "kernels/x86/amx_tiles.h"

enum { B_TILES = 2, A_TILES = 2, BLOCK_TOKENS = 32 };

typedef int32_t amx_block_sums[A_TILES][B_TILES][AMX_ROWS][16];

/* Returns the tile configuration for n <= 32 tokens: the tiles of A and C have no rows after the last token. For
 * n <= 16, the second tiles of A and C have 16 rows, and are not used. */
static inline amx_config amx_config_for(uint32_t n)
{
    uint32_t first = n < 16 ? n : 16;
    uint32_t second = n > 16 ? n - 16 : 16;
    return amx_config_of((const uint32_t[AMX_TILES]){first, first, second, second, first, second, 16, 16});
}

/* Stores the tiles of C that belong to n_a tiles of A (1 or 2) to c. */
static inline __attribute__((always_inline)) void amx_store_block(amx_state *amx, const int n_a, amx_block_sums c)
{
    (void)amx;
    AMX_STORE(amx, 0, c[0][0], 64);
    AMX_STORE(amx, 1, c[0][1], 64);
    if (n_a == 2) {
        AMX_STORE(amx, 2, c[1][0], 64);
        AMX_STORE(amx, 3, c[1][1], 64);
    }
    amx_written();
}

/* Multiplies n_a tiles of A by 2 tiles of B, both signed, over n slices of 64 columns, and stores C. */
static inline __attribute__((always_inline)) void amx_multiply_block(amx_state *amx, const int n_a, const int8_t *q,
                                                                     size_t stride, const uint8_t *b0,
                                                                     const uint8_t *b1, uint32_t n, amx_block_sums c)
{
    (void)amx;
    const int8_t *q1 = q + 16 * stride;
    amx_written();
    AMX_ZERO(amx, 0);
    AMX_ZERO(amx, 1);
    AMX_ZERO(amx, 2);
    AMX_ZERO(amx, 3);
    for (uint32_t i = 0; i < n; i++, q += 64, q1 += 64, b0 += 1024, b1 += 1024) {
        AMX_STREAM(amx, 6, b0, 64);
        AMX_LOAD(amx, 4, q, stride);
        AMX_STREAM(amx, 7, b1, 64);
        AMX_MULTIPLY_SIGNED(amx, 0, 4, 6);
        AMX_MULTIPLY_SIGNED(amx, 1, 4, 7);
        if (n_a == 2) {
            AMX_LOAD(amx, 5, q1, stride);
            AMX_MULTIPLY_SIGNED(amx, 2, 5, 6);
            AMX_MULTIPLY_SIGNED(amx, 3, 5, 7);
        }
    }
    amx_store_block(amx, n_a, c);
}

#endif
