/* SPDX-License-Identifier: MIT
 * GEMM of coded weights and int8 activations, scales per group: AMX.
 *
 *   microtile    MR = 32 rows (two tiles, or the two planes of one of q2) x NR = 32 tokens: two
 *                tiles of A times two of B, four loads for four multiplications
 *   KC           a step: C goes to memory where a scale changes, and AVX-512 adds it to the
 *                outputs; with scales per tensor or row C stays in its registers over all of K
 *   registers    8 of tiles: 4 of C, 2 of A, 2 of B (amx_block.h)
 *   L1           outputs of a microtile, 4 KB, and the streamed parts of A and B
 *   L2           unpacked quads of several pairs of tiles, CACHED_BYTES, so that activations are
 *                read from further away only once for all of them
 *
 * C (16 tokens x 16 rows, int32) += A (16 tokens x 64 k, signed) * B (16 quads, unsigned): an
 * unpacked quad (unpack_avx512.h) is one row of a B tile, so 16 quads of a tile of the matrix are B
 * without rearrangement, and so are activations A. */
#include "kernels/x86/amx_block.h"
#include "kernels/x86/unpack_avx512.h"

enum { CACHED_BYTES = 768 * 1024 };

typedef struct work {
    tiles m;
    const whit_acts *x;
    const uint8_t *quads; /* unpacked tiles, `tile_quads` bytes apart */
    size_t tile_quads;
    uint32_t first_tile;
    float *y;
    size_t y_stride;
    amx_state amx;
} work;

/* Bytes of one unpacked tile. */
static size_t tile_quads_bytes(uint32_t n_cols)
{
    return (size_t)quads_written(n_cols) * WHIT_LINE_BYTES;
}

static uint32_t cached_tiles(uint32_t n_cols, int planes)
{
    uint32_t n = (uint32_t)(CACHED_BYTES / (tile_quads_bytes(n_cols) * (size_t)planes));
    return n < B_TILES ? B_TILES : n / B_TILES * B_TILES;
}

/* Adds one step's integers to the floats of n tokens: out (n, 16) of one tile, y where `out` is
 * NULL. Planes of q2 are the two B tiles. */
INLINE __m512 add_step(const int codec, const tiles *m, const __m512 *field, float scale, int32_t sum_q,
                       const int32_t *sums, const int32_t *extra, __m512 acc)
{
    __m512 scale_x = _mm512_set1_ps(scale);
    const bool is_q2 = codec == WHIT_CODEC_Q2;
    acc = _mm512_fmadd_ps(true_sum(codec, _mm512_loadu_si512(sums), sum_q), _mm512_mul_ps(field[0], scale_x), acc);
    if (is_q2)
        acc = _mm512_fmadd_ps(true_sum(codec, _mm512_loadu_si512(extra), sum_q), _mm512_mul_ps(field[1], scale_x), acc);
    if (m->has_offset)
        acc = _mm512_fmadd_ps(_mm512_mul_ps(field[1 + is_q2], scale_x), _mm512_set1_ps((float)sum_q), acc);
    return acc;
}

/* n tokens from t on (n <= 16 n_a) times two planes of quads: two tiles, or one of q2. */
INLINE void multiply_pair(const int codec, const int n_a, work *s, uint32_t tile, uint32_t n_tiles, uint32_t t,
                          uint32_t n)
{
    const whit_acts *x = s->x;
    const tiles *m = &s->m;
    const bool is_q2 = codec == WHIT_CODEC_Q2;
    const uint8_t *b0 = s->quads + (tile - s->first_tile) * s->tile_quads * (is_q2 ? 2 : 1);
    const uint8_t *b1 = b0 + (is_q2 || n_tiles == 2 ? s->tile_quads : 0);
    uint32_t step_cols = x->spec.step ? x->spec.step : x->n_cols;
    _Alignas(64) amx_block_sums sums;
    __m512 out[BLOCK_TOKENS * B_TILES];
    for (uint32_t i = 0; i < BLOCK_TOKENS * B_TILES; i++) out[i] = _mm512_setzero_ps();
    for (uint32_t step = 0, k = 0; step < x->n_steps; step++) {
        uint32_t end = tiles_min(k + step_cols, x->n_cols);
        amx_multiply_block(&s->amx, n_a, x->i8 + t * x->stride + k, x->stride, b0 + 16 * (size_t)k, b1 + 16 * (size_t)k,
                           (end - k + 63) / 64, sums);
        for (uint32_t b = 0; b < n_tiles; b++) {
            const uint8_t *start = m->codes + (tile + b) * m->tile_bytes;
            __m512 field[WHIT_MAX_FIELDS];
            for (uint32_t f = 0; f < m->n_fields; f++)
                field[f] = load_field(m, tile + b, start, k >> m->group_shift, f);
            for (uint32_t i = 0; i < n; i++) {
                size_t at = (size_t)(t + i) * x->n_steps + step;
                out[b * BLOCK_TOKENS + i] =
                    add_step(codec, m, field, x->scales[at], x->sums[at], sums[i / 16][b][i % 16],
                             sums[i / 16][1][i % 16], out[b * BLOCK_TOKENS + i]);
            }
        }
        k = end;
    }
    for (uint32_t b = 0; b < n_tiles; b++)
        for (uint32_t i = 0; i < n; i++)
            _mm512_mask_storeu_ps(s->y + (t + i) * s->y_stride + (size_t)(tile + b) * WHIT_TILE_ROWS,
                                  rows_mask(m, tile + b), out[b * BLOCK_TOKENS + i]);
}

/* All cached tiles times the tokens [t, t + n), n <= 32. */
INLINE void multiply_tokens(const int codec, work *s, uint32_t n_tiles, uint32_t t, uint32_t n)
{
    const uint32_t pair = codec == WHIT_CODEC_Q2 ? 1 : 2;
    for (uint32_t i = 0; i < n_tiles; i += pair) {
        uint32_t now = tiles_min(pair, n_tiles - i);
        if (n > 16)
            multiply_pair(codec, 2, s, s->first_tile + i, now, t, n);
        else
            multiply_pair(codec, 1, s, s->first_tile + i, now, t, n);
    }
}

INLINE void run(const int codec, const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,
                float *y, size_t y_stride, uint8_t *quads)
{
    const int planes = codec == WHIT_CODEC_Q2 ? 2 : 1;
    work s = {.m = tiles_of(w), .x = x, .quads = quads, .y = y, .y_stride = y_stride};
    s.tile_quads = tile_quads_bytes(w->type.n_cols);
    uint32_t whole = x->n_tokens / BLOCK_TOKENS * BLOCK_TOKENS, rest = x->n_tokens - whole;
    uint32_t n_tiles, most = cached_tiles(w->type.n_cols, planes);
    for (uint32_t tile = tile_begin; tile < tile_end; tile += n_tiles) {
        n_tiles = tiles_min(most, tile_end - tile);
        s.first_tile = tile;
        for (uint32_t i = 0; i < n_tiles; i++)
            unpack_tile(codec, &s.m, tile + i, quads + i * s.tile_quads * (size_t)planes, WHIT_LINE_BYTES,
                        s.tile_quads);
        amx_config config = amx_config_for(BLOCK_TOKENS);
        amx_begin(&s.amx, &config);
        for (uint32_t t = 0; t < whole; t += BLOCK_TOKENS) multiply_tokens(codec, &s, n_tiles, t, BLOCK_TOKENS);
        if (rest) {
            config = amx_config_for(rest);
            amx_begin(&s.amx, &config);
            multiply_tokens(codec, &s, n_tiles, whole, rest);
        }
        amx_end(&s.amx);
    }
}

static size_t scratch_bytes(const whit_tensor_type *type, const whit_acts_spec *spec, uint32_t n_tokens)
{
    (void)spec, (void)n_tokens;
    int planes = type->codec == WHIT_CODEC_Q2 ? 2 : 1;
    return tile_quads_bytes(type->n_cols) * cached_tiles(type->n_cols, planes) * (size_t)planes;
}

/* Steps are whole tiles of 64 columns. */
static bool accepts_steps(const whit_acts_spec *spec)
{
    return spec->kind == WHIT_ACTS_I8 && spec->step % 64 == 0;
}

#define MATMUL(lower, upper)                                                                                           \
    static bool accepts_##lower(const whit_tensor_type *type, const whit_acts_spec *spec)                              \
    {                                                                                                                  \
        return type->codec == WHIT_CODEC_##upper && accepts_steps(spec);                                               \
    }                                                                                                                  \
    MATMUL_RUN(lower, upper)                                                                                           \
    const whit_matmul_kernel AMX_NAME(whit_matmul_i8_##lower##_32x32_amx) = {                                          \
        .name = "matmul_i8_" #lower "_32x32_amx",                                                                      \
        .isa = AMX_LEVEL,                                                                                              \
        .min_tokens = 13,                                                                                              \
        .max_tokens = UINT32_MAX,                                                                                      \
        .accepts = accepts_##lower,                                                                                    \
        .scratch_bytes = scratch_bytes,                                                                                \
        .run = run_##lower,                                                                                            \
    };

MATMUL(t2, T2)
MATMUL(t5, T5)
MATMUL(b1, B1)
MATMUL(q2, Q2)
MATMUL(i4, I4)
MATMUL(i8, I8)
MATMUL(i8s, I8S)
MATMUL(l2, L2)
