/* SPDX-License-Identifier: MIT
 * Coded weights times many int8 columns, one scale per tensor or row: AMX.
 *
 * Tiles are as in matmul_i8_block_amx.c: C (16 tokens x 16 rows) += A (activations) * B (unpacked
 * quads), two A times two B, and C stays in its registers for a whole range of columns. A core
 * reads its second cache hardly faster than it multiplies: one step of 32 tokens of A stays in the
 * first cache until all unpacked tiles of the matrix have passed by, the next one is loaded with
 * the hint not to stay, as the tiles are, and so on in turn.
 *
 * Three habits of the hardware shape the rest (docs/perf-log.md has the figures). A store of a tile
 * register takes 0.3 us where the last one is 0.8 us ago: there is one halfway. A tile's load waits
 * for every store under way whose address ends in the same twelve bits: nothing is unpacked between
 * multiplications, and outputs are written few at a time, those of one block between the steps of
 * the next. Outputs are a stream larger than any cache: they go past the caches where lines allow
 * it. */
#include "kernels/x86/amx_block.h"
#include "kernels/x86/unpack_avx512.h"

enum { MOST_TOKENS = 512 };
/* Steps are of 64 columns. A range of columns is unpacked at a time, half of which fills most of
 * the first cache for 32 tokens; whole lines of every codec. */
enum { RANGE_STEPS = 40, RANGE_COLS = 64 * RANGE_STEPS };
enum { CACHED_BYTES = 832 * 1024, MOST_TILES = 32 };

/* C of one block. The line behind it keeps blocks that are read side by side in different sets of
 * the first cache. */
typedef struct block_sums {
    _Alignas(64) amx_block_sums c;
    int32_t behind[16];
} block_sums;

/* What is unpacked at a time: planes, which are tiles from `tile` on, or those of a gate and of
 * what it gates in turn; columns from `col` on. */
typedef struct part {
    uint32_t tile, n_planes, col, n_cols;
} part;

/* What outputs of a part are made of. */
typedef struct fields {
    __m512 scale[MOST_TILES], offset[MOST_TILES];
    bool has_offset, by_lines; /* all outputs of the part are whole lines */
} fields;

/* Outputs of one block that are still to be written: rows from `row` on of n tokens from t on. */
typedef struct outputs {
    const block_sums *sums;
    uint32_t plane, t, row, n;
} outputs;

typedef struct work {
    tiles m[2];
    whit_gate_fn *gate; /* of m[0] and m[1]; NULL: m[0] alone */
    const whit_acts *x;
    uint8_t *quads; /* unpacked planes, `tile_quads` bytes apart */
    size_t tile_quads;
    block_sums *sums; /* (blocks of tokens, pairs of planes): what waits for the next range */
    float *y;
    size_t y_stride;
    fields fields;
    outputs outputs;
    block_sums finished[2]; /* of the block whose outputs are written, and of the one after it */
    uint32_t n_finished;
    amx_state amx;
} work;

static uint32_t range_cols(uint32_t n_cols, uint32_t col)
{
    return tiles_min(n_cols - col, RANGE_COLS);
}

/* Bytes of one unpacked tile. */
static size_t tile_quads_bytes(uint32_t n_cols)
{
    return (size_t)quads_written(range_cols(n_cols, 0)) * WHIT_LINE_BYTES;
}

static uint32_t cached_tiles(uint32_t n_cols)
{
    return tiles_min((uint32_t)(CACHED_BYTES / tile_quads_bytes(n_cols)) / B_TILES * B_TILES,
                     MOST_TILES);
}

/* Blocks of tokens whose C waits: all of them where a row takes several ranges. */
static uint32_t kept_blocks(uint32_t n_cols, uint32_t n_tokens)
{
    uint32_t n = tiles_min(n_tokens, MOST_TOKENS);
    return n_cols > RANGE_COLS ? (n + BLOCK_TOKENS - 1) / BLOCK_TOKENS : 0;
}

/* ---- unpacking ------------------------------------------------------------------------------ */

/* The matrix of plane i of a part, and its tile. */
INLINE const tiles *plane_at(const work *s, const part *p, uint32_t i, uint32_t *tile)
{
    *tile = p->tile + (s->gate ? i / 2 : i);
    return &s->m[s->gate ? i % 2 : 0];
}

INLINE const uint8_t *plane_lines(const int codec, const work *s, const part *p, uint32_t i)
{
    uint32_t tile;
    const tiles *m = plane_at(s, p, i, &tile);
    size_t first = p->col / (4 * (uint32_t)quads_of_line(codec));
    return m->codes + tile * m->tile_bytes + first * WHIT_LINE_BYTES;
}

INLINE void unpack_part(const int codec, const work *s, const part *p)
{
    uint32_t n_lines = lines_of(codec, p->n_cols), tile;
    for (uint32_t i = 0; i < p->n_planes; i++) {
        const tiles *m = plane_at(s, p, i, &tile);
        const uint8_t *line = plane_lines(codec, s, p, i);
        uint8_t *out = s->quads + i * s->tile_quads;
        for (uint32_t l = 0; l < n_lines; l++, line += WHIT_LINE_BYTES) {
            if (codec != WHIT_CODEC_I8S)
                unpack_line(codec, load_line(line), out, WHIT_LINE_BYTES);
            else if (l % 16 == 0)
                unpack_i8s(m, tile, p->col / 8 + l, out, WHIT_LINE_BYTES);
            out += quads_of_line(codec) * WHIT_LINE_BYTES;
        }
    }
}

/* ---- outputs -------------------------------------------------------------------------------- */

INLINE void load_fields(work *s, const part *p)
{
    fields *f = &s->fields;
    const uint32_t n_tiles = p->n_planes / (s->gate ? 2 : 1);
    const bool is_whole = p->n_planes % B_TILES == 0 &&
                          (p->tile + n_tiles) * WHIT_TILE_ROWS <= s->m[0].w->type.n_rows;
    f->has_offset = s->m[0].has_offset;
    f->by_lines = is_whole && (uintptr_t)s->y % WHIT_LINE_BYTES == 0 &&
                  s->y_stride * sizeof *s->y % WHIT_LINE_BYTES == 0;
    for (uint32_t i = 0; i < p->n_planes; i++) {
        uint32_t tile;
        const tiles *m = plane_at(s, p, i, &tile);
        f->scale[i] = load_field(m, tile, NULL, 0, 0);
        f->offset[i] = f->has_offset ? load_field(m, tile, NULL, 0, 1) : _mm512_setzero_ps();
    }
}

/* ReLU^2 without a call, which costs as much as the row. */
INLINE __m512 gated(const work *s, __m512 gate, __m512 up)
{
    if (s->gate == whit_relu2_mul_avx512) {
        const __m512 positive = _mm512_max_ps(_mm512_setzero_ps(), gate);
        return _mm512_mul_ps(_mm512_mul_ps(positive, positive), up);
    }
    _Alignas(64) float gates[WHIT_TILE_ROWS], ups[WHIT_TILE_ROWS];
    _mm512_store_ps(gates, gate);
    _mm512_store_ps(ups, up);
    s->gate(gates, ups, WHIT_TILE_ROWS, gates);
    return _mm512_load_ps(gates);
}

/* One more row of the outputs: both planes of a token, or what is gated. */
INLINE void write_row(const int codec, work *s, const part *p)
{
    outputs *o = &s->outputs;
    const fields *f = &s->fields;
    const uint32_t r = o->row++, token = o->t + r, i = o->plane;
    const int32_t sum_q = s->x->sums[token], *sum = o->sums->c[r / 16][0][r % 16];
    const __m512 scale_x = _mm512_set1_ps(s->x->scales[token]);
    __m512 out[B_TILES];
#pragma GCC unroll 2
    for (uint32_t b = 0; b < B_TILES; b++) {
        const __m512i sums = _mm512_load_si512(sum + b * AMX_ROWS * 16);
        out[b] = _mm512_fmadd_ps(true_sum(codec, sums, sum_q),
                                 _mm512_mul_ps(f->scale[i + b], scale_x), _mm512_setzero_ps());
        if (f->has_offset)
            out[b] = _mm512_fmadd_ps(_mm512_mul_ps(f->offset[i + b], scale_x),
                                     _mm512_set1_ps((float)sum_q), out[b]);
    }
    const uint32_t tile = p->tile + (s->gate ? i / 2 : i);
    float *y = s->y + token * s->y_stride + (size_t)tile * WHIT_TILE_ROWS;
    if (s->gate) out[0] = gated(s, out[0], out[1]);
    if (f->by_lines) {
        _mm512_stream_ps(y, out[0]);
        if (!s->gate) _mm512_stream_ps(y + WHIT_TILE_ROWS, out[1]);
        return;
    }
    store_outputs(y, rows_mask(&s->m[0], tile), out[0]);
    if (!s->gate && i + 1 < p->n_planes)
        store_outputs(y + WHIT_TILE_ROWS, rows_mask(&s->m[0], tile + 1), out[1]);
}

INLINE void write_rest(const int codec, work *s, const part *p)
{
    while (s->outputs.row < s->outputs.n) write_row(codec, s, p);
}

/* ---- multiplying ---------------------------------------------------------------------------- */

/* C += A times B over one step. A stays in the first cache or does not. */
#define MULTIPLY_STEP(LOAD_A, q, b0, b1)                                                           \
    do {                                                                                           \
        AMX_STREAM(amx, 6, b0, 64);                                                                \
        LOAD_A(amx, 4, q, a_row);                                                                  \
        AMX_STREAM(amx, 7, b1, 64);                                                                \
        AMX_MULTIPLY(amx, 0, 4, 6);                                                                \
        AMX_MULTIPLY(amx, 1, 4, 7);                                                                \
        if (n_a == 2) {                                                                            \
            LOAD_A(amx, 5, (q) + 16 * a_row, a_row);                                               \
            AMX_MULTIPLY(amx, 2, 5, 6);                                                            \
            AMX_MULTIPLY(amx, 3, 5, 7);                                                            \
        }                                                                                          \
        if (s->outputs.row < s->outputs.n) write_row(codec, s, p);                                 \
    } while (0)

/* Planes i and i + 1 of a part times the tokens of a block, n_a tiles of A from t on; C from zero
 * or from `from`, to `to`. Outputs that are due are written meanwhile. */
INLINE void multiply_pair(const int codec, const int n_a, work *s, const part *p, uint32_t i,
                          uint32_t t, const block_sums *from, block_sums *to)
{
    amx_state *amx = &s->amx;
    const uint32_t n_steps = (p->n_cols + 63) / 64, half = n_steps / 2;
    const size_t q_far = 64 * (size_t)half, b_far = 1024 * (size_t)half;
    const size_t a_row = s->x->stride;
    const int8_t *q = s->x->i8 + t * a_row + p->col;
    const uint8_t *b0 = s->quads + i * s->tile_quads;
    const uint8_t *b1 = b0 + (i + 1 < p->n_planes ? s->tile_quads : 0);
    (void)amx;
    amx_written();
    if (!from) {
        AMX_ZERO(amx, 0);
        AMX_ZERO(amx, 1);
        AMX_ZERO(amx, 2);
        AMX_ZERO(amx, 3);
    } else {
        AMX_LOAD(amx, 0, from->c[0][0], 64);
        AMX_LOAD(amx, 1, from->c[0][1], 64);
        if (n_a == 2) {
            AMX_LOAD(amx, 2, from->c[1][0], 64);
            AMX_LOAD(amx, 3, from->c[1][1], 64);
        }
    }
    for (uint32_t k = 0; k < half; k++) {
        MULTIPLY_STEP(AMX_LOAD, q, b0, b1);
        MULTIPLY_STEP(AMX_STREAM, q + q_far, b0 + b_far, b1 + b_far);
        q += 64, b0 += 1024, b1 += 1024;
        if (k == half / 2) AMX_STORE(amx, 6, to->c[0][0], 64); /* keeps stores quick */
    }
    if (n_steps % 2) MULTIPLY_STEP(AMX_STREAM, q + q_far, b0 + b_far, b1 + b_far);
    AMX_STORE(amx, 0, to->c[0][0], 64);
    AMX_STORE(amx, 1, to->c[0][1], 64);
    if (n_a == 2) {
        AMX_STORE(amx, 2, to->c[1][0], 64);
        AMX_STORE(amx, 3, to->c[1][1], 64);
    }
    amx_written();
}

/* A part times n tokens from t on, 32 at most; `sums`: what waits between ranges, by pairs. */
INLINE void multiply_block(const int codec, const int n_a, work *s, const part *p, uint32_t t,
                           uint32_t n, block_sums *sums)
{
    const bool is_last = p->col + p->n_cols == s->x->n_cols;
    for (uint32_t i = 0; i < p->n_planes; i += B_TILES, sums++) {
        block_sums *to = is_last ? &s->finished[s->n_finished++ % 2] : sums;
        multiply_pair(codec, n_a, s, p, i, t, p->col ? sums : NULL, to);
        write_rest(codec, s, p);
        if (is_last) s->outputs = (outputs){.sums = to, .plane = i, .t = t, .n = n};
    }
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* A part times tokens [begin, end). */
INLINE void run_part(const int codec, work *s, const part *p, uint32_t begin, uint32_t end)
{
    const uint32_t n_pairs = (p->n_planes + B_TILES - 1) / B_TILES;
    uint32_t n_configured = 0;
    unpack_part(codec, s, p);
    load_fields(s, p);
    for (uint32_t t = begin; t < end; t += BLOCK_TOKENS) {
        uint32_t n = tiles_min(BLOCK_TOKENS, end - t);
        block_sums *sums = s->sums + (t - begin) / BLOCK_TOKENS * n_pairs;
        if (n != n_configured) {
            amx_config config = amx_config_for(n);
            amx_begin(&s->amx, &config);
            n_configured = n;
        }
        if (n > 16)
            multiply_block(codec, 2, s, p, t, n, sums);
        else
            multiply_block(codec, 1, s, p, t, n, sums);
    }
    write_rest(codec, s, p);
}

/* w alone, or w the gate of `gated`. */
INLINE void run(const int codec, const whit_tensor *w, const whit_tensor *gated, whit_gate_fn *gate,
                const whit_acts *x, uint32_t tile_begin, uint32_t tile_end, float *y,
                size_t y_stride, uint8_t *quads)
{
    if (tile_begin == tile_end) return;
    const uint32_t n_cols = w->type.n_cols, planes = gate ? 2 : 1, cached = cached_tiles(n_cols);
    work s = {
        .m = {tiles_of(w)}, .gate = gate, .x = x, .quads = quads, .y = y, .y_stride = y_stride};
    if (gate) s.m[1] = tiles_of(gated);
    s.tile_quads = tile_quads_bytes(n_cols);
    s.sums = (block_sums *)(void *)(quads + cached * s.tile_quads);
    /* As many planes in every part, or the last would have little to do per reading of A. */
    const uint32_t n_planes = (tile_end - tile_begin) * planes;
    const uint32_t n_parts = (n_planes + cached - 1) / cached;
    const uint32_t most = ((n_planes + n_parts - 1) / n_parts + B_TILES - 1) / B_TILES * B_TILES;
    for (uint32_t t = 0; t < x->n_tokens; t += MOST_TOKENS) {
        uint32_t end = tiles_min(t + MOST_TOKENS, x->n_tokens);
        for (uint32_t i = 0; i < n_planes; i += most) {
            part p = {.tile = tile_begin + i / planes, .n_planes = tiles_min(most, n_planes - i)};
            for (; p.col < n_cols; p.col += p.n_cols) {
                p.n_cols = range_cols(n_cols, p.col);
                run_part(codec, &s, &p, t, end);
            }
        }
    }
    amx_end(&s.amx);
    _mm_sfence();
}

static size_t scratch_bytes(const whit_tensor_type *type, const whit_acts_spec *spec,
                            uint32_t n_tokens)
{
    (void)spec;
    size_t most = cached_tiles(type->n_cols);
    return most * tile_quads_bytes(type->n_cols) +
           kept_blocks(type->n_cols, n_tokens) * (most / B_TILES) * sizeof(block_sums);
}

#define MATMUL(lower, upper)                                                                       \
    static bool accepts_##lower(const whit_tensor_type *type, const whit_acts_spec *spec)          \
    {                                                                                              \
        return type->codec == WHIT_CODEC_##upper && spec->kind == WHIT_ACTS_I8 && !spec->step;     \
    }                                                                                              \
    static void run_##lower(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin,         \
                            uint32_t tile_end, float *y, size_t y_stride, void *scratch)           \
    {                                                                                              \
        run(WHIT_CODEC_##upper, w, NULL, NULL, x, tile_begin, tile_end, y, y_stride, scratch);     \
    }                                                                                              \
    static void run_gated_##lower(const whit_tensor *w, const whit_tensor *gated,                  \
                                  whit_gate_fn *gate, const whit_acts *x, uint32_t tile_begin,     \
                                  uint32_t tile_end, float *y, size_t y_stride, void *scratch)     \
    {                                                                                              \
        run(WHIT_CODEC_##upper, w, gated, gate, x, tile_begin, tile_end, y, y_stride, scratch);    \
    }                                                                                              \
    const whit_matmul_kernel AMX_NAME(whit_matmul_i8_##lower##_rows_amx) = {                       \
        .name = "matmul_i8_" #lower "_rows_amx",                                                   \
        .isa = AMX_LEVEL,                                                                          \
        .min_tokens = 13,                                                                          \
        .max_tokens = UINT32_MAX,                                                                  \
        .accepts = accepts_##lower,                                                                \
        .scratch_bytes = scratch_bytes,                                                            \
        .run = run_##lower,                                                                        \
        .run_gated = run_gated_##lower,                                                            \
    };

MATMUL(t2, T2)
MATMUL(t5, T5)
MATMUL(i8, I8)
MATMUL(i8s, I8S)
