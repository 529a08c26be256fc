/* SPDX-License-Identifier: MIT
 * Computes GEMM of coded weights and int8 activations with AMX, for scales per group.
 *
 *   microtile    MR = 32 rows (two tiles, or the two planes of a tile of q2) x NR = 32 tokens: two
 *                tiles of A times two of B, four loads for four multiplications
 *   KC           a step: C is stored to memory where a scale changes, and AVX-512 adds it to the outputs while the
 *                next step is multiplied; with scales per tensor or row C stays in its registers over all of K
 *   registers    8 of tiles: 4 of C, 2 of A, 2 of B (amx_block.h)
 *   L1           outputs of a microtile, 4 KB, and the streamed parts of A and B
 *   L2           unpacked quads of several pairs of tiles, CACHED_BYTES, so that activations are
 *                read from further away only once for all of them
 *
 * C (16 tokens x 16 rows, int32) += A (16 tokens x 64 k, signed) * B (16 quads, signed): an
 * unpacked quad (unpack_avx512.h) is one row of a B tile, so 16 quads of a tile of the matrix are B
 * without rearrangement, and so are activations A. */
#include "kernels/x86/amx_block.h"
#include "kernels/x86/unpack_avx512.h"

enum { CACHED_BYTES = 768 * 1024 };
/* Outputs of more bytes than this are written by non-temporal stores, unless products are added to old outputs. */
enum { STREAMED_BYTES = 8 * 1024 * 1024 };

/* State of a call. A slot is an unpacked tile: slot i is tile first_tile + i. With a gate, slot 2 i is tile first_tile
 * + i of the gate, and slot 2 i + 1 the same tile of the gated matrix. */
typedef struct work {
    tiles m[2];         /* with a gate, the gate and the gated matrix; else twice the matrix */
    whit_gate_fn *gate; /* NULL: a plain product */
    const whit_acts *x;
    const uint8_t *quads; /* quads of the slots, slot_quads bytes apart */
    size_t slot_quads, tile_quads;
    uint32_t first_tile;
    __m512 *fields;        /* (n_slots, n_steps, n_fields): fields of the scales */
    float *scales, *sum_q; /* (n_steps, BLOCK_TOKENS): scales and sums of q of the present tokens */
    float *y;
    size_t y_stride;
    bool adds;    /* outputs are added to y instead of overwriting it */
    bool streams; /* outputs are written by non-temporal stores, because they exceed the cache */
    amx_state amx;
} work;

/* Returns the number of bytes of one plane of an unpacked tile. */
static size_t tile_quads_bytes(uint32_t n_cols)
{
    return (size_t)quads_written(n_cols) * WHIT_LINE_BYTES;
}

static uint32_t cached_tiles(uint32_t n_cols, int planes)
{
    uint32_t n = (uint32_t)(CACHED_BYTES / (tile_quads_bytes(n_cols) * (size_t)planes));
    return n < B_TILES ? B_TILES : n / B_TILES * B_TILES;
}

/* Replaces the unsigned numbers u of n_bytes of quads by the codes that they represent, so that sums need no
 * correction. */
INLINE void sign_quads(const int codec, uint8_t *quads, size_t n_bytes)
{
    const __m512i bias = _mm512_set1_epi8((char)whit_codec_bias((unsigned)codec));
    for (size_t i = 0; i < n_bytes; i += WHIT_LINE_BYTES) {
        __m512i u = _mm512_load_si512(quads + i);
        if (whit_codec_is_sign((unsigned)codec)) u = _mm512_add_epi8(u, u);
        _mm512_store_si512(quads + i, _mm512_sub_epi8(u, bias));
    }
}

static inline __m512 *fields_of(const work *s, uint32_t slot)
{
    return s->fields + (size_t)slot * s->x->n_steps * s->m[0].n_fields;
}

static inline const tiles *matrix_of(const work *s, uint32_t slot)
{
    return &s->m[s->gate ? slot % 2 : 0];
}
static inline uint32_t tile_of(const work *s, uint32_t slot)
{
    return s->first_tile + (s->gate ? slot / 2 : slot);
}

/* Reads the fields of a slot for every step. */
INLINE void unpack_fields_of(const work *s, uint32_t slot)
{
    const tiles *m = matrix_of(s, slot);
    const uint32_t tile = tile_of(s, slot);
    __m512 *to = fields_of(s, slot);
    const uint32_t step_cols = s->x->spec.step ? s->x->spec.step : s->x->n_cols;
    for (uint32_t step = 0; step < s->x->n_steps; step++)
        for (uint32_t f = 0; f < m->n_fields; f++)
            *to++ = load_field(m, tile, m->codes + tile * m->tile_bytes, step * step_cols >> m->group_shift, f);
}

/* Sums of one step that are not yet added to the outputs. */
typedef struct pending {
    _Alignas(64) amx_block_sums sums;
    const __m512 *field[B_TILES]; /* fields of the step's group for both tiles of rows */
    const float *scales, *sum_q;  /* (BLOCK_TOKENS): scales and sums of q of the step's activations */
} pending;

/* Adds rows [begin, begin + n_rows) of tile c of C, one token each, to out (tiles of rows, BLOCK_TOKENS). For q2, an
 * even c adds the sums of both planes; an odd c repeats that and is not used. */
INLINE void add_rows(const int codec, const bool has_offset, const pending *p, const uint32_t c, const uint32_t begin,
                     const uint32_t n_rows, __m512 *out)
{
    const bool is_q2 = codec == WHIT_CODEC_Q2;
    const uint32_t a = c / B_TILES, b = is_q2 ? 0 : c % B_TILES;
    const __m512 *field = p->field[b], scale = field[0], second = is_q2 ? field[1] : scale;
    const __m512 offset = field[has_offset ? 1 + is_q2 : 0];
#pragma GCC unroll 8
    for (uint32_t i = begin; i < begin + n_rows; i++) {
        const size_t token = a * AMX_ROWS + i;
        const __m512 scale_x = _mm512_set1_ps(p->scales[token]);
        __m512 *acc = out + b * BLOCK_TOKENS + token;
        __m512 sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(p->sums[a][b][i])),
                                     _mm512_mul_ps(scale, scale_x), *acc);
        if (is_q2)
            sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(p->sums[a][1][i])),
                                  _mm512_mul_ps(second, scale_x), sum);
        if (has_offset) sum = _mm512_fmadd_ps(_mm512_mul_ps(offset, scale_x), _mm512_set1_ps(p->sum_q[token]), sum);
        *acc = sum;
    }
}

/* Adds part `part` of N_PARTS of a whole block's pending sums, half a tile of C at a time in the order in which the
 * tiles are stored. For q2 the first half of the parts adds nothing, because both tiles of a token must be stored
 * first. */
enum { N_PARTS = 8 };
INLINE void add_part(const int codec, const bool has_offset, const pending *p, const uint32_t part, __m512 *out)
{
    const uint32_t half = AMX_ROWS / 2;
    if (codec != WHIT_CODEC_Q2)
        add_rows(codec, has_offset, p, part / 2, part % 2 * half, half, out);
    else if (part >= N_PARTS / 2)
        add_rows(codec, has_offset, p, (part - N_PARTS / 2) / 2 * B_TILES, part % 2 * half, half, out);
}

/* Adds all pending sums of n tokens and n_tiles tiles to out. */
INLINE void add_all(const int codec, const bool has_offset, const pending *p, uint32_t n_tiles, uint32_t n, __m512 *out)
{
    for (uint32_t c = 0; c < A_TILES * B_TILES; c++) {
        const uint32_t first = c / B_TILES * AMX_ROWS;
        if (c % B_TILES >= n_tiles || first >= n) continue;
        for (uint32_t i = 0; i < tiles_min(AMX_ROWS, n - first); i++) add_rows(codec, has_offset, p, c, i, 1, out);
    }
}

/* Sets the addresses of a step's fields and of its activations' scales and sums in *p. */
INLINE void expect_step(const work *s, pending *p, uint32_t slot, uint32_t n_slots, uint32_t step)
{
    for (uint32_t b = 0; b < B_TILES; b++)
        p->field[b] = fields_of(s, slot + (b < n_slots ? b : 0)) + (size_t)step * s->m[0].n_fields;
    p->scales = s->scales + (size_t)step * BLOCK_TOKENS;
    p->sum_q = s->sum_q + (size_t)step * BLOCK_TOKENS;
}

/* In the first slice of a step: stores tile c of C, which has the sums of the preceding step, and clears it. */
#define BEGIN(c)                                                                                                       \
    if (i == 0 && !is_first) AMX_STORE(amx, c, last->sums[(c) / B_TILES][(c) % B_TILES], 64);                          \
    if (i == 0) AMX_ZERO(amx, c);
/* Adds a part of the sums p of an earlier step to the outputs while tiles are multiplied. */
#define ADD(j)                                                                                                         \
    if (p && 4 * i + (j) < N_PARTS) {                                                                                  \
        amx_written();                                                                                                 \
        add_part(codec, has_offset, p, 4 * i + (j), out);                                                              \
        amx_written();                                                                                                 \
    }

/* Multiplies one step of n slices of 64 columns for a whole block of tokens. Stores the sums of the preceding step to
 * *last, and adds the sums *p of the step before that (NULL: none) to out. */
INLINE void multiply_step(const int codec, const bool has_offset, const bool is_first, amx_state *amx, const int8_t *q,
                          size_t stride, const uint8_t *b0, const uint8_t *b1, uint32_t n, pending *last,
                          const pending *p, __m512 *out)
{
    (void)amx;
    const int8_t *q1 = q + 16 * stride;
#pragma GCC unroll 2
    for (uint32_t i = 0; i < n; i++, q += 64, q1 += 64, b0 += 1024, b1 += 1024) {
        AMX_STREAM(amx, 6, b0, 64);
        AMX_LOAD(amx, 4, q, stride);
        AMX_STREAM(amx, 7, b1, 64);
        AMX_LOAD(amx, 5, q1, stride);
        BEGIN(0)
        AMX_MULTIPLY_SIGNED(amx, 0, 4, 6);
        ADD(0)
        BEGIN(1)
        AMX_MULTIPLY_SIGNED(amx, 1, 4, 7);
        ADD(1)
        BEGIN(2)
        AMX_MULTIPLY_SIGNED(amx, 2, 5, 6);
        ADD(2)
        BEGIN(3)
        AMX_MULTIPLY_SIGNED(amx, 3, 5, 7);
        ADD(3)
    }
    for (uint32_t part = 4 * n; p && part < N_PARTS; part++) add_part(codec, has_offset, p, part, out);
    amx_written();
}
#undef BEGIN
#undef ADD

/* Writes the outputs of n_slots slots from `slot` on and tokens [t, t + n); with a gate, the gated product of the two
 * slots. */
INLINE void write_outputs(const work *s, uint32_t slot, uint32_t n_slots, uint32_t t, uint32_t n, __m512 *out)
{
    if (s->gate) {
        float *gates = (float *)(void *)out;
        s->gate(gates, (const float *)(const void *)(out + BLOCK_TOKENS), n * WHIT_TILE_ROWS, gates);
        n_slots = 1;
    }
    for (uint32_t b = 0; b < n_slots; b++) {
        const uint32_t tile = tile_of(s, slot) + b;
        const __mmask16 rows = rows_mask(&s->m[0], tile);
        float *y = s->y + t * s->y_stride + (size_t)tile * WHIT_TILE_ROWS;
        for (uint32_t i = 0; i < n; i++, y += s->y_stride) {
            __m512 sum = out[b * BLOCK_TOKENS + i];
            if (s->adds) sum = _mm512_add_ps(_mm512_maskz_loadu_ps(rows, y), sum);
            if (s->streams)
                store_outputs(y, rows, sum);
            else
                _mm512_mask_storeu_ps(y, rows, sum);
        }
    }
}

/* Multiplies tokens [t, t + n), n <= 16 n_a, by two planes of quads: two slots, or both planes of one slot of q2. */
INLINE void multiply_pair(const int codec, const bool has_offset, const int n_a, work *s, uint32_t slot,
                          uint32_t n_slots, uint32_t t, uint32_t n)
{
    const whit_acts *x = s->x;
    const bool is_q2 = codec == WHIT_CODEC_Q2, is_whole = n_a == 2 && n == BLOCK_TOKENS;
    const uint8_t *b0 = s->quads + slot * s->slot_quads;
    const uint8_t *b1 = b0 + (is_q2 || n_slots == 2 ? s->tile_quads : 0);
    const uint32_t step_cols = x->spec.step ? x->spec.step : x->n_cols;
    pending steps[2];
    __m512 out[BLOCK_TOKENS * B_TILES];
    for (uint32_t i = 0; i < BLOCK_TOKENS * B_TILES; i++) out[i] = _mm512_setzero_ps();
    for (uint32_t step = 0, k = 0; step < x->n_steps; step++) {
        const uint32_t end = tiles_min(k + step_cols, x->n_cols), n_slices = (end - k + 63) / 64;
        const int8_t *q = x->i8 + t * x->stride + k;
        const size_t at = 16 * (size_t)k;
        pending *const now = &steps[step & 1], *const last = &steps[~step & 1];
        if (!is_whole)
            amx_multiply_block(&s->amx, n_a, q, x->stride, b0 + at, b1 + at, n_slices, now->sums);
        else if (step == 0)
            multiply_step(codec, has_offset, true, &s->amx, q, x->stride, b0 + at, b1 + at, n_slices, NULL, NULL, out);
        else if (step == 1)
            multiply_step(codec, has_offset, false, &s->amx, q, x->stride, b0 + at, b1 + at, n_slices, last, NULL, out);
        else if (n_slices == 2)
            multiply_step(codec, has_offset, false, &s->amx, q, x->stride, b0 + at, b1 + at, 2, last, now, out);
        else
            multiply_step(codec, has_offset, false, &s->amx, q, x->stride, b0 + at, b1 + at, n_slices, last, now, out);
        expect_step(s, now, slot, n_slots, step);
        if (!is_whole) add_all(codec, has_offset, now, n_slots, n, out);
        k = end;
    }
    if (is_whole) {
        pending *const now = &steps[~x->n_steps & 1], *const last = &steps[x->n_steps & 1];
        if (x->n_steps > 1) add_all(codec, has_offset, last, n_slots, n, out);
        amx_store_block(&s->amx, n_a, now->sums);
        add_all(codec, has_offset, now, n_slots, n, out);
    }
    write_outputs(s, slot, n_slots, t, n, out);
}

/* Multiplies all slots by tokens [t, t + n), n <= 32. */
INLINE void multiply_tokens(const int codec, const bool has_offset, work *s, uint32_t n_slots, uint32_t t, uint32_t n)
{
    const uint32_t pair = codec == WHIT_CODEC_Q2 ? 1 : 2;
    const whit_acts *x = s->x;
    for (uint32_t step = 0; step < x->n_steps; step++)
        for (uint32_t i = 0; i < n; i++) {
            s->scales[step * BLOCK_TOKENS + i] = x->scales[(size_t)(t + i) * x->n_steps + step];
            s->sum_q[step * BLOCK_TOKENS + i] = (float)x->sums[(size_t)(t + i) * x->n_steps + step];
        }
    for (uint32_t i = 0; i < n_slots; i += pair) {
        uint32_t now = tiles_min(pair, n_slots - i);
        if (n > 16)
            multiply_pair(codec, has_offset, 2, s, i, now, t, n);
        else
            multiply_pair(codec, has_offset, 1, s, i, now, t, n);
    }
}

INLINE void run_tiles(const int codec, const bool has_offset, work *s, uint32_t tile_begin, uint32_t tile_end,
                      uint8_t *quads)
{
    const whit_acts *x = s->x;
    const uint32_t planes = codec == WHIT_CODEC_Q2 ? 2 : 1, n_cols = x->n_cols;
    const uint32_t most = cached_tiles(n_cols, (int)planes), tile_slots = s->gate ? 2 : 1;
    s->quads = quads;
    s->tile_quads = tile_quads_bytes(n_cols);
    s->slot_quads = s->tile_quads * planes;
    s->fields = (__m512 *)(void *)(quads + most * s->slot_quads);
    s->scales = (float *)(s->fields + most * (size_t)x->n_steps * s->m[0].n_fields);
    s->sum_q = s->scales + (size_t)x->n_steps * BLOCK_TOKENS;
    uint32_t whole = x->n_tokens / BLOCK_TOKENS * BLOCK_TOKENS, rest = x->n_tokens - whole, n_tiles;
    for (uint32_t tile = tile_begin; tile < tile_end; tile += n_tiles) {
        n_tiles = tiles_min(most / tile_slots, tile_end - tile);
        const uint32_t n_slots = n_tiles * tile_slots;
        s->first_tile = tile;
        for (uint32_t i = 0; i < n_slots; i++) {
            unpack_tile(codec, matrix_of(s, i), tile_of(s, i), quads + i * s->slot_quads, WHIT_LINE_BYTES,
                        s->tile_quads);
            unpack_fields_of(s, i);
        }
        sign_quads(codec, quads, n_slots * s->slot_quads);
        amx_config config = amx_config_for(BLOCK_TOKENS);
        amx_begin(&s->amx, &config);
        for (uint32_t t = 0; t < whole; t += BLOCK_TOKENS)
            multiply_tokens(codec, has_offset, s, n_slots, t, BLOCK_TOKENS);
        if (rest) {
            config = amx_config_for(rest);
            amx_begin(&s->amx, &config);
            multiply_tokens(codec, has_offset, s, n_slots, whole, rest);
        }
        amx_end(&s->amx);
    }
    if (s->streams) _mm_sfence();
}

/* Without `gate` (NULL), multiplies x by w; with it, computes the gated product of w, which is the gate matrix, and
 * `gated`. */
INLINE void run(const int codec, const whit_tensor *w, const whit_tensor *gated, whit_gate_fn *gate, bool adds,
                const whit_acts *x, uint32_t tile_begin, uint32_t tile_end, float *y, size_t y_stride, uint8_t *quads)
{
    work s = {.gate = gate, .x = x, .y = y, .y_stride = y_stride, .adds = adds};
    s.m[0] = tiles_of(w);
    s.m[1] = gate ? tiles_of(gated) : s.m[0];
    s.streams = !adds && x->n_tokens * y_stride * sizeof *y > STREAMED_BYTES;
    if (w->type.has_offset)
        run_tiles(codec, true, &s, tile_begin, tile_end, quads);
    else
        run_tiles(codec, false, &s, tile_begin, tile_end, quads);
}

static size_t scratch_bytes(const whit_tensor_type *type, const whit_acts_spec *spec, uint32_t n_tokens)
{
    (void)n_tokens;
    int planes = type->codec == WHIT_CODEC_Q2 ? 2 : 1;
    const size_t n_tiles = cached_tiles(type->n_cols, planes), n_steps = whit_acts_steps(spec, type->n_cols),
                 n_fields = whit_codec_geometry(type).n_fields;
    return n_tiles * (tile_quads_bytes(type->n_cols) * (size_t)planes + n_steps * n_fields * WHIT_LINE_BYTES) +
        2 * sizeof(float) * BLOCK_TOKENS * n_steps;
}

/* Returns whether the activations are int8 and their steps consist of whole slices of 64 columns or are whole rows. */
static bool accepts_steps(const whit_acts_spec *spec)
{
    return spec->kind == WHIT_ACTS_I8 && spec->step % 64 == 0;
}

/* Defines the kernel of a codec; run_gated is NULL for q2, because a tile of q2 already has two planes. */
#define MATMUL(lower, upper, gated_fn)                                                                                 \
    static bool accepts_##lower(const whit_tensor_type *type, const whit_acts_spec *spec)                              \
    {                                                                                                                  \
        return type->codec == WHIT_CODEC_##upper && accepts_steps(spec);                                               \
    }                                                                                                                  \
    static __attribute__((noinline)) void run_any_##lower(                                                             \
        const whit_tensor *w, const whit_tensor *gated, whit_gate_fn *gate, bool adds, const whit_acts *x,             \
        uint32_t tile_begin, uint32_t tile_end, float *y, size_t y_stride, void *scratch)                              \
    {                                                                                                                  \
        run(WHIT_CODEC_##upper, w, gated, gate, adds, x, tile_begin, tile_end, y, y_stride, scratch);                  \
    }                                                                                                                  \
    static void run_##lower(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,          \
                            float *y, size_t y_stride, void *scratch)                                                  \
    {                                                                                                                  \
        run_any_##lower(w, NULL, NULL, false, x, tile_begin, tile_end, y, y_stride, scratch);                          \
    }                                                                                                                  \
    static void run_added_##lower(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,    \
                                  float *y, size_t y_stride, void *scratch)                                            \
    {                                                                                                                  \
        run_any_##lower(w, NULL, NULL, true, x, tile_begin, tile_end, y, y_stride, scratch);                           \
    }                                                                                                                  \
    const whit_matmul_kernel AMX_NAME(whit_matmul_i8_##lower##_32x32_amx) = {                                          \
        .name = "matmul_i8_" #lower "_32x32_amx",                                                                      \
        .isa = AMX_LEVEL,                                                                                              \
        .min_tokens = 13,                                                                                              \
        .max_tokens = UINT32_MAX,                                                                                      \
        .accepts = accepts_##lower,                                                                                    \
        .scratch_bytes = scratch_bytes,                                                                                \
        .run = run_##lower,                                                                                            \
        .run_added = run_added_##lower,                                                                                \
        .run_gated = gated_fn,                                                                                         \
    };
#define MATMUL_GATED(lower, upper)                                                                                     \
    static void run_gated_##lower(const whit_tensor *w, const whit_tensor *gated, whit_gate_fn *gate,                  \
                                  const whit_acts *x, uint32_t tile_begin, uint32_t tile_end, float *y,                \
                                  size_t y_stride, void *scratch);                                                     \
    MATMUL(lower, upper, run_gated_##lower)                                                                            \
    static void run_gated_##lower(const whit_tensor *w, const whit_tensor *gated, whit_gate_fn *gate,                  \
                                  const whit_acts *x, uint32_t tile_begin, uint32_t tile_end, float *y,                \
                                  size_t y_stride, void *scratch)                                                      \
    {                                                                                                                  \
        run_any_##lower(w, gated, gate, false, x, tile_begin, tile_end, y, y_stride, scratch);                         \
    }

MATMUL_GATED(t2, T2)
MATMUL_GATED(t5, T5)
MATMUL_GATED(b1, B1)
MATMUL(q2, Q2, NULL)
MATMUL_GATED(i4, I4)
MATMUL_GATED(i8, I8)
MATMUL_GATED(i8s, I8S)
MATMUL_GATED(l2, L2)
