/* SPDX-License-Identifier: MIT
 * Computes products of int8 activations and codecs whose groups have a scale of a byte or less, with AVX-512 and VNNI.
 *
 *   microtile    MR = 16 rows (a tile) x NR = 1 to 4 tokens; more tokens need more passes
 *   KC           128 columns of a superblock, added up as integers; with E8, E4 and F16 a group
 *   registers    eight quads of 32 columns, per token a dot, a total and two sums of minima
 *   L1           lines prefetched from memory, activations, a codebook (1 to 4 KiB)
 *
 * Within 128 columns a group's dot, |dot| < 2^15 for u2 and i3, is multiplied by its integer scale and added to
 * the total by one VPDPWSSD; the other codecs' dots need VPMULLD. Dots begin at -bias * (sum of q), so that nothing
 * is left to subtract. Minima are multiplied by sums of q in two digits of seven bits, four groups at a time.
 *
 * Codebooks: an index is looked up in a table of nibbles (VPGATHERDD: one load for eight weights, so that 16 rows and
 * 32 columns take 64 loads), to which signs are added as bit 2 of the nibble; a byte shuffle makes levels of them. The
 * low nibbles of a dword are weights 0, 2, 4, 6 of eight, the high ones 1, 3, 5, 7: activations are laid out in that
 * order by `prepare`. */
#include "kernels/x86/prefetch.h"
#include "kernels/x86/unpack_avx512.h"

#include <string.h>

enum { SUPER_TOKENS = 4, UNIT_COLS = 32, UNIT_QUADS = UNIT_COLS / 4, SUPER_FAR_BYTES = 8192, SUPER_NEAR_BYTES = 2048 };
enum { GRID_BIAS = 64, GRID_ENTRIES_MAX = 1024 };

/* ---- activations ---------------------------------------------------------------------------- */

/* Arrays of one token, which `prepare` computes into the scratch. */
typedef struct super_acts {
    /* (n_cols): activations; for codebooks each eight are in the order 0, 2, 4, 6, 1, 3, 5, 7 */
    const int8_t *q;
    const int32_t *minus_bias; /* (n_groups): -bias * sum of the group's q */
    /* (n_groups): the group's sum of q is 128 high + low; for K16 (n_groups, 2), with a zero before each digit */
    const int8_t *high, *low;
} super_acts;

INLINE int bias_of(const int codec)
{
    return whit_codecs[codec].grid ? GRID_BIAS : whit_codec_bias((unsigned)codec);
}

static inline size_t token_bytes(uint32_t n_cols, uint32_t n_groups)
{
    return ((size_t)n_cols + 8 * (size_t)n_groups + 127) / 64 * 64;
}

INLINE super_acts acts_of(const int codec, const whit_acts *x, const void *scratch, uint32_t token)
{
    const uint8_t *memory = (const uint8_t *)scratch + token * token_bytes(x->n_cols, x->n_steps);
    const int8_t *high = (const int8_t *)memory + 4 * (size_t)x->n_steps, *low = high + 2 * (size_t)x->n_steps;
    return (super_acts){whit_codecs[codec].grid ? low + 2 * (size_t)x->n_steps : x->i8 + token * x->stride,
                        (const int32_t *)(const void *)memory, high, low};
}

INLINE void prepare_acts(const int codec, const int scale_type, const whit_acts *x, void *scratch)
{
    const bool in_pairs = scale_type == WHIT_SCALE_K16;
    for (uint32_t t = 0; t < x->n_tokens; t++) {
        uint8_t *memory = (uint8_t *)scratch + t * token_bytes(x->n_cols, x->n_steps);
        int32_t *minus_bias = (int32_t *)(void *)memory;
        int8_t *high = (int8_t *)memory + 4 * (size_t)x->n_steps, *low = high + 2 * (size_t)x->n_steps,
               *q = low + 2 * (size_t)x->n_steps;
        const int8_t *from = x->i8 + t * x->stride;
        const int32_t *sums = x->sums + (size_t)t * x->n_steps;
        for (uint32_t i = 0; i < x->n_steps; i++) {
            minus_bias[i] = -bias_of(codec) * sums[i];
            const uint32_t at = in_pairs ? 2 * i + 1 : i;
            if (in_pairs) high[at - 1] = low[at - 1] = 0;
            high[at] = (int8_t)(sums[i] >> 7);
            low[at] = (int8_t)(sums[i] & 127);
        }
        for (uint32_t k = 0; whit_codecs[codec].grid && k < x->n_cols; k++)
            q[k / 8 * 8 + k % 2 * 4 + k % 8 / 2] = from[k];
    }
}

/* ---- codes ---------------------------------------------------------------------------------- */

/* Tables of a codebook. nibbles: the eight codes of each entry as nibbles. levels: level plus GRID_BIAS of each nibble,
 * which has two bits of code and one of sign. */
typedef struct grid_tables {
    const uint32_t *nibbles;
    __m512i levels;
} grid_tables;

static inline grid_tables load_grid(const whit_codec_info *codec, uint32_t nibbles[GRID_ENTRIES_MAX])
{
    uint8_t levels[16] = {0};
    for (unsigned i = 0; i < 256u << codec->high_bits; i++) {
        nibbles[i] = 0;
        for (unsigned j = 0; j < 8; j++) nibbles[i] |= (codec->grid[i] >> 2 * j & 3u) << 4 * j;
    }
    for (int i = 0; i < 3; i++) {
        levels[i] = (uint8_t)(GRID_BIAS + codec->levels[i]);
        levels[4 + i] = (uint8_t)(GRID_BIAS - codec->levels[i]);
    }
    return (grid_tables){nibbles, _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)levels))};
}

/* Unpacks columns [8 w, 8 w + 8) of a period to two quads. `bit` is the position of these columns' bit in every line of
 * high index bits. */
INLINE void quads_of_word(const int codec, const grid_tables *tables, const __m512i lines[2], const __m512i high[2],
                          const int w, const int bit, __m512i quads[2])
{
    const int n_high = whit_codecs[codec].high_bits;
    __m512i index = w ? _mm512_srli_epi32(lines[0], (unsigned)(8 * w)) : lines[0];
    if (w < 3) index = _mm512_and_si512(index, _mm512_set1_epi32(255));
#pragma GCC unroll 2
    for (int b = 0; b < n_high; b++) /* computes (rotated & 1 << (8 + b)) | index */
        index = _mm512_ternarylogic_epi32(_mm512_rolv_epi32(high[b], _mm512_set1_epi32((8 + b + 32 - bit) % 32)),
                                          _mm512_set1_epi32(256 << b), index, 0xEA);
    __m512i nibbles = _mm512_i32gather_epi32(index, tables->nibbles, 4);
    __m512i signs = w < 2 ? _mm512_slli_epi32(lines[1], (unsigned)(w < 2 ? 2 - w : 0))
        : w == 2          ? lines[1]
                          : _mm512_srli_epi32(lines[1], 1);
    nibbles = _mm512_ternarylogic_epi32(signs, _mm512_set1_epi32(0x44444444), nibbles, 0xEA);
    quads[0] = _mm512_shuffle_epi8(tables->levels, nibbles); /* bit 3 of every nibble is zero, as VPSHUFB requires */
    quads[1] = _mm512_shuffle_epi8(tables->levels, _mm512_srli_epi16(nibbles, 4));
}

/* Tables in which codes are looked up: of a codebook, or of levels. */
typedef struct code_tables {
    grid_tables grid;
    __m512i levels;
} code_tables;

INLINE uint32_t unit_lines(const int codec)
{
    return UNIT_COLS / whit_codecs[codec].line_cols * whit_codecs[codec].lines;
}

/* Unpacks a unit of 32 columns, number u of the four units of 128 columns, to eight quads, and prefetches later lines.
 * `high`: lines of high index bits, rotated so that bit 0 belongs to the first of the 128 columns. */
INLINE void unit_quads(const int codec, const code_tables *tables, const uint8_t *line, const __m512i high[2],
                       const int u, __m512i quads[UNIT_QUADS])
{
#pragma GCC unroll 8
    for (uint32_t l = 0; l < unit_lines(codec); l++) {
        prefetch_l2(line + l * WHIT_LINE_BYTES + SUPER_FAR_BYTES);
        prefetch_l1(line + l * WHIT_LINE_BYTES + SUPER_NEAR_BYTES);
    }
    if (whit_codecs[codec].top_bits) {
        __m512i lines[PERIOD_LINES_MAX];
        load_period(codec, line, lines);
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) quads[j] = quad_of_period(codec, lines, j);
        return;
    }
    if (whit_codecs[codec].grid) {
        const __m512i lines[2] = {load_line(line), load_line(line + 64)};
#pragma GCC unroll 4
        for (int w = 0; w < 4; w++) quads_of_word(codec, &tables->grid, lines, high, w, 4 * u + w, quads + 2 * w);
        return;
    }
    const int n = UNIT_QUADS / (int)unit_lines(codec), bits = whit_codec_bits((unsigned)codec);
#pragma GCC unroll 8
    for (uint32_t l = 0; l < unit_lines(codec); l++) {
        __m512i codes = load_line(line + l * WHIT_LINE_BYTES);
#pragma GCC unroll 4
        for (int j = 0; j < n; j++) {
            __m512i field = j ? _mm512_srli_epi16(codes, (unsigned)(bits * j)) : codes;
            if (bits < 8) field = _mm512_and_si512(field, _mm512_set1_epi8((char)((1 << bits) - 1)));
            if (whit_codecs[codec].levels) field = _mm512_shuffle_epi8(tables->levels, field);
            quads[l * (uint32_t)n + (uint32_t)j] = field;
        }
    }
}

/* ---- scales --------------------------------------------------------------------------------- */

/* Returns byte c of every dword as an unsigned number. */
INLINE __m512i byte_of(__m512i dwords, uint32_t c)
{
    return _mm512_and_si512(_mm512_srl_epi32(dwords, _mm_cvtsi32_si128((int)(8 * c))), _mm512_set1_epi32(255));
}

/* Returns the integer scale of the group with index `place` in its superblock, whose scales begin at `bytes`; for K8
 * the scale plus 128, for ODD4 half of the scale, rounded down. */
INLINE __m512i number_of(const int scale_type, const uint8_t *bytes, uint32_t place)
{
    if (scale_type == WHIT_SCALE_ODD4) {
        __m512i nibbles = load_line(bytes + place / 8 * WHIT_LINE_BYTES);
        return _mm512_and_si512(_mm512_srl_epi32(nibbles, _mm_cvtsi32_si128((int)(4 * (place % 8)))),
                                _mm512_set1_epi32(15));
    }
    if (scale_type == WHIT_SCALE_K16) return byte_of(load_line(bytes + place / 2 * WHIT_LINE_BYTES), place % 2 * 2);
    __m512i dwords = load_line(bytes + place / 4 * WHIT_LINE_BYTES);
    if (scale_type == WHIT_SCALE_K4)
        return _mm512_and_si512(_mm512_srl_epi32(dwords, _mm_cvtsi32_si128((int)(8 * (place % 4)))),
                                _mm512_set1_epi32(15));
    return byte_of(dwords, place % 4);
}

/* Sums of one token within 128 columns: scaled dots, unscaled dots, and products of minima with the high and low digits
 * of the sums of q. */
typedef struct super_total {
    __m512i scaled, plain, high, low;
} super_total;

INLINE void add_group(const int codec, const int scale_type, super_total *total, __m512i dot, __m512i number)
{
    if (codec == WHIT_CODEC_U2 || codec == WHIT_CODEC_I3)
        total->scaled = _mm512_dpwssd_epi32(total->scaled, dot, number);
    else
        total->scaled = _mm512_add_epi32(total->scaled, _mm512_mullo_epi32(dot, number));
    if (!whit_scale_has_minima((unsigned)scale_type)) total->plain = _mm512_add_epi32(total->plain, dot);
}

/* Returns the sum over the groups of integer scale * dot. */
INLINE __m512i total_of(const int scale_type, const super_total *total)
{
    if (scale_type == WHIT_SCALE_K8) return _mm512_sub_epi32(total->scaled, _mm512_slli_epi32(total->plain, 7));
    if (scale_type == WHIT_SCALE_ODD4)
        return _mm512_add_epi32(_mm512_add_epi32(total->scaled, total->scaled), total->plain);
    return total->scaled;
}

INLINE __m512 factor_of(const uint8_t *halves, const int f)
{
    __m512i dwords = load_line(halves);
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(f ? _mm512_srli_epi32(dwords, 16) : dwords));
}

/* ---- products ------------------------------------------------------------------------------- */

/* Computes the dots (sums of products) of n tokens with group g, which has 16 or 32 columns from column k on. */
INLINE void group_dots(const int n, const int group, const __m512i *quads, const super_acts *acts, uint32_t k,
                       uint32_t g, __m512i dots[SUPER_TOKENS])
{
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) {
        __m512i dot = _mm512_set1_epi32(acts[c].minus_bias[g]);
#pragma GCC unroll 8
        for (int j = 0; j < group / 4; j++) dot = add_products(dot, quads[j], acts[c].q + k + 4 * j);
        dots[c] = dot;
    }
}

/* Multiplies columns [k, k + 128) of a superblock by n tokens. `halves`: line of factors; `line`: first line of
 * codes. */
INLINE void multiply_half(const int codec, const int scale_type, const int group, const int n,
                          const code_tables *tables, const uint8_t *halves, const uint32_t scale_bytes,
                          const uint8_t *line, const super_acts *acts, const whit_acts *x, uint32_t t, uint32_t k,
                          __m512 out[SUPER_TOKENS])
{
    const uint8_t *bytes = halves + WHIT_LINE_BYTES;
    const uint32_t first = k / (uint32_t)group, place = k % WHIT_SUPER_COLS / (uint32_t)group;
    const int high_bits = whit_codecs[codec].high_bits;
    __m512i high[2] = {0};
    for (int b = 0; b < high_bits; b++) {
        high[b] = load_line(halves + scale_bytes - (high_bits - b) * WHIT_LINE_BYTES);
        if (k % WHIT_SUPER_COLS) high[b] = _mm512_ror_epi32(high[b], 16);
    }
    super_total total[SUPER_TOKENS];
#pragma GCC unroll 4
    for (int c = 0; c < n; c++)
        total[c].scaled = total[c].plain = total[c].high = total[c].low = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (uint32_t u = 0; u < WHIT_SUPER_ACTS / UNIT_COLS; u++, line += unit_lines(codec) * WHIT_LINE_BYTES) {
        __m512i quads[UNIT_QUADS];
        unit_quads(codec, tables, line, high, (int)u, quads);
#pragma GCC unroll 2
        for (uint32_t i = 0; i < (uint32_t)(UNIT_COLS / group); i++) {
            const uint32_t g = u * (uint32_t)(UNIT_COLS / group) + i;
            __m512i dots[SUPER_TOKENS], number = number_of(scale_type, bytes, place + g);
            group_dots(n, group, quads + i * (uint32_t)group / 4, acts, k + g * (uint32_t)group, first + g, dots);
#pragma GCC unroll 4
            for (int c = 0; c < n; c++) add_group(codec, scale_type, &total[c], dots[c], number);
        }
    }
    const bool has_minima = whit_scale_has_minima((unsigned)scale_type);
    const uint32_t of_group = scale_type == WHIT_SCALE_K16 ? 2 : 1; /* bytes of scales per group */
    const uint32_t n_minima = has_minima ? WHIT_SUPER_ACTS / (uint32_t)group * of_group : 0;
#pragma GCC unroll 2
    for (uint32_t b = 0; b < n_minima; b += 4) {
        __m512i minima = load_line(bytes + (place * of_group + b) / 4 * WHIT_LINE_BYTES);
        if (scale_type == WHIT_SCALE_K4) minima = _mm512_and_si512(_mm512_srli_epi16(minima, 4), _mm512_set1_epi8(15));
#pragma GCC unroll 4
        for (int c = 0; c < n; c++) { /* the scales of K16, which alternate with the minima, are multiplied by zeros */
            total[c].high = add_products(total[c].high, minima, acts[c].high + first * of_group + b);
            total[c].low = add_products(total[c].low, minima, acts[c].low + first * of_group + b);
        }
    }
    __m512 factor = factor_of(halves, 0), offset = factor_of(halves, 1);
    if (scale_type == WHIT_SCALE_ODD4) factor = _mm512_mul_ps(factor, _mm512_set1_ps(0.125f));
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) {
        __m512 scale_x = _mm512_set1_ps(x->scales[(size_t)(t + (uint32_t)c) * x->n_steps + first]);
        out[c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(total_of(scale_type, &total[c])), _mm512_mul_ps(factor, scale_x),
                                 out[c]);
        if (!has_minima) continue;
        __m512i sum = _mm512_add_epi32(_mm512_slli_epi32(total[c].high, 7), total[c].low);
        out[c] = _mm512_fnmadd_ps(_mm512_mul_ps(offset, scale_x), _mm512_cvtepi32_ps(sum), out[c]);
    }
}

/* Multiplies tokens [t, t + n) by one tile with scales in superblocks. */
INLINE void super_tile(const int codec, const int scale_type, const int group, const int n, const tiles *m,
                       const code_tables *tables, const whit_acts *x, const void *scratch, uint32_t tile, uint32_t t,
                       float *y, size_t y_stride)
{
    const uint8_t *block = m->codes + tile * m->tile_bytes;
    const uint32_t half_bytes = WHIT_SUPER_ACTS / UNIT_COLS * unit_lines(codec) * WHIT_LINE_BYTES;
    super_acts acts[SUPER_TOKENS];
    __m512 out[SUPER_TOKENS];
    for (int c = 0; c < n; c++) {
        acts[c] = acts_of(codec, x, scratch, t + (uint32_t)c);
        out[c] = _mm512_setzero_ps();
    }
    for (uint32_t k = 0; k < x->n_cols; k += WHIT_SUPER_COLS, block += m->block_bytes) {
        const uint8_t *line = block + m->scale_bytes;
        prefetch_l2(block + SUPER_FAR_BYTES);
        multiply_half(codec, scale_type, group, n, tables, block, m->scale_bytes, line, acts, x, t, k, out);
        multiply_half(codec, scale_type, group, n, tables, block, m->scale_bytes, line + half_bytes, acts, x, t,
                      k + WHIT_SUPER_ACTS, out);
    }
    for (int c = 0; c < n; c++)
        store_outputs(y + (t + (uint32_t)c) * y_stride + (size_t)tile * WHIT_TILE_ROWS, rows_mask(m, tile), out[c]);
}

/* Multiplies tokens [t, t + n) by one tile whose groups have independent scales (E8, E4, F16): each group's dot is
 * scaled and added as a float. */
INLINE void group_tile(const int codec, const int scale_type, const int group, const int n, const tiles *m,
                       const code_tables *tables, const whit_acts *x, const void *scratch, uint32_t tile, uint32_t t,
                       float *y, size_t y_stride)
{
    const field_kind kind = scale_type == WHIT_SCALE_E8 ? FIELD_GROUP_E8 : FIELD_GROUP_E4;
    const uint8_t *line = m->codes + tile * m->tile_bytes, *block = line;
    const __m512i high[2] = {0};
    super_acts acts[SUPER_TOKENS];
    __m512 out[SUPER_TOKENS];
    for (int c = 0; c < n; c++) {
        acts[c] = acts_of(codec, x, scratch, t + (uint32_t)c);
        out[c] = _mm512_setzero_ps();
    }
    for (uint32_t k = 0; k < x->n_cols; k += UNIT_COLS, line += unit_lines(codec) * WHIT_LINE_BYTES) {
        __m512i quads[UNIT_QUADS];
        if ((k & (m->block_cols - 1)) == 0) {
            block = line;
            line += m->scale_bytes;
        }
        unit_quads(codec, tables, line, high, 0, quads);
#pragma GCC unroll 2
        for (uint32_t i = 0; i < (uint32_t)(UNIT_COLS / group); i++) {
            const uint32_t g = k / (uint32_t)group + i, place = (k & (m->block_cols - 1)) / (uint32_t)group + i;
            __m512i dots[SUPER_TOKENS];
            __m512 scale = scale_type == WHIT_SCALE_F16 ? load_field_of(m, tile, block, place, 0)
                                                        : load_byte_field(kind, m, block, place, 0);
            group_dots(n, group, quads + i * (uint32_t)group / 4, acts, k + i * (uint32_t)group, g, dots);
#pragma GCC unroll 4
            for (int c = 0; c < n; c++) {
                __m512 scale_x = _mm512_set1_ps(x->scales[(size_t)(t + (uint32_t)c) * x->n_steps + g]);
                out[c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[c]), _mm512_mul_ps(scale, scale_x), out[c]);
            }
        }
    }
    for (int c = 0; c < n; c++)
        store_outputs(y + (t + (uint32_t)c) * y_stride + (size_t)tile * WHIT_TILE_ROWS, rows_mask(m, tile), out[c]);
}

INLINE void run_super(const int codec, const int scale_type, const int group, const whit_tensor *w, const whit_acts *x,
                      uint32_t tile_begin, uint32_t tile_end, float *y, size_t y_stride, void *scratch)
{
    tiles m = tiles_of(w);
    uint32_t nibbles[GRID_ENTRIES_MAX];
    code_tables tables = {0};
    if (whit_codecs[codec].grid)
        tables.grid = load_grid(&whit_codecs[codec], nibbles);
    else if (whit_codecs[codec].levels)
        tables.levels = load_levels(codec);
    for (uint32_t tile = tile_begin; tile < tile_end; tile++)
        for (uint32_t t = 0, n; t < x->n_tokens; t += n) {
            n = tiles_min(x->n_tokens - t, SUPER_TOKENS);
#define PASS(n_tokens)                                                                                                 \
    case n_tokens:                                                                                                     \
        if (whit_scale_in_superblocks((unsigned)scale_type))                                                           \
            super_tile(codec, scale_type, group, n_tokens, &m, &tables, x, scratch, tile, t, y, y_stride);             \
        else                                                                                                           \
            group_tile(codec, scale_type, group, n_tokens, &m, &tables, x, scratch, tile, t, y, y_stride);             \
        break;
            switch (n) {
                PASS(1) PASS(2) PASS(3) PASS(4)
            }
#undef PASS
        }
    _mm_sfence();
}

static size_t scratch_bytes(const whit_tensor_type *type, const whit_acts_spec *spec, uint32_t n_tokens)
{
    return n_tokens * token_bytes(type->n_cols, whit_acts_steps(spec, type->n_cols));
}

#define MATMUL(lower, codec_name, scales, columns, most)                                                               \
    static bool accepts_##lower(const whit_tensor_type *type, const whit_acts_spec *spec)                              \
    {                                                                                                                  \
        return type->codec == WHIT_CODEC_##codec_name && type->scale_type == WHIT_SCALE_##scales &&                    \
            type->group == (columns) && (!type->has_offset || whit_scale_has_minima(WHIT_SCALE_##scales)) &&           \
            type->n_cols % UNIT_COLS == 0 && spec->kind == WHIT_ACTS_I8 && spec->step == (columns);                    \
    }                                                                                                                  \
    static void prepare_##lower(const whit_acts *x, void *scratch)                                                     \
    {                                                                                                                  \
        prepare_acts(WHIT_CODEC_##codec_name, WHIT_SCALE_##scales, x, scratch);                                        \
    }                                                                                                                  \
    static void run_##lower(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,          \
                            float *y, size_t y_stride, void *scratch)                                                  \
    {                                                                                                                  \
        run_super(WHIT_CODEC_##codec_name, WHIT_SCALE_##scales, columns, w, x, tile_begin, tile_end, y, y_stride,      \
                  scratch);                                                                                            \
    }                                                                                                                  \
    const whit_matmul_kernel whit_matmul_i8_##lower##_16x4_avx512 = {                                                  \
        .name = "matmul_i8_" #lower "_16x4_avx512",                                                                    \
        .isa = WHIT_ISA_AVX512,                                                                                        \
        .min_tokens = 1,                                                                                               \
        .max_tokens = most,                                                                                            \
        .accepts = accepts_##lower,                                                                                    \
        .scratch_bytes = scratch_bytes,                                                                                \
        .prepare = prepare_##lower,                                                                                    \
        .run = run_##lower,                                                                                            \
    };

MATMUL(u2_k4, U2, K4, 16, UINT32_MAX)
MATMUL(i3_k8, I3, K8, 16, UINT32_MAX)
MATMUL(x8_odd4, X8, ODD4, 32, UINT32_MAX)
MATMUL(x9_odd4, X9, ODD4, 16, UINT32_MAX)
MATMUL(x10_odd4, X10, ODD4, 16, UINT32_MAX)
MATMUL(n4_k8, N4, K8, 32, UINT32_MAX)
MATMUL(i8_k8, I8, K8, 16, UINT32_MAX)
MATMUL(i6_k8, I6, K8, 16, UINT32_MAX)
MATMUL(u4_k16, U4, K16, 32, UINT32_MAX)
MATMUL(u5_k16, U5, K16, 32, UINT32_MAX)
/* These kernels are for at most 8 tokens; with more tokens it is faster to unpack the matrix first
 * (matmul_i8_block_avx512.c). */
MATMUL(f4_e8, F4, E8, 32, 8)
MATMUL(f4_e4, F4, E4, 16, 8)
MATMUL(n4_f16, N4, F16, 32, 8)
