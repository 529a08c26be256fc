/* SPDX-License-Identifier: MIT
 * Multiplies a strip, the microtile of a few tokens: 64 rows (four tiles of a matrix) by at most 16 tokens, or 32 rows
 * by 32 tokens (n_a, the tiles of A, is 1 or 2).
 *
 *   registers    tiles 0..3 C, n_a for each tile of the matrix, 4, 5 A, 6, 7 B
 *   KC           a step; C is stored at its end and added to the outputs while the next step is multiplied
 *   L1           quads of one slice of 64 columns, 4 KB, and of the next slice. The next slice (also the first
 *                slice of the next strip) is unpacked between the products of the present one. Its addresses have
 *                the last twelve bits of addresses from which tiles have just been loaded, because a later tile
 *                load would wait for a store with the same last twelve bits
 *   L2           lines from memory, STRIP_FAR_BYTES ahead, and A
 *
 * A core reads L2 at a quarter of the rate of L1, and the lines of weights at the rate of memory. A slice of A, which
 * has 1 KB, must therefore be multiplied by more than one tile's 256 bytes of lines.
 * compile with: -mamx-tile -mamx-int8 and the flags of unpack_avx512.h */
#ifndef WHIT_KERNELS_X86_AMX_STRIP_H
#define WHIT_KERNELS_X86_AMX_STRIP_H

#include "kernels/x86/amx_tiles.h"
#include "kernels/x86/unpack_avx512.h"

enum { C_TILES = 4, STRIP_TOKENS_MAX = 32, SLICE_COLS = 64, STRIP_FAR_BYTES = 2048, STRIP_NEAR_BYTES = 1024 };
enum { TILE_QUAD_BYTES = 1024, SLICE_BYTES = C_TILES * TILE_QUAD_BYTES };
/* Scratch for two slices of quads, aligned to twice the size of a slice, so that flipping one bit of an address changes
 * between them. */
enum { STRIP_SCRATCH_BYTES = 4 * SLICE_BYTES };
/* Number of bytes of lines that stay in L2 while they are multiplied by all tokens. */
enum { STRIP_BLOCK_BYTES = 256 * 1024 };
/* Number of slices between two dummy stores of a tile register: a store is slow if the last one was long ago
 * (matmul_i8_gemv_amx.c). */
enum { AWAKE_SLICES = 8 };

/* Tiles of a matrix that are multiplied together. If tile_bytes is 0, they are all the same tile, since
 * the range has fewer tiles than a strip. */
typedef struct strip {
    uint32_t tile; /* index of the first tile */
    /* Number of tiles at the beginning whose outputs exist already, because the last strip of a run overlaps the
     * preceding one. */
    uint32_t n_known;
    size_t tile_bytes; /* distance between the tiles in bytes; 0: a single tile */
} strip;

/* Sums of a step that are not yet added to the outputs. */
typedef struct strip_sums {
    _Alignas(64) int32_t of[C_TILES][AMX_ROWS][16]; /* the tiles of C: (tiles of the strip, n_a, 16 tokens, 16 rows) */
    __m512 scale[C_TILES], offset[C_TILES];
    strip strip;
    uint32_t step;
    bool is_first, is_last; /* the step is the first, or the last, step of its strip */
} strip_sums;

typedef struct strip_work {
    strip_sums sums;
    __m512 acc[C_TILES][AMX_ROWS]; /* sums of the outputs over the steps so far; not used with only one step */
    int32_t unused[AMX_ROWS][16];
    tiles m;
    const whit_acts *x;
    float *y;
    size_t y_stride;
    uint8_t *quads; /* quads of the present slice */
    uint32_t to_wake;
    amx_state amx;
} strip_work;

INLINE uint32_t strip_tiles(const int n_a)
{
    return (uint32_t)(C_TILES / n_a);
}
/* Returns the number of bits of a code in a line; 4 for i8s, of which only the high nibbles are multiplied. */
INLINE int strip_bits(const int codec)
{
    return codec == WHIT_CODEC_I8S ? 4 : whit_codec_bits((unsigned)codec);
}
/* Returns the number of bytes of one tile's lines in a slice. */
INLINE uint32_t slice_line_bytes(const int codec)
{
    return (uint32_t)(SLICE_COLS / 4 * strip_bits(codec) / 8 * WHIT_LINE_BYTES);
}

/* ---- outputs -------------------------------------------------------------------------------- */

/* Adds rows [begin, end) of tile c of C, one token each, to the outputs; after the last step stores the outputs. */
INLINE void strip_add(const int codec, const int n_a, strip_work *s, const uint32_t c, uint32_t begin, uint32_t end)
{
    const strip_sums *sums = &s->sums;
    const whit_acts *x = s->x;
    const uint32_t j = c / (uint32_t)n_a, first = c % (uint32_t)n_a * AMX_ROWS;
    if (j < sums->strip.n_known || (j && !sums->strip.tile_bytes)) return;
    const __mmask16 rows = rows_mask(&s->m, sums->strip.tile + j);
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t t = first + i;
        const size_t at = (size_t)t * x->n_steps + sums->step;
        const __m512 scale_x = _mm512_set1_ps(x->scales[at]), scale = _mm512_mul_ps(sums->scale[j], scale_x);
        const __m512i sum = _mm512_load_si512(sums->of[c][i]);
        __m512 out = sums->is_first ? _mm512_setzero_ps() : s->acc[c][i];
        if (codec == WHIT_CODEC_I8S) {
            const __m512 middle = _mm512_set1_ps(-120.5f * (float)x->sums[at]);
            out = _mm512_fmadd_ps(_mm512_fmadd_ps(_mm512_set1_ps(16), _mm512_cvtepi32_ps(sum), middle), scale, out);
        } else {
            out = _mm512_fmadd_ps(true_sum(codec, sum, x->sums[at]), scale, out);
            if (s->m.has_offset)
                out = _mm512_fmadd_ps(_mm512_mul_ps(sums->offset[j], scale_x), _mm512_set1_ps((float)x->sums[at]), out);
        }
        if (sums->is_last)
            store_outputs(s->y + t * s->y_stride + (size_t)(sums->strip.tile + j) * WHIT_TILE_ROWS, rows, out);
        else
            s->acc[c][i] = out;
    }
}

/* Adds one of eight parts of a step's sums to the outputs: half of a tile of C, in the order in which the tiles are
 * stored. */
enum { STRIP_PARTS = 2 * C_TILES };
INLINE void strip_add_part(const int codec, const int n_a, strip_work *s, const uint32_t part)
{
    const uint32_t c = part / 2, first = c % (uint32_t)n_a * AMX_ROWS;
    const uint32_t n = tiles_min(s->x->n_tokens - first, AMX_ROWS), half = (n + 1) / 2;
    strip_add(codec, n_a, s, c, part % 2 ? half : 0, part % 2 ? n : half);
}

/* Sets s->sums to the step of the strip `of` whose sums are stored next: loads its scales and offsets. */
INLINE void strip_expect(const int n_a, strip_work *s, const strip *of, uint32_t step)
{
    strip_sums *sums = &s->sums;
    const whit_acts *x = s->x;
    sums->strip = *of;
    sums->step = step;
    sums->is_first = step == 0, sums->is_last = step + 1 == x->n_steps;
    for (uint32_t j = 0; j < strip_tiles(n_a); j++) {
        const uint32_t tile = of->tile + (of->tile_bytes ? j : 0);
        const uint8_t *start = s->m.codes + tile * s->m.tile_bytes;
        const uint32_t group = whit_acts_step_begin(x, step) >> s->m.group_shift;
        sums->scale[j] = load_field(&s->m, tile, start, group, 0);
        if (s->m.has_offset) sums->offset[j] = load_field(&s->m, tile, start, group, 1);
    }
}

/* ---- products ------------------------------------------------------------------------------- */

/* Position of the next slice, and lines to prefetch: addresses in the first tile of a strip, and distances to its other
 * tiles. */
typedef struct strip_ahead {
    const uint8_t *start, *far; /* `start`: first tile of the slice's strip; `far`: lines STRIP_FAR_BYTES ahead */
    size_t at;                  /* offset of the slice's lines in a tile */
    uint32_t k;                 /* first column of the slice */
    size_t tile_bytes, far_tile_bytes;
} strip_ahead;

/* Unpacks bytes [begin, end) of the lines of tile j in the next slice, and prefetches as many later lines. */
INLINE void strip_unpack(const int codec, const strip_work *s, const strip_ahead *ahead, const uint32_t j,
                         uint8_t *quads, const uint32_t begin, const uint32_t end)
{
    const int bits = strip_bits(codec), n_quads = 8 / bits;
    const uint8_t *const start = ahead->start + j * ahead->tile_bytes, *const lines = start + ahead->at;
    const uint8_t *const far = ahead->far + j * ahead->far_tile_bytes;
    const bool has_levels = whit_codecs[codec].group_levels;
    __m512i levels = _mm512_setzero_si512();
    if (has_levels) levels = load_group_levels(&s->m, start, ahead->k >> s->m.group_shift);
#pragma GCC unroll 8
    for (uint32_t l = begin; l < end; l += WHIT_LINE_BYTES) {
        uint8_t *const to = quads + j * TILE_QUAD_BYTES + l * (uint32_t)n_quads;
        __m512i line = load_line(lines + l);
        /* prevents the compiler from loading the line once for each field */
        __asm__ volatile("" : "+v"(line) : : "memory");
        prefetch_l2(far + l);
        prefetch_l1(lines + l + STRIP_NEAR_BYTES);
        if (has_levels)
#pragma GCC unroll 4
            for (int q = 0; q < 4; q++) _mm512_store_si512(to + q * WHIT_LINE_BYTES, quad_of_levels(levels, line, q));
        else
            unpack_fields(bits, n_quads, line, to, WHIT_LINE_BYTES);
        amx_written();
    }
}

/* Multiplies tile register c of C += tile register 4 or 5 (A) times tile register b (B). Each product is followed by
 * unpacking a tile's lines of the next slice, or half of them with two tiles of A. */
#define STRIP_PRODUCT(c, b)                                                                                            \
    {                                                                                                                  \
        const uint32_t j = (c) / (uint32_t)n_a, a = (c) % (uint32_t)n_a,                                               \
                       half = slice_line_bytes(codec) / (uint32_t)n_a;                                                 \
        if (a == 0) AMX_LOAD(amx, b, s->quads + j * TILE_QUAD_BYTES, AMX_ROW_BYTES);                                   \
        if (begins) {                                                                                                  \
            AMX_STORE(amx, c, s->sums.of[c], 64);                                                                      \
            AMX_ZERO(amx, c);                                                                                          \
        }                                                                                                              \
        if (a)                                                                                                         \
            AMX_MULTIPLY(amx, c, 5, b);                                                                                \
        else                                                                                                           \
            AMX_MULTIPLY(amx, c, 4, b);                                                                                \
        strip_unpack(codec, s, ahead, j, next, a *half, (a + 1) * half);                                               \
        if (part < STRIP_PARTS) {                                                                                      \
            strip_add_part(codec, n_a, s, part + (c));                                                                 \
            amx_written();                                                                                             \
        }                                                                                                              \
    }

/* Multiplies a slice, unpacks the next one, and adds parts [part, part + 4) of the previous step's sums to the outputs.
 * `begins`: the slice is the first of its step. */
INLINE void strip_multiply(const int codec, const int n_a, const bool begins, strip_work *s, const int8_t *q,
                           const strip_ahead *ahead, const uint32_t part)
{
    amx_state *amx = &s->amx;
    uint8_t *const next = (uint8_t *)((uintptr_t)s->quads ^ SLICE_BYTES);
    (void)amx;
    AMX_LOAD(amx, 4, q, s->x->stride);
    if (n_a == 2) AMX_LOAD(amx, 5, q + AMX_ROWS * s->x->stride, s->x->stride);
    if (n_a == 2) {
        STRIP_PRODUCT(0, 6)
        STRIP_PRODUCT(1, 6)
        STRIP_PRODUCT(2, 7)
        STRIP_PRODUCT(3, 7)
    } else {
        STRIP_PRODUCT(0, 6)
        STRIP_PRODUCT(1, 7)
        STRIP_PRODUCT(2, 6)
        STRIP_PRODUCT(3, 7)
    }
    s->quads = next;
}
#undef STRIP_PRODUCT

/* Returns the byte offset of a tile's first line of codes. */
INLINE size_t strip_first_line(const tiles *m)
{
    return m->block_cols ? m->scale_bytes : 0;
}

/* Multiplies all steps of the strip `now`; `after` is the following strip, whose first slice is unpacked at the end.
 * *has_sums: s->sums contains sums to add. */
INLINE void strip_run_one(const int codec, const int n_a, strip_work *s, const strip *now, const strip *after,
                          bool *has_sums)
{
    amx_state *amx = &s->amx;
    const tiles *m = &s->m;
    const uint32_t bytes = slice_line_bytes(codec), n_cols = s->x->n_cols;
    const uint8_t *const start = m->codes + now->tile * m->tile_bytes;
    const uint8_t *const after_start = m->codes + after->tile * m->tile_bytes;
    const size_t far = STRIP_FAR_BYTES < m->tile_bytes ? STRIP_FAR_BYTES : m->tile_bytes;
    const int8_t *q = s->x->i8;
    strip_ahead ahead = {.start = start, .at = strip_first_line(m), .tile_bytes = now->tile_bytes};
    (void)amx;
    for (uint32_t step = 0; step < s->x->n_steps; step++) {
        const uint32_t n = (whit_acts_step_end(s->x, step) - whit_acts_step_begin(s->x, step)) / SLICE_COLS;
        for (uint32_t i = 0; i < n; i++, q += SLICE_COLS) {
            ahead.far = start + ahead.at + far, ahead.far_tile_bytes = now->tile_bytes;
            if (ahead.at + far >= m->tile_bytes)
                ahead.far = after_start + (ahead.at + far - m->tile_bytes), ahead.far_tile_bytes = after->tile_bytes;
            ahead.at += bytes, ahead.k += SLICE_COLS;
            if (ahead.k == n_cols) {
                ahead.start = after_start, ahead.tile_bytes = after->tile_bytes;
                ahead.at = strip_first_line(m), ahead.k = 0;
            } else if (m->block_cols && (ahead.k & (m->block_cols - 1)) == 0) {
                ahead.at += m->scale_bytes;
                for (uint32_t j = 0; j < strip_tiles(n_a); j++)
                    prefetch_l2(ahead.far + j * ahead.far_tile_bytes + bytes);
            }
            const uint32_t part = !*has_sums || i > 1 ? STRIP_PARTS : 4 * i;
            if (i == 0)
                strip_multiply(codec, n_a, true, s, q, &ahead, part);
            else
                strip_multiply(codec, n_a, false, s, q, &ahead, part);
            if (i == 0 && n == 1 && *has_sums)
                for (uint32_t p = STRIP_PARTS / 2; p < STRIP_PARTS; p++) strip_add_part(codec, n_a, s, p);
            if (--s->to_wake == 0) {
                AMX_STORE(amx, 4, s->unused, 64);
                s->to_wake = AWAKE_SLICES;
            }
        }
        strip_expect(n_a, s, now, step);
        *has_sums = true;
    }
}

/* Multiplies tiles [begin, end) by the tokens of s->x, at most 16 n_a. */
INLINE void strip_run_tokens(const int codec, const int n_a, strip_work *s, uint32_t begin, uint32_t end)
{
    amx_state *amx = &s->amx;
    const uint32_t n_tiles = strip_tiles(n_a);
    const bool is_short = end - begin < n_tiles;
    const uint32_t n_all = (s->m.w->type.n_rows + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS;
    bool has_sums = false;
    (void)amx;
    strip now = {.tile = begin, .n_known = 0, .tile_bytes = is_short ? 0 : s->m.tile_bytes};
    const uint8_t *const start = s->m.codes + begin * s->m.tile_bytes;
    const strip_ahead first = {
        .start = start, .far = start, .at = strip_first_line(&s->m), .tile_bytes = now.tile_bytes};
    for (uint32_t j = 0; j < n_tiles; j++) strip_unpack(codec, s, &first, j, s->quads, 0, slice_line_bytes(codec));
    for (uint32_t tile = begin; tile < end;) {
        const uint32_t n_new = is_short ? 1 : n_tiles - now.n_known;
        strip after = now;
        tile += n_new;
        if (is_short)
            after.tile = tile < end ? tile : now.tile;
        else if (tile < end) {
            after.tile = tiles_min(tile, end - n_tiles);
            after.n_known = tile - after.tile;
        } else
            after.tile = tiles_min(end, n_all - n_tiles); /* probably the first strip of the worker's next call */
        strip_run_one(codec, n_a, s, &now, &after, &has_sums);
        now = after;
    }
    amx_written();
    AMX_STORE(amx, 0, s->sums.of[0], 64);
    AMX_STORE(amx, 1, s->sums.of[1], 64);
    AMX_STORE(amx, 2, s->sums.of[2], 64);
    AMX_STORE(amx, 3, s->sums.of[3], 64);
    amx_written();
    for (uint32_t p = 0; p < STRIP_PARTS; p++) strip_add_part(codec, n_a, s, p);
}

/* Multiplies tiles [begin, end) by any number of tokens. scratch has STRIP_SCRATCH_BYTES. */
INLINE void strip_run(const int codec, const whit_tensor *w, const whit_acts *x, uint32_t begin, uint32_t end, float *y,
                      size_t y_stride, uint8_t *scratch)
{
    if (begin == end) return;
    const uintptr_t both = 2 * SLICE_BYTES;
    strip_work s;
    s.m = tiles_of(w);
    s.quads = (uint8_t *)(((uintptr_t)scratch + both - 1) / both * both);
    s.y_stride = y_stride;
    s.to_wake = AWAKE_SLICES;
    const uint32_t n_block = x->n_tokens <= STRIP_TOKENS_MAX
        ? end - begin
        : (uint32_t)(STRIP_BLOCK_BYTES / s.m.tile_bytes / C_TILES + 1) * C_TILES;
    for (uint32_t tile = begin; tile < end; tile += n_block)
        for (uint32_t t = 0; t < x->n_tokens; t += STRIP_TOKENS_MAX) {
            const uint32_t n = tiles_min(x->n_tokens - t, STRIP_TOKENS_MAX), tile_end = tiles_min(tile + n_block, end);
            const uint32_t n0 = tiles_min(n, AMX_ROWS), n1 = n > AMX_ROWS ? n - AMX_ROWS : n0;
            const whit_acts some = whit_acts_rows(x, t, n);
            const amx_config config =
                amx_config_of((const uint32_t[AMX_TILES]){n0, n1, n0, n1, n0, n1, AMX_ROWS, AMX_ROWS});
            s.x = &some;
            s.y = y + t * y_stride;
            amx_begin(&s.amx, &config);
            if (n > AMX_ROWS)
                strip_run_tokens(codec, 2, &s, tile, tile_end);
            else
                strip_run_tokens(codec, 1, &s, tile, tile_end);
            amx_end(&s.amx);
        }
    _mm_sfence();
}

#endif
