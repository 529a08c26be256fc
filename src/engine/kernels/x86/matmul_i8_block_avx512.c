/* SPDX-License-Identifier: MIT
 * Computes GEMM of coded weights and int8 activations with AVX-512 and VNNI.
 *
 *   microtile    MR = 64 rows (four tiles; of q2 two tiles of two planes) x NR = 6 tokens
 *   KC           a step: the columns over which neither scale changes, at most K
 *   registers    24 sums, 4 weights, 1 activation; 4 loads and 6 broadcasts for 24 VPDPBUSD
 *   L1           activations of the six tokens
 *   L2           unpacked quads of the four planes, 64 bytes per k, and their scales as floats: they
 *                are unpacked once and multiplied by all tokens */
#include "kernels/x86/unpack_avx512.h"

enum { PLANES = 4, TOKENS = 6, STEP_FIELDS = 2 * PLANES * WHIT_TILE_ROWS };

INLINE int planes_per_tile(const int codec)
{
    return codec == WHIT_CODEC_Q2 ? 2 : 1;
}

/* Computes the sums of products of n_quads quads of PLANES planes with n tokens. */
INLINE void add_quads(const int n, __m512i sums[TOKENS][PLANES], const uint8_t *quads, const int8_t *q, size_t stride,
                      uint32_t n_quads)
{
    __m512i acc[TOKENS][PLANES];
#pragma GCC unroll 6
    for (int c = 0; c < n; c++)
#pragma GCC unroll 4
        for (int p = 0; p < PLANES; p++) acc[c][p] = _mm512_setzero_si512();
    for (uint32_t j = 0; j < n_quads; j++, quads += PLANES * WHIT_LINE_BYTES, q += 4) {
        __m512i w[PLANES];
#pragma GCC unroll 4
        for (int p = 0; p < PLANES; p++) w[p] = _mm512_load_si512(quads + p * WHIT_LINE_BYTES);
#pragma GCC unroll 6
        for (int c = 0; c < n; c++) {
            __m512i x = broadcast_quad(q + (size_t)c * stride);
#pragma GCC unroll 4
            for (int p = 0; p < PLANES; p++) acc[c][p] = add_quad_products(acc[c][p], w[p], x);
        }
    }
#pragma GCC unroll 6
    for (int c = 0; c < n; c++)
#pragma GCC unroll 4
        for (int p = 0; p < PLANES; p++) sums[c][p] = acc[c][p];
}

/* Unpacks the scales of tile `tile`, which is tile i of a block, to its place in `fields`, STEP_FIELDS floats per step:
 * a line for each plane of the block, then a line of offsets for each tile. */
INLINE void unpack_scales(const int codec, const tiles *m, const whit_acts *x, uint32_t tile, uint32_t i, float *fields)
{
    const uint32_t planes = (uint32_t)planes_per_tile(codec);
    const uint8_t *start = m->codes + tile * m->tile_bytes;
    uint32_t step_cols = x->spec.step ? x->spec.step : x->n_cols;
    for (uint32_t step = 0; step < x->n_steps; step++, fields += STEP_FIELDS) {
        uint32_t group = step * step_cols >> m->group_shift;
        for (uint32_t p = 0; p < planes; p++)
            _mm512_store_ps(fields + (i * planes + p) * WHIT_TILE_ROWS, load_field(m, tile, start, group, p));
        if (m->has_offset)
            _mm512_store_ps(fields + (PLANES + i) * WHIT_TILE_ROWS, load_field(m, tile, start, group, planes));
    }
}

/* Ends a step: adds its integer sums times their scales, and its offsets, to out (n, PLANES, 16). */
INLINE void flush(const int codec, const int n, const tiles *m, const whit_acts *x, uint32_t t, uint32_t step,
                  const float *fields, __m512i sums[TOKENS][PLANES], float *out)
{
    const int planes = planes_per_tile(codec), n_tiles = PLANES / planes;
#pragma GCC unroll 6
    for (int c = 0; c < n; c++, out += PLANES * WHIT_TILE_ROWS) {
        size_t at = (size_t)(t + (uint32_t)c) * x->n_steps + step;
        __m512 scale_x = _mm512_set1_ps(x->scales[at]);
        int32_t sum_q = x->sums[at];
#pragma GCC unroll 4
        for (int i = 0; i < n_tiles; i++) {
            __m512 acc = _mm512_load_ps(out + i * WHIT_TILE_ROWS);
#pragma GCC unroll 2
            for (int p = i * planes; p < (i + 1) * planes; p++)
                acc = _mm512_fmadd_ps(true_sum(codec, sums[c][p], sum_q),
                                      _mm512_mul_ps(_mm512_load_ps(fields + p * WHIT_TILE_ROWS), scale_x), acc);
            _mm512_store_ps(out + i * WHIT_TILE_ROWS, acc);
        }
        if (!m->has_offset) continue;
        for (int i = 0; i < n_tiles; i++) {
            __m512 offset = _mm512_load_ps(fields + (PLANES + i) * WHIT_TILE_ROWS);
            __m512 acc = _mm512_load_ps(out + i * WHIT_TILE_ROWS);
            acc = _mm512_fmadd_ps(_mm512_mul_ps(offset, scale_x), _mm512_set1_ps((float)sum_q), acc);
            _mm512_store_ps(out + i * WHIT_TILE_ROWS, acc);
        }
    }
}

INLINE void multiply_block(const int codec, const int n, const tiles *m, const whit_acts *x, uint32_t tile,
                           uint32_t n_tiles, uint32_t t, const uint8_t *quads, const float *fields, float *y,
                           size_t y_stride)
{
    const int8_t *q = x->i8 + (size_t)t * x->stride;
    uint32_t step_cols = x->spec.step ? x->spec.step : x->n_cols;
    __m512i sums[TOKENS][PLANES];
    _Alignas(64) float outs[TOKENS * PLANES * WHIT_TILE_ROWS], *out = outs;
    y += t * y_stride + (size_t)tile * WHIT_TILE_ROWS;
    for (int c = 0; c < n; c++)
        for (int i = 0; i < PLANES; i++) {
            _mm512_store_ps(out + (c * PLANES + i) * WHIT_TILE_ROWS, _mm512_setzero_ps());
            /* Prefetches the line of outputs that is written at the end of the block. */
            if ((uint32_t)i < n_tiles) __builtin_prefetch(y + (size_t)c * y_stride + (size_t)i * WHIT_TILE_ROWS, 1);
        }
    for (uint32_t step = 0, k = 0; step < x->n_steps; step++, fields += STEP_FIELDS) {
        uint32_t end = tiles_min(k + step_cols, x->n_cols), n_quads = (end - k + 3) / 4;
        add_quads(n, sums, quads + (size_t)k / 4 * PLANES * WHIT_LINE_BYTES, q + k, x->stride, n_quads);
        /* prevents gcc 12 from copying the pointer in every step */
        __asm__("" : "+r"(out) : : "memory");
        flush(codec, n, m, x, t, step, fields, sums, out);
        k = end;
    }
    for (uint32_t i = 0; i < n_tiles; i++)
        for (int c = 0; c < n; c++)
            _mm512_mask_storeu_ps(y + (size_t)c * y_stride + (size_t)i * WHIT_TILE_ROWS, rows_mask(m, tile + i),
                                  _mm512_load_ps(out + (c * PLANES + (int)i) * WHIT_TILE_ROWS));
}

INLINE size_t quads_bytes(const whit_tensor_type *type)
{
    return (size_t)quads_written(type->n_cols) * PLANES * WHIT_LINE_BYTES;
}

INLINE void run(const int codec, const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,
                float *y, size_t y_stride, uint8_t *quads)
{
    const int planes = planes_per_tile(codec);
    tiles m = tiles_of(w);
    float *fields = (float *)(void *)(quads + quads_bytes(&w->type));
    uint32_t n_tiles;
    for (uint32_t tile = tile_begin; tile < tile_end; tile += n_tiles) {
        n_tiles = tiles_min((uint32_t)(PLANES / planes), tile_end - tile);
        for (uint32_t i = 0; i < n_tiles; i++) {
            unpack_tile(codec, &m, tile + i, quads + (size_t)i * (size_t)planes * WHIT_LINE_BYTES,
                        PLANES * WHIT_LINE_BYTES, WHIT_LINE_BYTES);
            unpack_scales(codec, &m, x, tile + i, i, fields);
        }
        uint32_t n;
        for (uint32_t t = 0; t < x->n_tokens; t += n) {
            n = tiles_min(TOKENS, x->n_tokens - t);
#define BLOCK(n_tokens)                                                                                                \
    case n_tokens: multiply_block(codec, n_tokens, &m, x, tile, n_tiles, t, quads, fields, y, y_stride); break;
            switch (n) {
                BLOCK(1) BLOCK(2) BLOCK(3) BLOCK(4) BLOCK(5) BLOCK(6)
            }
#undef BLOCK
        }
    }
}

static size_t scratch_bytes(const whit_tensor_type *type, const whit_acts_spec *spec, uint32_t n_tokens)
{
    (void)n_tokens;
    size_t n_steps = whit_acts_steps(spec, type->n_cols);
    return quads_bytes(type) + n_steps * STEP_FIELDS * sizeof(float);
}

#define MATMUL(lower, upper, from_tokens)                                                                              \
    static bool accepts_##lower(const whit_tensor_type *type, const whit_acts_spec *spec)                              \
    {                                                                                                                  \
        return type->codec == WHIT_CODEC_##upper && spec->kind == WHIT_ACTS_I8 && spec->step % 4 == 0 &&               \
            !whit_scale_in_superblocks(type->scale_type);                                                              \
    }                                                                                                                  \
    MATMUL_RUN(lower, upper)                                                                                           \
    const whit_matmul_kernel whit_matmul_i8_##lower##_64x6_avx512 = {                                                  \
        .name = "matmul_i8_" #lower "_64x6_avx512",                                                                    \
        .isa = WHIT_ISA_AVX512,                                                                                        \
        .min_tokens = from_tokens,                                                                                     \
        .max_tokens = UINT32_MAX,                                                                                      \
        .accepts = accepts_##lower,                                                                                    \
        .scratch_bytes = scratch_bytes,                                                                                \
        .run = run_##lower,                                                                                            \
    };

/* The last argument is the smallest number of tokens. For fewer tokens the 16x4 kernels of matmul_i8_avx512.c are
 * faster, because they unpack no weights except i8s (measured on Zen 4). The 16x4 kernel of t5 refuses steps that end
 * within lines, so the 64x6 kernel precedes it in the table. */
MATMUL(t2, T2, 128)
MATMUL(t5, T5, 17)
MATMUL(b1, B1, 128)
MATMUL(q2, Q2, 128)
MATMUL(i4, I4, 64)
MATMUL(i8, I8, 256)
MATMUL(i8s, I8S, 9)
MATMUL(f4, F4, 9)
MATMUL(n4, N4, 9)
MATMUL(l2, L2, 64)
