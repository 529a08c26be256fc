/* SPDX-License-Identifier: MIT
 * Computes GEMV of signs (b1, q2) and int8 activations by look-up with AVX2, for one token. It follows T-MAC (Wei et
 * al., 2024), as does x86/matmul_i8_lookup_avx512.c: the sums of four activations under each of sixteen patterns of
 * four signs are computed once, and every row looks them up.
 *
 *   microtile    MR = 32 rows (two tiles) x NR = 1 token
 *   KC           a step: the columns over which neither scale changes, at most K
 *   registers    4 registers of bytes, 2 sums of bytes, 2 of words, 2 halves of a table
 *   L1, L2       tables of the token, 8 bytes per k (20 KB at K = 2,560), lines prefetched from memory
 *
 * Byte 4r + c of a line has the signs of columns c, 4 + c, ... 28 + c of row r (docs/dev/kernels.md). VPSHUFB looks up
 * sixteen bytes in sixteen entries, so bytes of one c must share a register: twelve shuffles turn a line of two tiles
 * into four registers, one for each c. For sixteen k and pattern n
 *
 *   T[c][n] = 512 + sum over i of bit i of n times q[4i + c]          0 to 1,020
 *
 * is kept as two tables of sixteen bytes, T mod 32 and T / 32. Eight look-ups of a line add to at most 248 in a byte;
 * VPMADDUBSW joins both halves to 2 T, and four lines add to at most 2 * 4 * 8 * 1,020 = 65,280 in a word. The sum of
 * 2 T exceeds the sum of sign times q by the sum of q and 1,024 per look-up. */
#include "kernels/x86/lanes_avx2.inc"

#include "kernels/wide/tile.inc"

enum { TABLE_BYTES = 32, LINE_TABLES = 8, LINE_TABLE_BYTES = LINE_TABLES * TABLE_BYTES };
enum { TILES_MAX = 2, WORD_LINES = 4, LOOKUP_EXCESS = 1024 };

/* A line is prefetched twice: at the far distance from memory into L2 (with two tiles, from later tiles), at the near
 * distance from L2 into L1. */
enum { FAR_BYTES = 8192, NEAR_BYTES = 192 };

static inline uint32_t plane_lines(uint32_t n_cols)
{
    return (n_cols + 31) / 32;
}

/* ---- tables --------------------------------------------------------------------------------- */

/* Computes the two tables (T mod 32, then T / 32) of four activations, which are the bytes of `quad`. */
INLINE void make_table(int32_t quad, uint8_t *out)
{
    /* the two bytes of word n are bits 0 and 1 of n, or bits 2 and 3 */
    const __m256i first = _mm256_setr_epi16(0x0000, 0x0001, 0x0100, 0x0101, 0x0000, 0x0001, 0x0100, 0x0101, 0x0000,
                                            0x0001, 0x0100, 0x0101, 0x0000, 0x0001, 0x0100, 0x0101);
    const __m256i second = _mm256_setr_epi16(0x0000, 0x0000, 0x0000, 0x0000, 0x0001, 0x0001, 0x0001, 0x0001, 0x0100,
                                             0x0100, 0x0100, 0x0100, 0x0101, 0x0101, 0x0101, 0x0101);
    const __m256i q = _mm256_set1_epi32(quad);
    __m256i sum = _mm256_maddubs_epi16(first, _mm256_shuffle_epi8(q, _mm256_set1_epi16(0x0100)));
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(second, _mm256_shuffle_epi8(q, _mm256_set1_epi16(0x0302))));
    sum = _mm256_add_epi16(sum, _mm256_set1_epi16(512));
    const __m256i low = _mm256_and_si256(sum, _mm256_set1_epi16(31)), high = _mm256_srli_epi16(sum, 5);
    _mm256_store_si256((__m256i *)(void *)out, _mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), 0xD8));
}

static void prepare_tables(const whit_acts *x, void *scratch)
{
    const __m128i columns = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const uint32_t n_halves = 2 * plane_lines(x->n_cols);
    uint8_t *out = scratch;
    for (uint32_t t = 0; t < x->n_tokens; t++) {
        const int8_t *q = x->i8 + t * x->stride;
        for (uint32_t i = 0; i < n_halves; i++, q += 16) {
            _Alignas(16) int32_t quads[4];
            const __m128i sixteen = _mm_loadu_si128((const __m128i *)(const void *)q);
            _mm_store_si128((__m128i *)(void *)quads, _mm_shuffle_epi8(sixteen, columns));
            for (int c = 0; c < 4; c++, out += TABLE_BYTES) make_table(quads[c], out);
        }
    }
}

/* ---- products ------------------------------------------------------------------------------- */

INLINE __m256i load_half_line(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

INLINE __m256i look_up_bytes(const uint8_t *table, __m256i index)
{
    const __m128i entries = _mm_load_si128((const __m128i *)(const void *)table);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), index);
}

/* Loads a line of each tile. The bytes of columns[c] are byte c of each row's dword: 16 rows of tile 0 and 16 of tile
 * 1, in an order in which VPUNPCKLBW and VPUNPCKHBW separate the tiles. */
INLINE void load_columns(const int n_tiles, const uint8_t *line, size_t tile_bytes, __m256i columns[4])
{
    const __m256i by_column =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    __m256i low[TILES_MAX], high[TILES_MAX];
#pragma GCC unroll 2
    for (int i = 0; i < n_tiles; i++) {
        const uint8_t *from = line + (size_t)i * tile_bytes;
        prefetch_l1(from + NEAR_BYTES);
        const __m256i first = _mm256_shuffle_epi8(load_half_line(from), by_column);
        const __m256i second = _mm256_shuffle_epi8(load_half_line(from + 32), by_column);
        low[i] = _mm256_unpacklo_epi32(first, second);
        high[i] = _mm256_unpackhi_epi32(first, second);
    }
    columns[0] = _mm256_unpacklo_epi64(low[0], low[n_tiles - 1]);
    columns[1] = _mm256_unpackhi_epi64(low[0], low[n_tiles - 1]);
    columns[2] = _mm256_unpacklo_epi64(high[0], high[n_tiles - 1]);
    columns[3] = _mm256_unpackhi_epi64(high[0], high[n_tiles - 1]);
}

/* Adds the look-ups of n_lines lines (at most WORD_LINES) of each of n_tiles tiles to `words`; prefetches as many lines
 * from `ahead` on. */
INLINE void add_lines(const int n_tiles, __m256i words[TILES_MAX], const uint8_t *line, const uint8_t *ahead,
                      const size_t line_stride, size_t tile_bytes, const uint8_t *table, uint32_t n_lines)
{
    const __m256i nibble = _mm256_set1_epi8(15), twice = _mm256_set1_epi16(2 + (64 << 8));
    for (uint32_t l = 0; l < n_lines; l++, line += line_stride, table += LINE_TABLE_BYTES) {
        __m256i columns[4], low = _mm256_setzero_si256(), high = low;
        load_columns(n_tiles, line, tile_bytes, columns);
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++) {
            if (c % 2 == 0 && c / 2 < n_tiles)
                prefetch_l2(ahead + (size_t)n_tiles * l * line_stride + c / 2 * WHIT_LINE_BYTES);
#pragma GCC unroll 2
            for (int half = 0; half < 2; half++) {
                const __m256i bits = half ? _mm256_srli_epi16(columns[c], 4) : columns[c];
                const __m256i index = _mm256_and_si256(bits, nibble);
                const uint8_t *entries = table + (4 * half + c) * TABLE_BYTES;
                low = _mm256_add_epi8(low, look_up_bytes(entries, index));
                high = _mm256_add_epi8(high, look_up_bytes(entries + 16, index));
            }
            /* Keeps the sums in this order: gcc 12 adds look-ups as a tree, whose nodes exceed the registers. */
            __asm__("" : "+x"(low), "+x"(high));
        }
        words[0] = _mm256_add_epi16(words[0], _mm256_maddubs_epi16(_mm256_unpacklo_epi8(low, high), twice));
        if (n_tiles == 2)
            words[1] = _mm256_add_epi16(words[1], _mm256_maddubs_epi16(_mm256_unpackhi_epi8(low, high), twice));
    }
}

/* Computes the sums of 2 T over the n_lines lines of a step for n_tiles tiles. */
INLINE void sum_step(const int n_tiles, vi sums[TILES_MAX], const uint8_t *line, const uint8_t *ahead,
                     const size_t line_stride, size_t tile_bytes, const uint8_t *table, uint32_t n_lines)
{
    const __m256i zero = _mm256_setzero_si256();
#pragma GCC unroll 2
    for (int i = 0; i < n_tiles; i++) sums[i] = vi_zero();
    for (uint32_t l = 0, n; l < n_lines; l += n) {
        __m256i words[TILES_MAX] = {zero, zero};
        n = tiles_min(WORD_LINES, n_lines - l);
        add_lines(n_tiles, words, line + l * line_stride, ahead + (size_t)n_tiles * l * line_stride, line_stride,
                  tile_bytes, table + l * LINE_TABLE_BYTES, n);
#pragma GCC unroll 2
        for (int i = 0; i < n_tiles; i++)
            sums[i] = vi_add(sums[i], VI(_mm256_unpacklo_epi16(words[i], zero), _mm256_unpackhi_epi16(words[i], zero)));
    }
}

/* Loads a field of a group. as_usual: groups have n_fields fields in f16, so the kind of scales need not be tested. */
INLINE vf load_scale(const bool as_usual, const int n_fields, const tiles *m, uint32_t tile, uint32_t group,
                     const int field)
{
    if (!as_usual) return load_field(m, tile, group, (uint32_t)field);
    const uint32_t in_block = group & ((1u << m->block_shift) - 1);
    const uint32_t place = in_block * (uint32_t)n_fields + (uint32_t)field;
    const uint8_t *block = m->codes + tile * m->tile_bytes + (uint64_t)(group >> m->block_shift) * m->block_bytes;
    const vi lanes = vi_load(block + place / 2 * WHIT_LINE_BYTES);
    return place % 2 ? vf_high_f16(lanes) : vf_low_f16(lanes);
}

/* Multiplies n_tiles tiles by token t. as_usual: scales are f16 per group, without offsets. */
INLINE void multiply(const int codec, const bool as_usual, const int n_tiles, const tiles *m, const whit_acts *x,
                     uint32_t tile, uint32_t t, const uint8_t *table, float *y)
{
    const int planes = codec == WHIT_CODEC_Q2 ? 2 : 1;
    const uint8_t *start = m->codes + tile * m->tile_bytes, *line = start;
    const uint32_t step_cols = x->spec.step ? x->spec.step : x->n_cols;
    const size_t far_tiles = 2 * m->tile_bytes >= FAR_BYTES / 2 ? 2 : FAR_BYTES / m->tile_bytes / 2 * 2;
    vf out[TILES_MAX];
#pragma GCC unroll 2
    for (int i = 0; i < n_tiles; i++) out[i] = vf_zero();
    for (uint32_t step = 0, k = 0; step < x->n_steps; step++) {
        const uint32_t end = tiles_min(k + step_cols, x->n_cols), n_lines = plane_lines(end - k);
        const uint8_t *ahead = n_tiles == 1 ? line + FAR_BYTES : line + far_tiles * m->tile_bytes + (line - start);
        if (m->block_cols && (k & (m->block_cols - 1)) == 0) {
            for (uint32_t i = 0; i < m->scale_bytes; i += WHIT_LINE_BYTES, ahead += n_tiles * WHIT_LINE_BYTES)
#pragma GCC unroll 2
                for (int j = 0; j < n_tiles; j++) prefetch_l2(ahead + j * WHIT_LINE_BYTES);
            line += m->scale_bytes;
        }
        const size_t at = (size_t)t * x->n_steps + step;
        const vf scale_x = vf_set(x->scales[at]);
        const uint32_t group = k >> m->group_shift;
        const vi excess = vi_set(x->sums[at] + (int32_t)n_lines * LINE_TABLES * LOOKUP_EXCESS);
#pragma GCC unroll 2
        for (int plane = 0; plane < planes; plane++) {
            vi sums[TILES_MAX];
            sum_step(n_tiles, sums, line + plane * WHIT_LINE_BYTES, ahead + plane * n_tiles * WHIT_LINE_BYTES,
                     (size_t)planes * WHIT_LINE_BYTES, m->tile_bytes, table, n_lines);
#pragma GCC unroll 2
            for (int i = 0; i < n_tiles; i++)
                out[i] =
                    vf_fma(vf_from_ints(vi_sub(sums[i], excess)),
                           vf_mul(load_scale(as_usual, planes, m, tile + (uint32_t)i, group, plane), scale_x), out[i]);
        }
        if (!as_usual && m->has_offset)
#pragma GCC unroll 2
            for (int i = 0; i < n_tiles; i++)
                out[i] = vf_fma(vf_mul(load_field(m, tile + (uint32_t)i, group, (uint32_t)planes), scale_x),
                                vf_set((float)x->sums[at]), out[i]);
        line += (size_t)n_lines * (uint32_t)planes * WHIT_LINE_BYTES;
        table += (size_t)n_lines * LINE_TABLE_BYTES;
        k = end;
    }
#pragma GCC unroll 2
    for (int i = 0; i < n_tiles; i++) store_rows(m->w, tile + (uint32_t)i, out[i], y);
}

static size_t scratch_bytes(const whit_tensor_type *type, const whit_acts_spec *spec, uint32_t n_tokens)
{
    (void)spec;
    return n_tokens * (size_t)plane_lines(type->n_cols) * LINE_TABLE_BYTES;
}

INLINE void run_tiles(const int codec, const bool as_usual, const tiles *m, const whit_acts *x, uint32_t tile_begin,
                      uint32_t tile_end, float *y, size_t y_stride, const uint8_t *scratch)
{
    for (uint32_t t = 0; t < x->n_tokens; t++) {
        const uint8_t *table = scratch + t * (size_t)plane_lines(x->n_cols) * LINE_TABLE_BYTES;
        uint32_t tile = tile_begin;
        for (; tile + 2 <= tile_end; tile += 2) multiply(codec, as_usual, 2, m, x, tile, t, table, y + t * y_stride);
        if (tile < tile_end) multiply(codec, as_usual, 1, m, x, tile, t, table, y + t * y_stride);
    }
}

INLINE void run_lookup(const int codec, const whit_tensor *w, const whit_acts *x, uint32_t tile_begin,
                       uint32_t tile_end, float *y, size_t y_stride, const uint8_t *scratch)
{
    const tiles m = tiles_of(w);
    if (m.kind == FIELD_GROUP_F16 && !m.has_offset)
        run_tiles(codec, true, &m, x, tile_begin, tile_end, y, y_stride, scratch);
    else
        run_tiles(codec, false, &m, x, tile_begin, tile_end, y, y_stride, scratch);
}

#define MATMUL(lower, upper)                                                                                           \
    static bool accepts_##lower(const whit_tensor_type *type, const whit_acts_spec *spec)                              \
    {                                                                                                                  \
        return type->codec == WHIT_CODEC_##upper && spec->kind == WHIT_ACTS_I8;                                        \
    }                                                                                                                  \
    static void run_##lower(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,          \
                            float *y, size_t y_stride, void *scratch)                                                  \
    {                                                                                                                  \
        run_lookup(WHIT_CODEC_##upper, w, x, tile_begin, tile_end, y, y_stride, scratch);                              \
    }                                                                                                                  \
    const whit_matmul_kernel whit_matmul_i8_##lower##_lookup_avx2 = {                                                  \
        .name = "matmul_i8_" #lower "_lookup_avx2",                                                                    \
        .isa = WHIT_ISA_AVX2,                                                                                          \
        .min_tokens = 1,                                                                                               \
        .max_tokens = 1,                                                                                               \
        .accepts = accepts_##lower,                                                                                    \
        .scratch_bytes = scratch_bytes,                                                                                \
        .prepare = prepare_tables,                                                                                     \
        .run = run_##lower,                                                                                            \
    };

MATMUL(b1, B1)
MATMUL(q2, Q2)
