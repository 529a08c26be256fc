/* SPDX-License-Identifier: MIT
 * Products in bfloat16 by AMX.
 *
 * Both operands are cut into tiles of 16 rows or columns times 32 of k, rounded to bfloat16. A tile
 * of A has a row of 32 k for each of m; a tile of B has a row of sixteen pairs for every two of k,
 * which is what TDPBF16PS reads. Seen as 16 x 16 dwords, of two neighbours in k each, one layout is
 * the transpose of the other, so that any operand is loaded along its own rows and transposed where
 * it must be.
 *
 * A block of C is 32 x 32 in tiles 0 to 3; tiles 4 and 5 are A, 6 and 7 are B. For every K_BLOCK of
 * k, 32 rows of A are packed, to stay in L1, and multiplied by all columns of B, which stay in
 * L2: packed B has its blocks of k one after the other, in each the panels of 32 columns.
 *
 *   m, n, k  rows of C, columns of C, summed dimension      (Intel SDM: TILELOADD, TDPBF16PS) */
#include "linalg/gemm_amx.h"

#include "kernels/x86/amx_tiles.h"

enum { K_BLOCK = 512, SIDE = WHIT_GEMM_AMX_PANEL, K_TILE = 32, TILE_BYTES = 1024 };

#define INLINE static inline __attribute__((always_inline))

static inline size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The lowest n of sixteen lanes. */
INLINE __mmask16 lanes(size_t n)
{
    return (__mmask16)(n >= 16 ? 0xFFFF : (1u << n) - 1);
}

/* t[i] = row i as dwords: elements [0, n_k) in pairs, followed by zeros. */
INLINE void load_rows(const float *from, size_t stride, size_t n_rows, size_t n_k, __m512i t[16])
{
    __mmask16 low = lanes(n_k), high = lanes(n_k > 16 ? n_k - 16 : 0);
    for (size_t i = 0; i < 16; i++) {
        const float *row = from + i * stride;
        t[i] = i < n_rows
            ? (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(high, row + 16), _mm512_maskz_loadu_ps(low, row))
            : _mm512_setzero_si512();
    }
}

/* t[i] = dwords of rows 2 i and 2 i + 1: elements [0, n_columns) of both, one above the other. */
INLINE void load_pairs(const float *from, size_t stride, size_t n_columns, size_t n_k, __m512i t[16])
{
    const __m512i weave = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    __mmask16 mask = lanes(n_columns);
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

/* Packs n of sixteen rows of A or columns of B, from i on, times n_k of 32 k. along_k: elements of
 * neighbouring k are adjacent in memory. */
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

/* Packs a panel of n up to 32 rows or columns from i on, times [k, k + n_k): two tiles for every 32 of k. */
INLINE void pack_panel(const whit_gemm_operand *o, bool along_k, bool for_b, size_t i, size_t n, size_t k, size_t n_k,
                       uint8_t *to)
{
    for (size_t at = 0; at < n_k; at += K_TILE)
        for (size_t half = 0; half < SIDE; half += 16, to += TILE_BYTES) {
            size_t rest = n > half ? smaller(n - half, 16) : 0, rest_k = smaller(n_k - at, K_TILE);
            if (rest == 16 && rest_k == K_TILE)
                pack_tile(o, along_k, for_b, i + half, 16, k + at, K_TILE, to);
            else if (rest)
                pack_tile(o, along_k, for_b, i + half, rest, k + at, rest_k, to);
            else
                memset(to, 0, TILE_BYTES);
        }
}

/* Bytes of a packed panel, n_k of k long. */
static size_t panel_bytes(size_t n_k)
{
    return (n_k + K_TILE - 1) / K_TILE * 2 * TILE_BYTES;
}

size_t whit_gemm_amx_packed_bytes(size_t n, size_t k)
{
    return (n + SIDE - 1) / SIDE * panel_bytes(k);
}

void whit_gemm_amx_pack(const whit_gemm_operand *b, size_t n, size_t k, size_t begin, size_t end, void *packed)
{
    uint8_t *block = packed;
    for (size_t at = 0; at < k; at += K_BLOCK) {
        size_t n_k = smaller(k - at, K_BLOCK);
        for (size_t panel = begin; panel < end; panel++) {
            size_t i = panel * SIDE, columns = smaller(n - i, SIDE);
            uint8_t *to = block + panel * panel_bytes(n_k);
            if (b->transposed)
                pack_panel(b, true, true, i, columns, at, n_k, to);
            else
                pack_panel(b, false, true, i, columns, at, n_k, to);
        }
        block += whit_gemm_amx_packed_bytes(n, n_k);
    }
}

/* c (32 x 32, rows `stride` bytes apart) = or += panel times panel. */
INLINE void multiply(const uint8_t *a, const uint8_t *b, size_t k_tiles, bool add, float *c, size_t stride_bytes)
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
    for (size_t i = 0; i < k_tiles; i++, a += 2 * TILE_BYTES, b += 2 * TILE_BYTES) {
        _tile_loadd(6, b, 64);
        _tile_loadd(4, a, 64);
        _tile_loadd(7, b + TILE_BYTES, 64);
        _tile_loadd(5, a + TILE_BYTES, 64);
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

/* The same for a block of n_rows x n_columns at the edge of c. */
static void multiply_edge(const uint8_t *a, const uint8_t *b, size_t k_tiles, bool add, float *c, size_t ldc,
                          size_t n_rows, size_t n_columns)
{
    _Alignas(64) float block[SIDE][SIDE];
    for (size_t i = 0; add && i < n_rows; i++) memcpy(block[i], c + i * ldc, n_columns * sizeof *c);
    multiply(a, b, k_tiles, add, block[0], sizeof block[0]);
    for (size_t i = 0; i < n_rows; i++) memcpy(c + i * ldc, block[i], n_columns * sizeof *c);
}

/* Multiplies n_rows up to 32 rows of A from i on by one block of k. */
static void multiply_panel(const whit_gemm_operand *a, const uint8_t *columns, size_t i, size_t n_rows, size_t n,
                           size_t k, size_t n_k, bool add, float *c, size_t ldc)
{
    _Alignas(64) uint8_t panel[SIDE * K_BLOCK * 2];
    size_t k_tiles = (n_k + K_TILE - 1) / K_TILE;
    if (a->transposed)
        pack_panel(a, false, false, i, n_rows, k, n_k, panel);
    else
        pack_panel(a, true, false, i, n_rows, k, n_k, panel);
    for (size_t j = 0; j < n; j += SIDE, columns += panel_bytes(n_k)) {
        float *block = c + i * ldc + j;
        if (n_rows == SIDE && n - j >= SIDE)
            multiply(panel, columns, k_tiles, add, block, ldc * sizeof *c);
        else
            multiply_edge(panel, columns, k_tiles, add, block, ldc, n_rows, smaller(n - j, SIDE));
    }
}

void whit_gemm_amx_rows(const whit_gemm_operand *a, const void *packed, size_t begin, size_t end, size_t n, size_t k,
                        bool add, float *c, size_t ldc)
{
    const amx_config config = amx_whole_tiles();
    amx_state amx;
    amx_begin(&amx, &config);
    const uint8_t *block = packed;
    for (size_t at = 0; at < k; at += K_BLOCK) {
        size_t n_k = smaller(k - at, K_BLOCK);
        for (size_t i = begin; i < end; i += SIDE)
            multiply_panel(a, block, i, smaller(end - i, SIDE), n, at, n_k, add || at, c, ldc);
        block += whit_gemm_amx_packed_bytes(n, n_k);
    }
    amx_end(&amx);
}
