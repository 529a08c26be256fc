/* SPDX-License-Identifier: MIT
 * Computes products in bfloat16 by AMX. Tiles 0 to 3 hold a block of C, 32 x 32; tiles 4 and 5 hold A, tiles 6 and 7
 * hold B. (Intel SDM: TILELOADD, TDPBF16PS) */
#include "linalg/gemm_bf16.h"

#include "kernels/x86/amx_tiles.h"

#define INLINE static inline __attribute__((always_inline))

/* Computes c (32 x 32, rows `stride_bytes` apart) from a panel of A times a panel of B. add: adds the product to c
 * instead of overwriting c. */
INLINE void multiply_block(const uint8_t *a, const uint8_t *b, size_t k_tiles, bool add, float *c, size_t stride_bytes)
{
    uint8_t *right = (uint8_t *)c + 64, *below = (uint8_t *)c + 16 * stride_bytes;
    amx_written();
    if (add) {
        _tile_loadd(0, c, (long)stride_bytes);
        _tile_loadd(1, right, (long)stride_bytes);
        _tile_loadd(2, below, (long)stride_bytes);
        _tile_loadd(3, below + 64, (long)stride_bytes);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (size_t i = 0; i < k_tiles; i++, a += 2 * WHIT_GEMM_TILE_BYTES, b += 2 * WHIT_GEMM_TILE_BYTES) {
        _tile_loadd(6, b, 64);
        _tile_loadd(4, a, 64);
        _tile_loadd(7, b + WHIT_GEMM_TILE_BYTES, 64);
        _tile_loadd(5, a + WHIT_GEMM_TILE_BYTES, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, (long)stride_bytes);
    _tile_stored(1, right, (long)stride_bytes);
    _tile_stored(2, below, (long)stride_bytes);
    _tile_stored(3, below + 64, (long)stride_bytes);
    amx_written();
}

/* Computes a block of n_rows x n_columns at the edge of c: a full block is computed on the stack, and its valid part is
 * copied. */
static void multiply_edge(const uint8_t *a, const uint8_t *b, size_t k_tiles, bool add, float *c, size_t ldc,
                          size_t n_rows, size_t n_columns)
{
    _Alignas(64) float block[WHIT_GEMM_SIDE][WHIT_GEMM_SIDE];
    for (size_t i = 0; add && i < n_rows; i++) memcpy(block[i], c + i * ldc, n_columns * sizeof *c);
    multiply_block(a, b, k_tiles, add, block[0], sizeof block[0]);
    for (size_t i = 0; i < n_rows; i++) memcpy(c + i * ldc, block[i], n_columns * sizeof *c);
}

static void multiply_panels(const uint8_t *a, const uint8_t *b, size_t n_rows, size_t n, size_t k_tiles, bool add,
                            float *c, size_t ldc)
{
    const amx_config config = amx_whole_tiles();
    amx_state amx;
    amx_begin(&amx, &config);
    for (size_t j = 0; j < n; j += WHIT_GEMM_SIDE, b += k_tiles * 2 * WHIT_GEMM_TILE_BYTES) {
        if (n_rows == WHIT_GEMM_SIDE && n - j >= WHIT_GEMM_SIDE)
            multiply_block(a, b, k_tiles, add, c + j, ldc * sizeof *c);
        else
            multiply_edge(a, b, k_tiles, add, c + j, ldc, n_rows, whit_gemm_min(n - j, WHIT_GEMM_SIDE));
    }
    amx_end(&amx);
}

const whit_gemm_kernel whit_gemm_tiles_amx = {"gemm_bf16_tiles_amx", WHIT_ISA_AMX, whit_gemm_pack_avx512,
                                              multiply_panels};
