/* SPDX-License-Identifier: MIT
 * Coded weights times a few int8 columns, one scale per tensor or row: AMX.
 *
 * As in matmul_i8_block_amx.c an unpacked quad is a row of a B tile and the activations are A as
 * they lie. Here weights come from memory and are used once: sixteen lines are unpacked into the
 * first cache while the sixteen before them are multiplied. A multiplication costs the same for two
 * columns as for sixteen, and less than the line takes to arrive; two or three columns of t2 and t5
 * are faster in matmul_i8_avx512.c, which stores nothing but outputs.
 *
 *   tiles 0..3  C, which take turns to hide latency      4, 5  A       6, 7  B */
#include "kernels/x86/amx_tiles.h"
#include "kernels/x86/unpack_avx512.h"

enum { C_TILES = 4, CHUNK_LINES = 16, MAX_COLUMNS = 16, FAR_BYTES = 8192, NEAR_BYTES = 1024 };
/* A store of a tile register takes 0.3 us where the last one is 0.8 us ago, about as long as a tile
 * takes to arrive: now and then one is stored for nothing. */
enum { AWAKE_CHUNKS = 3 };
/* Quads of a chunk: five from a line at most. */
enum { CHUNK_BYTES = 5 * CHUNK_LINES * WHIT_LINE_BYTES };

/* Lines [first, first + n) of a tile, n <= CHUNK_LINES. */
INLINE void unpack_chunk(const int codec, const tiles *m, uint32_t tile, uint32_t first, uint32_t n, uint8_t *out)
{
    const uint8_t *line = m->codes + tile * m->tile_bytes + (size_t)first * WHIT_LINE_BYTES;
    if (codec == WHIT_CODEC_I8S) unpack_i8s(m, tile, first, out, WHIT_LINE_BYTES);
    for (uint32_t l = 0; l < n; l++, line += WHIT_LINE_BYTES) {
        _mm_prefetch((const char *)line + FAR_BYTES, _MM_HINT_T1);
        _mm_prefetch((const char *)line + NEAR_BYTES, _MM_HINT_T0);
        if (codec != WHIT_CODEC_I8S) unpack_line(codec, load_line(line), out, WHIT_LINE_BYTES);
        out += quads_of_line(codec) * WHIT_LINE_BYTES;
    }
}

/* Multiplies tile i of a chunk, where the matrix has columns there. */
#define STEP(i, c, a, b)                                                                           \
    if (i < n_b) {                                                                                 \
        AMX_LOAD(amx, b, quads + (i) * AMX_ROWS * AMX_ROW_BYTES, AMX_ROW_BYTES);                   \
        AMX_LOAD(amx, a, q + (i) * AMX_ROW_BYTES, stride);                                         \
        AMX_MULTIPLY(amx, c, a, b);                                                                \
    }

INLINE void multiply_chunk(amx_state *amx, const uint8_t *quads, const int8_t *q, size_t stride, uint32_t n_b)
{
    (void)amx;
    STEP(0, 0, 4, 6)
    STEP(1, 1, 5, 7)
    STEP(2, 2, 4, 6)
    STEP(3, 3, 5, 7)
    STEP(4, 0, 4, 6)
}

INLINE void multiply_tile(const int codec, amx_state *amx, const tiles *m, const whit_acts *x, uint32_t tile,
                          uint8_t *quads, float *y, size_t y_stride)
{
    const uint32_t chunk_tiles = (uint32_t)quads_of_line(codec), chunk_cols = 64 * chunk_tiles;
    const uint32_t n_lines = lines_of(codec, x->n_cols), n_tiles = (x->n_cols + 63) / 64;
    _Alignas(64) int32_t sums[C_TILES][MAX_COLUMNS][16];
    AMX_ZERO(amx, 0);
    AMX_ZERO(amx, 1);
    AMX_ZERO(amx, 2);
    AMX_ZERO(amx, 3);
    unpack_chunk(codec, m, tile, 0, tiles_min(n_lines, CHUNK_LINES), quads);
    for (uint32_t first = 0, chunk = 0; first < n_lines; first += CHUNK_LINES, chunk++) {
        uint32_t next = first + CHUNK_LINES;
        if (next < n_lines)
            unpack_chunk(codec, m, tile, next, tiles_min(n_lines - next, CHUNK_LINES), quads + (chunk + 1) % 2 * CHUNK_BYTES);
        amx_written();
        multiply_chunk(amx, quads + chunk % 2 * CHUNK_BYTES, x->i8 + (size_t)chunk * chunk_cols, x->stride,
                       tiles_min(chunk_tiles, n_tiles - chunk * chunk_tiles));
        if (chunk % AWAKE_CHUNKS == AWAKE_CHUNKS - 1) AMX_STORE(amx, 4, sums[0][0], 64);
    }
    AMX_STORE(amx, 0, sums[0][0], 64);
    AMX_STORE(amx, 1, sums[1][0], 64);
    AMX_STORE(amx, 2, sums[2][0], 64);
    AMX_STORE(amx, 3, sums[3][0], 64);
    const uint8_t *start = m->codes + tile * m->tile_bytes;
    __m512 scale = load_field(m, tile, start, 0, 0), offset = scale;
    if (m->has_offset) offset = load_field(m, tile, start, 0, 1);
    for (uint32_t t = 0; t < x->n_tokens; t++) {
        __m512i sum = _mm512_setzero_si512();
        for (int c = 0; c < C_TILES; c++) sum = _mm512_add_epi32(sum, _mm512_load_si512(sums[c][t]));
        __m512 scale_x = _mm512_set1_ps(x->scales[t]);
        __m512 out = _mm512_fmadd_ps(true_sum(codec, sum, x->sums[t]), _mm512_mul_ps(scale, scale_x), _mm512_setzero_ps());
        if (m->has_offset)
            out = _mm512_fmadd_ps(_mm512_mul_ps(offset, scale_x), _mm512_set1_ps((float)x->sums[t]), out);
        store_outputs(y + t * y_stride + (size_t)tile * WHIT_TILE_ROWS, rows_mask(m, tile), out);
    }
}

/* Any number of columns, sixteen at a time. */
INLINE void run(const int codec, const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,
                float *y, size_t y_stride, uint8_t *quads)
{
    tiles m = tiles_of(w);
    for (uint32_t t = 0; t < x->n_tokens; t += MAX_COLUMNS) {
        whit_acts some = *x;
        some.n_tokens = tiles_min(x->n_tokens - t, MAX_COLUMNS);
        some.i8 += (size_t)t * x->stride;
        some.scales += (size_t)t * x->n_steps;
        some.sums += (size_t)t * x->n_steps;
        amx_config config = {.palette = 1};
        for (int i = 0; i < AMX_TILES; i++) {
            config.row_bytes[i] = AMX_ROW_BYTES;
            config.rows[i] = (uint8_t)(i < 6 ? some.n_tokens : AMX_ROWS);
        }
        amx_state amx;
        amx_begin(&amx, &config);
        for (uint32_t tile = tile_begin; tile < tile_end; tile++)
            multiply_tile(codec, &amx, &m, &some, tile, quads, y + t * y_stride, y_stride);
        amx_end(&amx);
    }
    _mm_sfence();
}

static size_t scratch_bytes(const whit_tensor_type *type, const whit_acts_spec *spec, uint32_t n_tokens)
{
    (void)type, (void)spec, (void)n_tokens;
    return 2 * CHUNK_BYTES;
}

#define MATMUL(lower, upper, min)                                                                  \
    static bool accepts_##lower(const whit_tensor_type *type, const whit_acts_spec *spec)          \
    {                                                                                              \
        return type->codec == WHIT_CODEC_##upper && spec->kind == WHIT_ACTS_I8 && !spec->step;     \
    }                                                                                              \
    static void run_##lower(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin,         \
                            uint32_t tile_end, float *y, size_t y_stride, void *scratch)           \
    {                                                                                              \
        run(WHIT_CODEC_##upper, w, x, tile_begin, tile_end, y, y_stride, scratch);                 \
    }                                                                                              \
    const whit_matmul_kernel AMX_NAME(whit_matmul_i8_##lower##_16x16_amx) = {                      \
        .name = "matmul_i8_" #lower "_16x16_amx",                                                  \
        .isa = AMX_LEVEL,                                                                          \
        .min_tokens = min,                                                                         \
        .max_tokens = MAX_COLUMNS,                                                                 \
        .accepts = accepts_##lower,                                                                \
        .scratch_bytes = scratch_bytes,                                                            \
        .run = run_##lower,                                                                        \
    };

MATMUL(t2, T2, 4)
MATMUL(t5, T5, 4)
MATMUL(i8, I8, 2)
MATMUL(i8s, I8S, 2)
