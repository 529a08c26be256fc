/* SPDX-License-Identifier: MIT
 * Computes GEMV of signs (b1, q2) and int8 activations by look-up with AVX-512, VBMI and VNNI, for one or two tokens.
 * It follows T-MAC (Wei et al., 2024): the sums of four signs times four activations are computed once for all sixteen
 * patterns of signs, and every row looks them up.
 *
 *   microtile    MR = 32 rows (two tiles) x NR = 1 token, or 16 x 2: two tiles of one token share the
 *                loads of its tables, two tokens of a tile those of its lines
 *   KC           a step: the columns over which neither scale changes, at most K
 *   registers    2 sums per tile and token, 2 halves of a table, 2 indices per tile
 *   L1, L2       tables of a token, 8 bytes per k (20 KB at K = 2,560), lines prefetched from memory
 *
 * Byte 4r + c of a line has the signs of columns c, 4 + c, ... 28 + c of row r (docs/dev/kernels.md);
 * the first four are its low nibble, the last four its high nibble. For sixteen columns and pattern n
 *
 *   T[c][n] = 512 + sum over i of bit i of n times q[4i + c]          0 to 1,020
 *
 * is kept as two tables of 64 bytes, T / 4 and T mod 4, looked up at 16 c + n by VPERMB. VPDPBUSD
 * weighs and adds four bytes of a row: a line costs 11 operations where masks and products take 17.
 * An accumulator adds up 2 T, which exceeds the group's sum of sign times q by the sum of q and
 * 1,024 per look-up; it begins at minus that excess, so that it ends at the wanted sum. It stays below
 * 2^31, since 2 (1,020 + 512) K / 4 + 127 K does for K <= 65,536.
 */
#include "base/mem.h"
#include "kernels/x86/prefetch.h"
#include "kernels/x86/unpack_avx512.h"

enum { HALF_BYTES = 128, LINE_TABLE_BYTES = 2 * HALF_BYTES };
enum { TOKENS_MAX = 2, TILES_MAX = 2 };

/* A line is prefetched twice: at the far distance from memory into L2 (with two tiles, from later tiles), at the near
 * distance from L2 into L1. */
enum { FAR_BYTES = 8192, NEAR_BYTES = 192 };

/* A token's initial sums, one per step, and the tables of its lines. */
typedef struct lookup {
    const int32_t *starts;
    const uint8_t *tables;
} lookup;

/* Returns the number of lines of one plane of b1 or q2 for n_cols columns. */
static inline uint32_t plane_lines(uint32_t n_cols)
{
    return lines_of(WHIT_CODEC_B1, n_cols);
}

static inline size_t starts_bytes(uint32_t n_steps)
{
    return whit_round_up(n_steps * sizeof(int32_t), WHIT_LINE_BYTES);
}

static inline size_t lookup_bytes(uint32_t n_steps, uint32_t n_cols)
{
    return starts_bytes(n_steps) + (size_t)plane_lines(n_cols) * LINE_TABLE_BYTES;
}

static inline lookup lookup_at(const whit_acts *x, uint32_t t, const uint8_t *scratch)
{
    scratch += t * lookup_bytes(x->n_steps, x->n_cols);
    return (lookup){(const int32_t *)(const void *)scratch, scratch + starts_bytes(x->n_steps)};
}

/* ---- tables --------------------------------------------------------------------------------- */

/* Computes the tables of sixteen activations: the four bytes of quads[c] are activations c, 4 + c, 8 + c and 12 + c. */
INLINE void make_tables(const int32_t quads[4], uint8_t *out)
{
    /* the four bytes of lane n are the four bits of n */
    const __m512i bits =
        _mm512_and_si512(_mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                            _mm512_set1_epi32(0x00204081)),
                         _mm512_set1_epi32(0x01010101));
    /* byte 16 c + n of the result is byte 4 n + (0, 2, 1, 3)[c] of the source */
    const __m512i order = _mm512_add_epi8(
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60)),
        _mm512_setr_epi32(0, 0, 0, 0, 0x02020202, 0x02020202, 0x02020202, 0x02020202, 0x01010101, 0x01010101,
                          0x01010101, 0x01010101, 0x03030303, 0x03030303, 0x03030303, 0x03030303));
    const __m512i offset = _mm512_set1_epi32(512);
    __m512i pair[2]; /* lane n of pair[i] has T[2 i][n] in its low word and T[2 i + 1][n] in its high word */
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        pair[i] = _mm512_dpbusd_epi32(offset, bits, _mm512_set1_epi32(quads[2 * i + 1]));
        pair[i] = _mm512_add_epi32(_mm512_slli_epi32(pair[i], 16), offset);
        pair[i] = _mm512_dpbusd_epi32(pair[i], bits, _mm512_set1_epi32(quads[2 * i]));
    }
    __m512i high = _mm512_or_si512(_mm512_srli_epi16(pair[0], 2), _mm512_slli_epi16(_mm512_srli_epi16(pair[1], 2), 8));
    __m512i low = _mm512_and_si512(
        _mm512_or_si512(_mm512_and_si512(pair[0], _mm512_set1_epi16(3)), _mm512_slli_epi16(pair[1], 8)),
        _mm512_set1_epi8(3));
    _mm512_store_si512(out, _mm512_permutexvar_epi8(order, high));
    _mm512_store_si512(out + 64, _mm512_permutexvar_epi8(order, low));
}

/* Computes n_halves tables of sixteen activations each; 64 activations at q must be readable, also if fewer are
 * needed. */
INLINE void make_line_tables(const int8_t *q, uint32_t n_halves, uint8_t *out)
{
    const __m512i columns = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    _Alignas(64) int32_t quads[16];
    _mm512_store_si512(quads, _mm512_shuffle_epi8(_mm512_loadu_si512(q), columns));
    for (uint32_t i = 0; i < n_halves; i++) make_tables(quads + 4 * i, out + i * HALF_BYTES);
}

static void prepare_tables(const whit_acts *x, void *scratch)
{
    uint8_t *out = scratch;
    uint32_t step_cols = x->spec.step ? x->spec.step : x->n_cols, n_halves = 2 * plane_lines(x->n_cols);
    for (uint32_t t = 0; t < x->n_tokens; t++) {
        int32_t *starts = (int32_t *)(void *)out;
        for (uint32_t step = 0, k = 0; step < x->n_steps; step++, k += step_cols) {
            int32_t n_lines = (int32_t)plane_lines(tiles_min(step_cols, x->n_cols - k));
            starts[step] = -x->sums[(size_t)t * x->n_steps + step] - n_lines * 2 * 4 * 2 * 512;
        }
        out += starts_bytes(x->n_steps);
        const int8_t *q = x->i8 + t * x->stride;
        for (uint32_t i = 0; i + 4 <= n_halves; i += 4) make_line_tables(q + 16 * i, 4, out + i * HALF_BYTES);
        if (n_halves % 4) make_line_tables(q + 16 * (n_halves - 2), 2, out + (n_halves - 2) * HALF_BYTES);
        out += n_halves * HALF_BYTES;
    }
}

/* ---- products ------------------------------------------------------------------------------- */

/* Adds products of unsigned and signed bytes to acc (VPDPBUSD); volatile, so that the compiler keeps prefetches between
 * the sums. */
INLINE __m512i add_bytes(__m512i acc, __m512i bytes, __m512i weights)
{
    __asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(bytes), "v"(weights));
    return acc;
}

typedef struct sums {
    __m512i high, low;
} sums;

/* Adds the look-ups of n_lines lines, line_stride bytes apart, of each of n_tiles tiles, tile_bytes apart, for n_tokens
 * tokens; prefetches as many lines from `ahead` on. */
INLINE void add_lines(const int n_tiles, const int n_tokens, sums acc[TILES_MAX][TOKENS_MAX], const uint8_t *line,
                      const uint8_t *ahead, const size_t line_stride, size_t tile_bytes,
                      const uint8_t *const tables[TOKENS_MAX], uint32_t n_lines)
{
    const __m512i nibble = _mm512_set1_epi8(15), eights = _mm512_set1_epi8(8), twos = _mm512_set1_epi8(2);
    const __m512i place = _mm512_set1_epi32(0x30201000);
    for (uint32_t l = 0; l < n_lines; l++, line += line_stride, ahead += (size_t)n_tiles * line_stride) {
        __m512i at[TILES_MAX][2];
#pragma GCC unroll 2
        for (int i = 0; i < n_tiles; i++) {
            const uint8_t *from = line + (size_t)i * tile_bytes;
            prefetch_l1(from + NEAR_BYTES);
            __m512i bits = load_line(from);
            at[i][0] = _mm512_ternarylogic_epi32(bits, nibble, place, 0xEA);
            at[i][1] = _mm512_ternarylogic_epi32(_mm512_srli_epi16(bits, 4), nibble, place, 0xEA);
        }
#pragma GCC unroll 2
        for (int c = 0; c < n_tokens; c++)
#pragma GCC unroll 2
            for (int half = 0; half < 2; half++) {
                const uint8_t *table = tables[c] + l * LINE_TABLE_BYTES + half * HALF_BYTES;
                if (c == 0 && half < n_tiles) prefetch_l2(ahead + half * WHIT_LINE_BYTES);
                const __m512i high = _mm512_load_si512(table), low = _mm512_load_si512(table + 64);
#pragma GCC unroll 2
                for (int i = 0; i < n_tiles; i++) {
                    acc[i][c].high = add_bytes(acc[i][c].high, _mm512_permutexvar_epi8(at[i][half], high), eights);
                    acc[i][c].low = add_bytes(acc[i][c].low, _mm512_permutexvar_epi8(at[i][half], low), twos);
                }
            }
    }
}

/* Multiplies n_tiles tiles by tokens [t, t + n_tokens). as_usual: scales are f16 per group, without offsets. added:
 * outputs are added to y instead of overwriting it. */
INLINE void multiply(const int codec, const bool as_usual, const bool added, const int n_tiles, const int n_tokens,
                     const tiles *of_matrix, const whit_acts *x, uint32_t tile, uint32_t t, const uint8_t *scratch,
                     float *y, size_t y_stride)
{
    tiles matrix = *of_matrix;
    const tiles *m = &matrix;
    if (as_usual) {
        matrix.kind = FIELD_GROUP_F16;
        matrix.n_fields = codec == WHIT_CODEC_Q2 ? 2 : 1;
        matrix.has_offset = false;
    }
    const int planes = codec == WHIT_CODEC_Q2 ? 2 : 1;
    const uint8_t *start = m->codes + tile * m->tile_bytes, *line = start, *scales = start;
    uint32_t step_cols = x->spec.step ? x->spec.step : x->n_cols;
    /* Distance of the far prefetch in tiles: an even number, more than 2 only if tiles are short, such as the tiles of
     * a sign plane. */
    const size_t far_tiles = 2 * m->tile_bytes >= FAR_BYTES / 2 ? 2 : FAR_BYTES / m->tile_bytes / 2 * 2;
    lookup of[TOKENS_MAX];
    const uint8_t *tables[TOKENS_MAX];
    __m512 out[TILES_MAX][TOKENS_MAX];
#pragma GCC unroll 2
    for (int c = 0; c < n_tokens; c++) {
        of[c] = lookup_at(x, t + (uint32_t)c, scratch);
        tables[c] = of[c].tables;
#pragma GCC unroll 2
        for (int i = 0; i < n_tiles; i++) out[i][c] = _mm512_setzero_ps();
    }
    for (uint32_t step = 0, k = 0; step < x->n_steps; step++) {
        uint32_t end = tiles_min(k + step_cols, x->n_cols), n_lines = plane_lines(end - k);
        const uint8_t *ahead = n_tiles == 1 ? line + FAR_BYTES : line + far_tiles * m->tile_bytes + (line - start);
        if (m->block_cols && (k & (m->block_cols - 1)) == 0) {
            scales = line;
            for (uint32_t i = 0; i < m->scale_bytes; i += WHIT_LINE_BYTES, ahead += n_tiles * WHIT_LINE_BYTES)
#pragma GCC unroll 2
                for (int j = 0; j < n_tiles; j++) prefetch_l2(ahead + j * WHIT_LINE_BYTES);
            line += m->scale_bytes;
        }
        __m512 field[TILES_MAX][WHIT_MAX_FIELDS];
        uint32_t place = k >> m->group_shift & ((1u << m->block_shift) - 1);
#pragma GCC unroll 2
        for (int i = 0; i < n_tiles; i++) {
#pragma GCC unroll 3
            for (int f = 0; f < planes + 1; f++)
                if (f < planes || m->has_offset)
                    field[i][f] = load_field_of(m, tile + (uint32_t)i, scales + (size_t)i * m->tile_bytes,
                                                place * m->n_fields, (uint32_t)f);
        }
#pragma GCC unroll 2
        for (int plane = 0; plane < planes; plane++) {
            sums acc[TILES_MAX][TOKENS_MAX];
#pragma GCC unroll 2
            for (int c = 0; c < n_tokens; c++)
#pragma GCC unroll 2
                for (int i = 0; i < n_tiles; i++)
                    acc[i][c] = (sums){_mm512_set1_epi32(of[c].starts[step]), _mm512_setzero_si512()};
            add_lines(n_tiles, n_tokens, acc, line + plane * WHIT_LINE_BYTES, ahead + plane * n_tiles * WHIT_LINE_BYTES,
                      (size_t)planes * WHIT_LINE_BYTES, m->tile_bytes, tables, n_lines);
#pragma GCC unroll 2
            for (int c = 0; c < n_tokens; c++) {
                const __m512 scale_x = _mm512_set1_ps(x->scales[(size_t)(t + (uint32_t)c) * x->n_steps + step]);
#pragma GCC unroll 2
                for (int i = 0; i < n_tiles; i++)
                    out[i][c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_add_epi32(acc[i][c].high, acc[i][c].low)),
                                                _mm512_mul_ps(field[i][plane], scale_x), out[i][c]);
            }
        }
        if (m->has_offset)
#pragma GCC unroll 2
            for (int c = 0; c < n_tokens; c++) {
                size_t at = (size_t)(t + (uint32_t)c) * x->n_steps + step;
                const __m512 scale_x = _mm512_set1_ps(x->scales[at]), sum_x = _mm512_set1_ps((float)x->sums[at]);
#pragma GCC unroll 2
                for (int i = 0; i < n_tiles; i++)
                    out[i][c] = _mm512_fmadd_ps(_mm512_mul_ps(field[i][planes], scale_x), sum_x, out[i][c]);
            }
        line += (size_t)n_lines * (uint32_t)planes * WHIT_LINE_BYTES;
#pragma GCC unroll 2
        for (int c = 0; c < n_tokens; c++) tables[c] += (size_t)n_lines * LINE_TABLE_BYTES;
        k = end;
    }
#pragma GCC unroll 2
    for (int c = 0; c < n_tokens; c++)
#pragma GCC unroll 2
        for (int i = 0; i < n_tiles; i++) {
            float *to = y + (t + (uint32_t)c) * y_stride + (size_t)(tile + (uint32_t)i) * WHIT_TILE_ROWS;
            const __mmask16 rows = rows_mask(m, tile + (uint32_t)i);
            if (added) out[i][c] = _mm512_add_ps(_mm512_maskz_loadu_ps(rows, to), out[i][c]);
            _mm512_mask_storeu_ps(to, rows, out[i][c]);
        }
}

/* Multiplies tiles [tile_begin, tile_end): pairs of tokens by one tile at a time, a single last token by two tiles at a
 * time. */
INLINE void run_tiles(const int codec, const bool as_usual, const bool added, const tiles *m, const whit_acts *x,
                      uint32_t tile_begin, uint32_t tile_end, float *y, size_t y_stride, const uint8_t *scratch)
{
    uint32_t t = 0;
    for (; t + 2 <= x->n_tokens; t += 2)
        for (uint32_t tile = tile_begin; tile < tile_end; tile++)
            multiply(codec, as_usual, added, 1, 2, m, x, tile, t, scratch, y, y_stride);
    if (t < x->n_tokens) {
        uint32_t tile = tile_begin;
        for (; tile + 2 <= tile_end; tile += 2)
            multiply(codec, as_usual, added, 2, 1, m, x, tile, t, scratch, y, y_stride);
        if (tile < tile_end) multiply(codec, as_usual, added, 1, 1, m, x, tile, t, scratch, y, y_stride);
    }
}

INLINE void run(const int codec, const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,
                float *y, size_t y_stride, const uint8_t *scratch)
{
    const tiles m = tiles_of(w);
    if (m.kind == FIELD_GROUP_F16 && !m.has_offset)
        run_tiles(codec, true, false, &m, x, tile_begin, tile_end, y, y_stride, scratch);
    else
        run_tiles(codec, false, false, &m, x, tile_begin, tile_end, y, y_stride, scratch);
}

INLINE void run_added(const int codec, const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,
                      float *y, size_t y_stride, const uint8_t *scratch)
{
    const tiles m = tiles_of(w);
    run_tiles(codec, false, true, &m, x, tile_begin, tile_end, y, y_stride, scratch);
}

static size_t scratch_bytes(const whit_tensor_type *type, const whit_acts_spec *spec, uint32_t n_tokens)
{
    return n_tokens * lookup_bytes(whit_acts_steps(spec, type->n_cols), type->n_cols);
}

#define MATMUL(lower, upper)                                                                                           \
    static bool accepts_##lower(const whit_tensor_type *type, const whit_acts_spec *spec)                              \
    {                                                                                                                  \
        return type->codec == WHIT_CODEC_##upper && spec->kind == WHIT_ACTS_I8;                                        \
    }                                                                                                                  \
    MATMUL_RUN(lower, upper)                                                                                           \
    static void run_added_##lower(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,    \
                                  float *y, size_t y_stride, void *scratch)                                            \
    {                                                                                                                  \
        run_added(WHIT_CODEC_##upper, w, x, tile_begin, tile_end, y, y_stride, scratch);                               \
    }                                                                                                                  \
    const whit_matmul_kernel whit_matmul_i8_##lower##_lookup_avx512 = {                                                \
        .name = "matmul_i8_" #lower "_lookup_avx512",                                                                  \
        .isa = WHIT_ISA_AVX512,                                                                                        \
        .min_tokens = 1,                                                                                               \
        .max_tokens = TOKENS_MAX,                                                                                      \
        .accepts = accepts_##lower,                                                                                    \
        .scratch_bytes = scratch_bytes,                                                                                \
        .prepare = prepare_tables,                                                                                     \
        .run = run_##lower,                                                                                            \
        .run_added = run_added_##lower,                                                                                \
    };

MATMUL(b1, B1)
MATMUL(q2, Q2)
