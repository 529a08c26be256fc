/* SPDX-License-Identifier: MIT
 * Cuts products in bfloat16 into blocks: for every WHIT_GEMM_BLOCK of k, 32 rows of A are packed, so that they stay in
 * L1, and multiplied by all columns of B, which stay in L2.
 *
 *   m, n, k  rows of C, columns of C, summed dimension */
#include "linalg/gemm_bf16.h"

static size_t block_bytes(size_t n, size_t n_k)
{
    return (n + WHIT_GEMM_SIDE - 1) / WHIT_GEMM_SIDE * whit_gemm_panel_bytes(n_k);
}

void whit_gemm_pack(const whit_gemm_kernel *kernel, const whit_gemm_operand *b, size_t n, size_t k, size_t begin,
                    size_t end, void *packed)
{
    uint8_t *block = packed;
    for (size_t at = 0; at < k; at += WHIT_GEMM_BLOCK) {
        size_t n_k = whit_gemm_min(k - at, WHIT_GEMM_BLOCK);
        for (size_t panel = begin; panel < end; panel++) {
            size_t i = panel * WHIT_GEMM_SIDE;
            kernel->pack(b, b->transposed, true, i, whit_gemm_min(n - i, WHIT_GEMM_SIDE), at, n_k,
                         block + panel * whit_gemm_panel_bytes(n_k));
        }
        block += block_bytes(n, n_k);
    }
}

void whit_gemm_rows(const whit_gemm_kernel *kernel, const whit_gemm_operand *a, const void *packed, size_t begin,
                    size_t end, size_t n, size_t k, bool add, float *c, size_t ldc)
{
    _Alignas(64) uint8_t panel[WHIT_GEMM_SIDE * WHIT_GEMM_BLOCK * 2];
    const uint8_t *block = packed;
    for (size_t at = 0; at < k; at += WHIT_GEMM_BLOCK) {
        size_t n_k = whit_gemm_min(k - at, WHIT_GEMM_BLOCK), k_tiles = (n_k + WHIT_GEMM_TILE_K - 1) / WHIT_GEMM_TILE_K;
        for (size_t i = begin; i < end; i += WHIT_GEMM_SIDE) {
            size_t n_rows = whit_gemm_min(end - i, WHIT_GEMM_SIDE);
            kernel->pack(a, !a->transposed, false, i, n_rows, at, n_k, panel);
            kernel->multiply(panel, block, n_rows, n, k_tiles, add || at, c + i * ldc, ldc);
        }
        block += block_bytes(n, n_k);
    }
}
