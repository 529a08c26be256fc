/* SPDX-License-Identifier: MIT
 * Computes matrix products whose operands are rounded to bfloat16, with sums in f32: c (m, n) = or += op(a) (m, k)
 * op(b) (k, n), row-major.
 *
 * First b is packed, then rows of c are computed from it; both may be partitioned over threads. Every element of c is
 * summed in one order, however rows and panels are partitioned.
 *
 * There are two orders, named after the instructions that fix them (Intel SDM: TDPBF16PS, VDPBF16PS):
 *
 *   tiles  per 32 of k: even = fma(a, b, even) over the even k and odd over the odd ones, ascending from +0, then
 *          c = c + (even + odd)
 *   pairs  per 2 of k: c = fma(a, b, c) of the odd k, then of the even one
 *
 * k is padded with zeros to a multiple of 32. Both instructions treat subnormal operands and sums as zeros of their
 * sign, and round to nearest, ties to even, whatever MXCSR says. Each order has a kernel with its instruction and one
 * in plain C with the same bits.
 *
 * All kernels use the same packed operands: tiles of 16 rows of 64 bytes, two tiles for every 32 of k. A tile of a has
 * a row for each of 16 m, with 32 k; a tile of b has a row of 16 columns for every two of k. An op(b) has its blocks of
 * WHIT_GEMM_BLOCK of k one after the other, in each the panels of WHIT_GEMM_SIDE columns. */
#ifndef WHIT_LINALG_GEMM_BF16_H
#define WHIT_LINALG_GEMM_BF16_H

#include "base/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WHIT_GEMM_SIDE = 32,   /* number of rows of a, or of columns of b, in a panel */
    WHIT_GEMM_BLOCK = 512, /* number of k that are multiplied before c is written */
    WHIT_GEMM_TILE_K = 32,
    WHIT_GEMM_TILE_BYTES = 1024,
};

/* Describes an operand op(x): element (i, j) is at[i * stride + j], or at[j * stride + i] if transposed. */
typedef struct whit_gemm_operand {
    const float *at;
    size_t stride;
    bool transposed;
} whit_gemm_operand;

typedef struct whit_gemm_kernel {
    const char *name;
    whit_isa isa;
    /* Rounds and packs a panel: n rows of a from row i on, or n columns of b from column i on if for_b, times [k, k +
     * n_k), padded with zeros. n is at most WHIT_GEMM_SIDE. along_k: neighbouring k are adjacent in memory. `to` is
     * 64-byte aligned. */
    void (*pack)(const whit_gemm_operand *x, bool along_k, bool for_b, size_t i, size_t n, size_t k, size_t n_k,
                 uint8_t *to);
    /* Computes c (n_rows, n) from a panel of a times all panels of a block of b; the rows of c are ldc floats apart.
     * add: adds the product to c instead of overwriting c. */
    void (*multiply)(const uint8_t *a, const uint8_t *b, size_t n_rows, size_t n, size_t k_tiles, bool add, float *c,
                     size_t ldc);
} whit_gemm_kernel;

/* The kernels. The processor must have these features, as whit_linalg_detect reports them: WHIT_CPU_AMX_BF16 for
 * whit_gemm_tiles_amx, WHIT_CPU_AVX512_BF16 for whit_gemm_pairs_avx512, AVX2 with FMA for the two avx2 kernels, no
 * features for the generic kernels. */
extern const whit_gemm_kernel whit_gemm_tiles_amx, whit_gemm_pairs_avx512;
extern const whit_gemm_kernel whit_gemm_tiles_avx2, whit_gemm_pairs_avx2;
extern const whit_gemm_kernel whit_gemm_tiles_generic, whit_gemm_pairs_generic;
/* Implements `pack` for the AMX and AVX-512 kernels. */
void whit_gemm_pack_avx512(const whit_gemm_operand *x, bool along_k, bool for_b, size_t i, size_t n, size_t k,
                           size_t n_k, uint8_t *to);

static inline size_t whit_gemm_min(size_t a, size_t b)
{
    return a < b ? a : b;
}
/* Returns the number of bytes of a packed panel for n_k of k. */
static inline size_t whit_gemm_panel_bytes(size_t n_k)
{
    return (n_k + WHIT_GEMM_TILE_K - 1) / WHIT_GEMM_TILE_K * 2 * WHIT_GEMM_TILE_BYTES;
}
/* Packs panels [begin, end) of b into 64-byte aligned memory; b has ceil(n / SIDE) panels. */
void whit_gemm_pack(const whit_gemm_kernel *kernel, const whit_gemm_operand *b, size_t n, size_t k, size_t begin,
                    size_t end, void *packed);
/* Computes rows [begin, end) of c, whose rows are ldc floats apart. add: adds the product to c instead of overwriting
 * c. */
void whit_gemm_rows(const whit_gemm_kernel *kernel, const whit_gemm_operand *a, const void *packed, size_t begin,
                    size_t end, size_t n, size_t k, bool add, float *c, size_t ldc);

#endif
