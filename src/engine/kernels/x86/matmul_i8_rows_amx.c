/* SPDX-License-Identifier: MIT
 * Computes GEMM of coded weights and int8 activations with AMX, for one scale per tensor or row.
 *
 *   microtile    MR = 32 rows (two tiles) x NR = 32 tokens, as in matmul_i8_block_amx.c
 *   KC           all of K: C stays in its registers for a whole row
 *   registers    8 of tiles: 4 of C, 2 of A, 2 of B
 *   L1           quads of one span of k (128 of t2, 320 of t5), 4 or 10 KB, and of the next: lines
 *                are unpacked in between the multiplications of the span before, again for every
 *                32 tokens, because a core reads L2 hardly faster than it multiplies
 *   L2           a panel of coded lines, PANEL_BYTES, multiplied by all tokens; 32 rows of A, and the
 *                next 32, which are prefetched
 *
 * Three properties of the hardware determine the rest (docs/dev/perf/prefill.md has the figures). A tile
 * load waits for every pending store whose address ends in the same twelve bits: quads are unpacked to
 * the addresses that tiles have just been loaded from, and rows of A are an odd number of lines apart.
 * Tile instructions execute in program order: stores of C alternate with the first products of the
 * next block. And a store of a tile takes 0.3 us if the last one was 0.8 us ago, so dummy stores are
 * inserted. Outputs of one block are written between the steps of the next, by non-temporal stores if
 * they are many. */
#include "kernels/x86/amx_block.h"
#include "kernels/x86/unpack_avx512.h"

enum { STEP_COLS = 64 };
/* Number of bytes of lines that stay in L2 while they are multiplied by all tokens. */
enum { PANEL_BYTES = 1024 * 1024 };
/* Outputs of more bytes than this are written by non-temporal stores, unless products are added to old outputs. */
enum { STREAMED_BYTES = 8 * 1024 * 1024 };
/* Number of tokens per call (slice_tokens), so that a core reads only activations that it computed itself; used if
 * these have at most PART_BYTES, so that they fit into L2, and outputs are not streamed. */
enum { PART_TOKENS = 256, PART_BYTES = 1024 * 1024 };

/* Two tiles that are multiplied together: adjacent tiles, or the same tile of the gate and of the gated matrix. A
 * single last tile is used twice. */
typedef struct pair {
    const uint8_t *lines[B_TILES];
    uint32_t tile, n_outputs; /* n_outputs: number of output tiles; 0 with a gate, whose output is one tile */
} pair;

/* Returns the index of the pair's tile b in its matrix. */
INLINE uint32_t tile_of(const pair *p, uint32_t b)
{
    return p->tile + (b < p->n_outputs ? b : 0);
}

/* Outputs of a block that are not yet written: tokens [t, t + n). */
typedef struct outputs {
    __m512 scale[B_TILES], offset[B_TILES];
    __mmask16 mask[B_TILES];
    uint32_t tile, t, n;
} outputs;

typedef struct work {
    _Alignas(64) amx_block_sums sums;
    int32_t unused[AMX_ROWS][16];
    uint8_t rest[B_TILES][16][WHIT_LINE_BYTES]; /* copy of the lines of a tile's last span, if the span is not full */
    outputs outputs;
    tiles m[B_TILES];
    whit_gate_fn *gate; /* gate function of the products with m[0] and m[1]; NULL: a plain product, and m[1] equals
                         * m[0] */
    const whit_acts *x;
    uint8_t *span; /* quads of both tiles in the present span; flipping one bit of the address gives the next span */
    uint32_t n_steps, n_lines;
    size_t ahead; /* distance in bytes from the present activations to the rows of the next block that a pair
                   * prefetches */
    /* number of these rows, and number of rows of outputs, that a pair prefetches */
    uint32_t n_rows_ahead, n_prefetched;
    float *y;
    size_t y_stride;
    bool adds;    /* outputs are added to y instead of overwriting it */
    bool streams; /* outputs are written by non-temporal stores, because they exceed the cache */
    amx_state amx;
} work;

/* ---- unpacking ------------------------------------------------------------------------------ */

/* Returns the number of steps (64 columns) of a span, which consists of whole steps and whole lines. i8 is not
 * unpacked: its lines are used as quads. */
INLINE uint32_t span_steps(const int codec)
{
    return codec == WHIT_CODEC_T5 ? 5 : 2;
}
INLINE uint32_t span_lines(const int codec)
{
    return span_steps(codec) * 16 / (uint32_t)quads_of_line(codec);
}

/* Returns the distance in bytes between the quads of a pair's two tiles: 2 KB modulo 4 KB, so that their addresses
 * differ in the last twelve bits. The addresses of the two spans differ only in one higher bit. */
INLINE size_t plane_bytes(const int codec)
{
    return (span_steps(codec) + 1) / 4 * 4096 + 2048;
}
INLINE uintptr_t span_bytes(const int codec)
{
    return codec == WHIT_CODEC_T5 ? 16384 : 4096;
}

/* Divides the lines of a span of both tiles into n shares, and unpacks shares [begin, end) to quads. */
INLINE void unpack_shares(const int codec, const t5_tables *t5, const uint8_t *line0, const uint8_t *line1,
                          uint8_t *out, const uint32_t begin, const uint32_t end, const uint32_t n)
{
    const uint32_t lines = B_TILES * span_lines(codec), quads = (uint32_t)quads_of_line(codec);
    for (uint32_t j = lines * begin / n; j < lines * end / n; j++) {
        const uint32_t l = j / B_TILES, b = j % B_TILES;
        __m512i line = load_line((b ? line1 : line0) + l * WHIT_LINE_BYTES);
        uint8_t *to = out + b * plane_bytes(codec) + l * quads * WHIT_LINE_BYTES;
        if (codec == WHIT_CODEC_T5)
            unpack_t5_by(t5, line, to, WHIT_LINE_BYTES);
        else
            unpack_fields(whit_codec_bits((unsigned)codec), (int)quads, line, to, WHIT_LINE_BYTES);
        amx_written();
    }
}

/* ---- outputs -------------------------------------------------------------------------------- */

/* Returns the gated product f(gate) * up of sixteen outputs; ReLU^2 is inline, because a call would cost as much as the
 * computation. */
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

/* Writes the outputs that `mask` selects, of sixteen. */
INLINE void put(const work *s, float *y, __mmask16 mask, __m512 out)
{
    if (s->adds) out = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, y), out);
    if (s->streams)
        store_outputs(y, mask, out);
    else
        _mm512_mask_storeu_ps(y, mask, out);
}

/* Computes and writes row r of the outputs, which is one token: the outputs of both tiles, or the gated product. */
INLINE void write_row(const int codec, const work *s, uint32_t r)
{
    const outputs *o = &s->outputs;
    const uint32_t token = o->t + r;
    const int32_t sum_q = s->x->sums[token], *sum = s->sums[r / 16][0][r % 16];
    const __m512 scale_x = _mm512_set1_ps(s->x->scales[token]);
    __m512 out[B_TILES];
#pragma GCC unroll 2
    for (uint32_t b = 0; b < B_TILES; b++) {
        const __m512i sums = _mm512_load_si512(sum + b * AMX_ROWS * 16);
        out[b] =
            _mm512_fmadd_ps(true_sum(codec, sums, sum_q), _mm512_mul_ps(o->scale[b], scale_x), _mm512_setzero_ps());
        if (s->m[0].has_offset)
            out[b] = _mm512_fmadd_ps(_mm512_mul_ps(o->offset[b], scale_x), _mm512_set1_ps((float)sum_q), out[b]);
    }
    float *y = s->y + token * s->y_stride + (size_t)o->tile * WHIT_TILE_ROWS;
    if (s->gate)
        put(s, y, o->mask[0], gated(s, out[0], out[1]));
    else
        for (uint32_t b = 0; b < B_TILES; b++) put(s, y + b * WHIT_TILE_ROWS, o->mask[b], out[b]);
}

INLINE void write_rows(const int codec, const work *s, uint32_t r)
{
    for (; r < s->outputs.n; r++) write_row(codec, s, r);
}

/* Records a pair and tokens [t, t + n) as the outputs that are written next. */
INLINE void expect_outputs(work *s, const pair *p, uint32_t t, uint32_t n)
{
    outputs *o = &s->outputs;
    *o = (outputs){.tile = p->tile, .t = t, .n = n};
    for (uint32_t b = 0; b < B_TILES; b++) {
        const uint32_t tile = tile_of(p, b);
        if (b == 0 || b < p->n_outputs) o->mask[b] = rows_mask(&s->m[b], tile);
        o->scale[b] = load_field(&s->m[b], tile, NULL, 0, 0);
        if (s->m[b].has_offset) o->offset[b] = load_field(&s->m[b], tile, NULL, 0, 1);
    }
}

/* ---- multiplying ---------------------------------------------------------------------------- */

/* At the beginning of a block: stores tile register c of C, which has the sums of the previous block, and clears it. */
#define BEGIN(c)                                                                                                       \
    if (begins) {                                                                                                      \
        AMX_STORE(amx, c, s->sums[(c) / 2][(c) % 2], 64);                                                              \
        AMX_ZERO(amx, c);                                                                                              \
    }
#define UNPACK(begin, end)                                                                                             \
    if (codec != WHIT_CODEC_I8)                                                                                        \
        unpack_shares(codec, &t5, line0, line1, (uint8_t *)((uintptr_t)b ^ span_bytes(codec)), begin, end, 4 * n_span);

/* Prefetches a pair's outputs of one token while the pair is multiplied, because later stores would wait for their
 * cache lines one after the other. */
INLINE void prefetch_row(const work *s, const pair *p, uint32_t token)
{
    const float *y = s->y + token * s->y_stride + (size_t)p->tile * WHIT_TILE_ROWS;
    _mm_prefetch((const char *)y, _MM_HINT_T1);
    if (!s->gate) _mm_prefetch((const char *)(y + WHIT_TILE_ROWS), _MM_HINT_T1);
}

/* Multiplies a pair by the tokens of n_a tiles of A from t on. The pair's first span is already unpacked; at the end
 * the first span of the pair `after` is unpacked. Meanwhile the outputs of the previous block are written. Nothing in
 * this loop should spill to memory, because tile loads would wait for the store. */
INLINE void multiply_pair(const int codec, const int n_a, work *s, const pair *p, const pair *after, uint32_t t)
{
    const t5_tables t5 = codec == WHIT_CODEC_T5 ? t5_load_tables() : (t5_tables){0};
    amx_state *amx = &s->amx;
    const uint32_t n_span = span_steps(codec), most = span_lines(codec);
    const uint32_t rest = codec == WHIT_CODEC_I8 ? 0 : s->n_lines % most;
    const int8_t *q = s->x->i8 + t * s->x->stride;
    const uint8_t *line0 = p->lines[0], *line1 = p->lines[1], *b = s->span;
    (void)amx;
    for (uint32_t i = 0; i < rest; i++) {
        const size_t at = (s->n_lines - rest + i) * WHIT_LINE_BYTES;
        _mm512_store_si512(s->rest[0][i], load_line(line0 + at));
        _mm512_store_si512(s->rest[1][i], load_line(line1 + at));
    }
    amx_written();
    uint32_t k = 0;
    do {
        const uint8_t *b0 = codec == WHIT_CODEC_I8 ? line0 : b;
        const uint8_t *b1 = codec == WHIT_CODEC_I8 ? line1 : b + plane_bytes(codec);
        line0 += most * WHIT_LINE_BYTES, line1 += most * WHIT_LINE_BYTES;
        if (codec != WHIT_CODEC_I8 && k + 2 * n_span > s->n_steps) {
            line0 = s->rest[0][0], line1 = s->rest[1][0];
            if (k + n_span >= s->n_steps) line0 = after->lines[0], line1 = after->lines[1];
        }
#pragma GCC unroll 5
        for (uint32_t step = 0; step < n_span; step++, k++, q += STEP_COLS) {
            const size_t a_row = s->x->stride;
            const bool begins = step == 0 && k == 0;
            if (step > 0 && k == s->n_steps) {
                UNPACK(4 * step, 4 * n_span)
                break;
            }
            if (k - n_span < s->outputs.n) write_row(codec, s, k - n_span);
            AMX_LOAD(amx, 6, b0 + step * 1024, 64);
            AMX_STREAM(amx, 4, q, a_row);
            AMX_LOAD(amx, 7, b1 + step * 1024, 64);
            if (n_a == 2) AMX_STREAM(amx, 5, q + 16 * a_row, a_row);
            for (uint32_t i = 0; i < s->n_rows_ahead; i++)
                _mm_prefetch((const char *)q + s->ahead + i * a_row, _MM_HINT_T1);
            if (k < s->n_prefetched) prefetch_row(s, p, t + k);
            BEGIN(0)
            AMX_MULTIPLY(amx, 0, 4, 6);
            UNPACK(4 * step, 4 * step + 1)
            BEGIN(1)
            AMX_MULTIPLY(amx, 1, 4, 7);
            UNPACK(4 * step + 1, 4 * step + 2)
            BEGIN(2)
            if (n_a == 2) AMX_MULTIPLY(amx, 2, 5, 6);
            UNPACK(4 * step + 2, 4 * step + 3)
            BEGIN(3)
            if (n_a == 2) AMX_MULTIPLY(amx, 3, 5, 7);
            UNPACK(4 * step + 3, 4 * step + 4)
        }
        if (k % 16 < n_span) AMX_STORE(amx, 6, s->unused, 64); /* a dummy store keeps later stores fast */
        b = (const uint8_t *)((uintptr_t)b ^ span_bytes(codec));
        amx_written();
    } while (k < s->n_steps);
    s->span = (uint8_t *)(uintptr_t)b;
    write_rows(codec, s, k > n_span ? k - n_span : 0);
}

/* Stores the sums in the tile registers of C, and computes and writes their outputs. */
INLINE void flush(const int codec, work *s)
{
    amx_state *amx = &s->amx;
    (void)amx;
    amx_written();
    AMX_STORE(amx, 0, s->sums[0][0], 64);
    AMX_STORE(amx, 1, s->sums[0][1], 64);
    AMX_STORE(amx, 2, s->sums[1][0], 64);
    AMX_STORE(amx, 3, s->sums[1][1], 64);
    amx_written();
    write_rows(codec, s, 0);
    s->outputs.n = 0;
}

/* ---- all tiles ------------------------------------------------------------------------------ */

/* Returns the number of output tiles per pair. */
INLINE uint32_t pair_tiles(const work *s)
{
    return s->gate ? 1 : B_TILES;
}
INLINE uint32_t pairs_of(const work *s, uint32_t n_tiles)
{
    return (n_tiles + pair_tiles(s) - 1) / pair_tiles(s);
}

/* Returns pair i of tiles [begin, end). */
INLINE pair pair_at(const work *s, uint32_t i, uint32_t begin, uint32_t end)
{
    pair p = {.tile = begin + pair_tiles(s) * i};
    if (!s->gate) p.n_outputs = tiles_min(end - p.tile, B_TILES);
    for (uint32_t b = 0; b < B_TILES; b++) p.lines[b] = s->m[b].codes + tile_of(&p, b) * s->m[b].tile_bytes;
    return p;
}

typedef void multiply_fn(work *s, const pair *p, const pair *after, uint32_t t);

/* Multiplies tiles [begin, end) by all tokens. multiply[0] multiplies blocks of at most 16 tokens, multiply[1] larger
 * blocks. */
INLINE void run_panel(const int codec, work *s, multiply_fn *const multiply[2], uint32_t begin, uint32_t end)
{
    const t5_tables t5 = codec == WHIT_CODEC_T5 ? t5_load_tables() : (t5_tables){0};
    const uint32_t n_pairs = pairs_of(s, end - begin);
    const uint32_t n_tokens = s->x->n_tokens;
    const pair first = pair_at(s, 0, begin, end);
    uint32_t n_configured = 0;
    if (codec != WHIT_CODEC_I8) unpack_shares(codec, &t5, first.lines[0], first.lines[1], s->span, 0, 1, 1);
    for (uint32_t t = 0; t < n_tokens; t += BLOCK_TOKENS) {
        const uint32_t n = tiles_min(BLOCK_TOKENS, n_tokens - t);
        if (n != n_configured) {
            if (n_configured) flush(codec, s);
            amx_config config = amx_config_for(n);
            amx_begin(&s->amx, &config);
            n_configured = n;
        }
        s->n_prefetched = s->streams ? 0 : n;
        for (uint32_t i = 0; i < n_pairs; i++) {
            const pair p = pair_at(s, i, begin, end);
            const pair after = pair_at(s, i + 1 < n_pairs ? i + 1 : 0, begin, end);
            const uint32_t row = BLOCK_TOKENS * i / n_pairs;
            s->ahead = (BLOCK_TOKENS + row) * s->x->stride;
            s->n_rows_ahead = BLOCK_TOKENS * (i + 1) / n_pairs - row;
            if (t + 2 * BLOCK_TOKENS > n_tokens) s->n_rows_ahead = 0;
            multiply[n > AMX_ROWS](s, &p, &after, t);
            expect_outputs(s, &p, t, n);
        }
    }
    flush(codec, s);
}

/* Without `gate` (NULL), multiplies x by w; with it, computes the gated product of w, which is the gate matrix, and
 * `gated`. */
INLINE void run(const int codec, multiply_fn *const multiply[2], const whit_tensor *w, const whit_tensor *gated,
                whit_gate_fn *gate, bool adds, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end, float *y,
                size_t y_stride, uint8_t *scratch)
{
    if (tile_begin == tile_end) return;
    const uintptr_t both = 2 * span_bytes(codec);
    work s;
    s.m[0] = tiles_of(w);
    s.m[1] = gate ? tiles_of(gated) : s.m[0];
    s.gate = gate, s.x = x, s.y = y, s.y_stride = y_stride, s.outputs.n = 0;
    s.adds = adds;
    s.streams = !adds && x->n_tokens * y_stride * sizeof *y > STREAMED_BYTES;
    s.span = (uint8_t *)(((uintptr_t)scratch + both - 1) / both * both);
    s.n_steps = x->n_cols / STEP_COLS, s.n_lines = lines_of(codec, x->n_cols);
    /* Panels have equal sizes, because a small last panel would do little work per read of A. */
    const uint32_t n_pairs = pairs_of(&s, tile_end - tile_begin);
    const uint32_t most = (uint32_t)(PANEL_BYTES / (B_TILES * s.m[0].tile_bytes)) + 1;
    const uint32_t n_panels = (n_pairs + most - 1) / most;
    const uint32_t n_tiles = (n_pairs + n_panels - 1) / n_panels * pair_tiles(&s);
    for (uint32_t i = tile_begin; i < tile_end; i += n_tiles)
        run_panel(codec, &s, multiply, i, tiles_min(i + n_tiles, tile_end));
    amx_end(&s.amx);
    _mm_sfence();
}

static size_t scratch_bytes(const whit_tensor_type *type, const whit_acts_spec *spec, uint32_t n_tokens)
{
    (void)spec, (void)n_tokens;
    return 4 * span_bytes(type->codec); /* two spans, and room to align them to twice the size of a span */
}

static uint32_t slice_tokens(const whit_tensor_type *type, uint32_t n_tokens)
{
    const bool stays = (uint64_t)PART_TOKENS * type->n_cols <= PART_BYTES &&
        (uint64_t)n_tokens * type->n_rows * sizeof(float) <= STREAMED_BYTES;
    return stays ? PART_TOKENS : n_tokens;
}

static bool accepts(const int codec, const whit_tensor_type *type, const whit_acts_spec *spec)
{
    return type->codec == codec && spec->kind == WHIT_ACTS_I8 && !spec->step && type->n_cols % STEP_COLS == 0 &&
        type->n_cols >= STEP_COLS * span_steps(codec);
}

#define MULTIPLY(lower, upper, n_a, count)                                                                             \
    static __attribute__((noinline)) void multiply_##count##_##lower(work *s, const pair *p, const pair *after,        \
                                                                     uint32_t t)                                       \
    {                                                                                                                  \
        multiply_pair(WHIT_CODEC_##upper, n_a, s, p, after, t);                                                        \
    }
#define MATMUL(lower, upper)                                                                                           \
    MULTIPLY(lower, upper, 1, one)                                                                                     \
    MULTIPLY(lower, upper, 2, two)                                                                                     \
    static multiply_fn *const multiply_##lower[2] = {multiply_one_##lower, multiply_two_##lower};                      \
    static bool accepts_##lower(const whit_tensor_type *type, const whit_acts_spec *spec)                              \
    {                                                                                                                  \
        return accepts(WHIT_CODEC_##upper, type, spec);                                                                \
    }                                                                                                                  \
    static void run_##lower(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,          \
                            float *y, size_t y_stride, void *scratch)                                                  \
    {                                                                                                                  \
        run(WHIT_CODEC_##upper, multiply_##lower, w, NULL, NULL, false, x, tile_begin, tile_end, y, y_stride,          \
            scratch);                                                                                                  \
    }                                                                                                                  \
    static void run_added_##lower(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,    \
                                  float *y, size_t y_stride, void *scratch)                                            \
    {                                                                                                                  \
        run(WHIT_CODEC_##upper, multiply_##lower, w, NULL, NULL, true, x, tile_begin, tile_end, y, y_stride, scratch); \
    }                                                                                                                  \
    static void run_gated_##lower(const whit_tensor *w, const whit_tensor *gated, whit_gate_fn *gate,                  \
                                  const whit_acts *x, uint32_t tile_begin, uint32_t tile_end, float *y,                \
                                  size_t y_stride, void *scratch)                                                      \
    {                                                                                                                  \
        run(WHIT_CODEC_##upper, multiply_##lower, w, gated, gate, false, x, tile_begin, tile_end, y, y_stride,         \
            scratch);                                                                                                  \
    }                                                                                                                  \
    const whit_matmul_kernel AMX_NAME(whit_matmul_i8_##lower##_rows_amx) = {                                           \
        .name = "matmul_i8_" #lower "_rows_amx",                                                                       \
        .isa = AMX_LEVEL,                                                                                              \
        .min_tokens = 13,                                                                                              \
        .max_tokens = UINT32_MAX,                                                                                      \
        .accepts = accepts_##lower,                                                                                    \
        .scratch_bytes = scratch_bytes,                                                                                \
        .slice_tokens = slice_tokens,                                                                                  \
        .run = run_##lower,                                                                                            \
        .run_added = run_added_##lower,                                                                                \
        .run_gated = run_gated_##lower,                                                                                \
    };

MATMUL(t2, T2)
MATMUL(t5, T5)
MATMUL(i8, I8)
