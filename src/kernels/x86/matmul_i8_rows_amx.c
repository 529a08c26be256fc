/* SPDX-License-Identifier: MIT
 * Coded weights times many int8 columns, one scale per tensor or row: AMX.
 *
 * Tiles are as in matmul_i8_block_amx.c: C (16 tokens x 16 rows) += A (activations as they lie) *
 * B (unpacked quads), two A times two B. A core reads its second cache hardly faster than it
 * multiplies, so one of the two must come from the first: a piece of A, 32 tokens by 1,280 columns,
 * stays there while all unpacked tiles of the matrix pass by, which are loaded with the hint not to
 * stay. Between the pieces of K, C waits in `sums`.
 *
 * Three habits of the hardware shape the rest (docs/perf-log.md has the figures). A tile's load
 * waits for every store under way whose address ends in the same twelve bits, so nothing is
 * unpacked or written out between multiplications. A store of a tile register takes 0.3 us where
 * the last one is 0.8 us ago: pieces are shorter. Outputs are a stream larger than any cache: they
 * go past the caches where lines allow it. */
#include "kernels/x86/amx_block.h"
#include "kernels/x86/unpack_avx512.h"

enum { MOST_TOKENS = 512 };
/* Steps are of 64 columns. A range of columns is unpacked at a time, as much of it as the second
 * cache holds beside the activations and C; whole lines of every codec. */
enum { PIECE_STEPS = 20, RANGE_STEPS = 40, RANGE_COLS = 64 * RANGE_STEPS };
enum { CACHED_BYTES = 832 * 1024, MOST_TILES = 32 };

/* C of one block. The line behind it keeps blocks that are read side by side in different sets of
 * the first cache. */
typedef struct block_sums {
    amx_block_sums c;
    int32_t behind[16];
} block_sums;

/* What is unpacked at a time: planes, which are tiles from `tile` on, or those of a gate and of
 * what it gates in turn; columns from `col` on. */
typedef struct part {
    uint32_t tile, n_planes, col, n_cols;
} part;

typedef struct work {
    tiles m[2];
    whit_gate_fn *gate; /* of m[0] and m[1]; NULL: m[0] alone */
    const whit_acts *x;
    uint8_t *quads; /* unpacked planes, `tile_quads` bytes apart */
    size_t tile_quads;
    block_sums *sums; /* (blocks of tokens, pairs of planes) */
    float *y;
    size_t y_stride;
    /* What will be unpacked next, asked for `fetch_lines` at a time. */
    part next;
    uint32_t next_plane, next_line, fetch_lines;
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

/* Blocks of tokens whose C is kept: all of them where a row takes several ranges. */
static uint32_t kept_blocks(uint32_t n_cols, uint32_t n_tokens)
{
    uint32_t n = tiles_min(n_tokens, MOST_TOKENS);
    return n_cols > RANGE_COLS ? (n + BLOCK_TOKENS - 1) / BLOCK_TOKENS : 1;
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

/* Asks for some lines of the part that is unpacked next. */
INLINE void fetch_next(const int codec, work *s)
{
    uint32_t n_lines = lines_of(codec, s->next.n_cols);
    for (uint32_t i = 0; i < s->fetch_lines && s->next_plane < s->next.n_planes; i++) {
        const uint8_t *lines = plane_lines(codec, s, &s->next, s->next_plane);
        _mm_prefetch((const char *)lines + (size_t)s->next_line * WHIT_LINE_BYTES, _MM_HINT_T1);
        if (++s->next_line < n_lines) continue;
        s->next_line = 0;
        s->next_plane++;
    }
}

/* ---- multiplying ---------------------------------------------------------------------------- */

/* An unpacked part times the tokens of a block (32 at most, n_a tiles of A) from t on. */
INLINE void multiply_part(const int codec, const int n_a, work *s, const part *p, uint32_t t,
                          block_sums *sums)
{
    const int8_t *q = s->x->i8 + t * s->x->stride + p->col;
    uint32_t n_steps = (p->n_cols + 63) / 64;
    for (uint32_t k = 0; k < n_steps; k += PIECE_STEPS)
        for (uint32_t i = 0; i < p->n_planes; i += B_TILES) {
            const uint8_t *b0 = s->quads + i * s->tile_quads + 1024 * (size_t)k;
            const uint8_t *b1 = b0 + (i + 1 < p->n_planes ? s->tile_quads : 0);
            fetch_next(codec, s);
            amx_multiply_block(&s->amx, n_a, q + 64 * (size_t)k, s->x->stride, b0, b1,
                               tiles_min(PIECE_STEPS, n_steps - k), p->col + k == 0,
                               sums[i / B_TILES].c);
        }
}

/* ---- outputs -------------------------------------------------------------------------------- */

/* What outputs of a part are made of. */
typedef struct fields {
    __m512 scale[MOST_TILES], offset[MOST_TILES];
    bool has_offset;
} fields;

INLINE fields fields_of(const work *s, const part *p)
{
    fields f;
    f.has_offset = s->m[0].has_offset;
    for (uint32_t i = 0; i < p->n_planes; i++) {
        uint32_t tile;
        const tiles *m = plane_at(s, p, i, &tile);
        f.scale[i] = load_field(m, tile, NULL, 0, 0);
        f.offset[i] = f.has_offset ? load_field(m, tile, NULL, 0, 1) : _mm512_setzero_ps();
    }
    return f;
}

/* Outputs of one token, the planes at `y`, or those of two matrices in turn at `y` and `gated`. */
INLINE void add_up(const int codec, const bool has_offset, const bool is_whole, const work *s,
                   const part *p, const fields *f, const block_sums *sums, uint32_t token,
                   uint32_t r, float *y, float *gated)
{
    const int32_t sum_q = s->x->sums[token];
    const __m512 scale_x = _mm512_set1_ps(s->x->scales[token]),
                 sum_f = _mm512_set1_ps((float)sum_q);
    const int32_t *sum = sums->c[r / 16][0][r % 16];
    for (uint32_t i = 0; i < p->n_planes; i += B_TILES, sum += sizeof *sums / sizeof *sum)
#pragma GCC unroll 2
        for (uint32_t b = 0; b < B_TILES; b++) {
            __m512 out =
                _mm512_fmadd_ps(true_sum(codec, _mm512_load_si512(sum + b * AMX_ROWS * 16), sum_q),
                                _mm512_mul_ps(f->scale[i + b], scale_x), _mm512_setzero_ps());
            if (has_offset)
                out = _mm512_fmadd_ps(_mm512_mul_ps(f->offset[i + b], scale_x), sum_f, out);
            if (gated)
                _mm512_store_ps((b ? gated : y) + i / 2 * WHIT_TILE_ROWS, out);
            else if (is_whole)
                _mm512_stream_ps(y + (i + b) * WHIT_TILE_ROWS, out);
            else if (i + b < p->n_planes)
                store_outputs(y + (i + b) * WHIT_TILE_ROWS, rows_mask(&s->m[0], p->tile + i + b),
                              out);
        }
}

/* Whole lines past the caches. */
INLINE void copy_out(float *y, const float *from, uint32_t n, bool by_lines)
{
    uint32_t i = 0;
    for (; by_lines && i + 16 <= n; i += 16) _mm512_stream_ps(y + i, _mm512_load_ps(from + i));
    if (i < n) memcpy(y + i, from + i, (n - i) * sizeof *y);
}

/* Outputs of n tokens from t on. */
INLINE void write_out(const int codec, const work *s, const part *p, uint32_t t, uint32_t n,
                      const block_sums *sums)
{
    const uint32_t first_row = p->tile * WHIT_TILE_ROWS, n_tiles = p->n_planes / (s->gate ? 2 : 1);
    const uint32_t n_rows = tiles_min(n_tiles * WHIT_TILE_ROWS, s->m[0].w->type.n_rows - first_row);
    const fields f = fields_of(s, p);
    _Alignas(64) float gate[MOST_TILES * WHIT_TILE_ROWS / 2], up[MOST_TILES * WHIT_TILE_ROWS / 2];
    amx_written();
    for (uint32_t r = 0; r < n; r++) {
        float *y = s->y + (t + r) * s->y_stride + first_row;
        const bool by_lines = (uintptr_t)y % WHIT_LINE_BYTES == 0;
        if (s->gate) {
            add_up(codec, f.has_offset, true, s, p, &f, sums, t + r, r, gate, up);
            s->gate(gate, up, n_rows, gate);
            copy_out(y, gate, n_rows, by_lines);
        } else if (by_lines && n_rows == n_tiles * WHIT_TILE_ROWS && n_tiles % B_TILES == 0 &&
                   !f.has_offset) {
            add_up(codec, false, true, s, p, &f, sums, t + r, r, y, NULL);
        } else {
            add_up(codec, f.has_offset, false, s, p, &f, sums, t + r, r, y, NULL);
        }
    }
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* A part times tokens [begin, end). */
INLINE void run_part(const int codec, work *s, const part *p, uint32_t begin, uint32_t end)
{
    const uint32_t n_pairs = (p->n_planes + B_TILES - 1) / B_TILES;
    const bool is_last = p->col + p->n_cols == s->x->n_cols, keeps = s->x->n_cols > RANGE_COLS;
    uint32_t n_configured = 0;
    for (uint32_t t = begin; t < end; t += BLOCK_TOKENS) {
        uint32_t n = tiles_min(BLOCK_TOKENS, end - t);
        block_sums *sums = s->sums + (keeps ? (t - begin) / BLOCK_TOKENS * n_pairs : 0);
        if (n != n_configured) {
            amx_config config = amx_config_for(n);
            amx_begin(&s->amx, &config);
            n_configured = n;
        }
        if (n > 16)
            multiply_part(codec, 2, s, p, t, sums);
        else
            multiply_part(codec, 1, s, p, t, sums);
        if (is_last) write_out(codec, s, p, t, n, sums);
    }
}

/* Plans what to ask for while a part is multiplied by n tokens: the next range, or the next tiles
 * from the first column on. Tiles behind this call's are likely the next one's. */
INLINE void plan_fetching(const int codec, work *s, const part *p, uint32_t most_planes, uint32_t n)
{
    const whit_tensor_type *type = &s->m[0].w->type;
    const uint32_t planes = s->gate ? 2 : 1;
    part next = *p;
    next.col += p->n_cols;
    if (next.col == type->n_cols) {
        uint32_t n_tiles = (type->n_rows + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS;
        next.col = 0;
        next.tile += p->n_planes / planes;
        next.n_planes = tiles_min(most_planes, (n_tiles - next.tile) * planes);
    }
    next.n_cols = range_cols(type->n_cols, next.col);
    uint32_t n_blocks = (n + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
    uint32_t n_pieces = (p->n_cols + 64 * PIECE_STEPS - 1) / (64 * PIECE_STEPS);
    uint32_t n_times = n_blocks * n_pieces * ((p->n_planes + B_TILES - 1) / B_TILES);
    s->next = next;
    s->next_plane = s->next_line = 0;
    s->fetch_lines = (next.n_planes * lines_of(codec, next.n_cols) + n_times - 1) / n_times;
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
                plan_fetching(codec, &s, &p, most, end - t);
                unpack_part(codec, &s, &p);
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
