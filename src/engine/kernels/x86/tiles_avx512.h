/* SPDX-License-Identifier: MIT
 * Loads a tile's scales, and computes its sums and outputs, in registers with one lane per row.
 * compile with: -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vbmi -mavx512vnni -mfma -mf16c
 */
#ifndef WHIT_KERNELS_X86_TILES_AVX512_H
#define WHIT_KERNELS_X86_TILES_AVX512_H

#include "kernels/tiles.h"
#include "kernels/x86/dot_avx512.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

INLINE __m512i load_line(const uint8_t *line)
{
    return _mm512_loadu_si512(line);
}

INLINE __m512 halves_to_floats(const uint8_t *halves)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)halves));
}

/* Returns field f of a tile's rows from the per-row fields, an array (n_tiles, n_fields, 16). */
INLINE __m512 row_field(const tiles *m, uint32_t tile, uint32_t f, bool is_f32)
{
    uint64_t index = ((uint64_t)tile * m->n_fields + f) * WHIT_TILE_ROWS;
    return is_f32 ? _mm512_loadu_ps(m->row_fields + 4 * index) : halves_to_floats(m->row_fields + 2 * index);
}

/* Returns field f of the group with index `place` in a block whose scales are bytes, nibbles or, for L6 and K16, pairs
 * of bytes (base/tensor.h has the formulas). */
INLINE __m512 load_byte_field(const field_kind kind, const tiles *m, const uint8_t *lines, uint32_t place, uint32_t f)
{
    if (kind == FIELD_GROUP_L6) {
        /* The ten bits of the scale become exponent and fraction of an f32, which is multiplied by 2^(127 - 15 - 6):
         * exact, also for subnormal f16. */
        __m512i dwords = load_line(lines), bits;
        if (place % 2)
            bits = _mm512_srli_epi32(_mm512_and_si512(dwords, _mm512_set1_epi32((int)0xFFC00000)), 4);
        else
            bits = _mm512_slli_epi32(_mm512_and_si512(dwords, _mm512_set1_epi32(0xFFC0)), 12);
        __m512i scale = _mm512_castps_si512(_mm512_mul_ps(_mm512_castsi512_ps(bits), _mm512_set1_ps(0x1p106f)));
        __mmask16 is_special = _mm512_cmpge_epi32_mask(bits, _mm512_set1_epi32(31 << 23)); /* f16 infinity or NaN */
        return _mm512_castsi512_ps(_mm512_mask_or_epi32(scale, is_special, scale, _mm512_set1_epi32(0x7F800000)));
    }
    if (kind == FIELD_GROUP_K16) {
        __m512i halves = load_line(lines), dwords = load_line(lines + (1 + place / 2) * 64);
        dwords = _mm512_srl_epi32(dwords, _mm_cvtsi32_si128((int)(16 * (place % 2) + 8 * f)));
        __m512 factor = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(f ? _mm512_srli_epi32(halves, 16) : halves));
        __m512 product = _mm512_mul_ps(factor, _mm512_cvtepi32_ps(_mm512_and_si512(dwords, _mm512_set1_epi32(255))));
        return f ? _mm512_xor_ps(product, _mm512_set1_ps(-0.0f)) : product;
    }
    const bool super = kind <= FIELD_GROUP_ODD4;
    const uint32_t bit = kind == FIELD_GROUP_ODD4 ? 4 * place : 8 * place;
    __m512i dwords = load_line(lines + (super + bit / 32) * 64);
    dwords = _mm512_srl_epi32(dwords, _mm_cvtsi32_si128((int)(bit % 32)));
    if (kind == FIELD_GROUP_E8) { /* byte 0 means 2^-127 (before halving), byte 255 NaN */
        __m512i byte = _mm512_and_si512(dwords, _mm512_set1_epi32(255));
        __m512i bits = _mm512_max_epi32(_mm512_slli_epi32(byte, 23), _mm512_set1_epi32(0x400000));
        __mmask16 is_nan = _mm512_cmpeq_epi32_mask(byte, _mm512_set1_epi32(255));
        bits = _mm512_mask_mov_epi32(bits, is_nan, _mm512_set1_epi32(0x7FC00000));
        return _mm512_mul_ps(_mm512_castsi512_ps(bits), _mm512_set1_ps(0.5f));
    }
    if (kind == FIELD_GROUP_E4) { /* the bits 127 mean 0 */
        __m512i magnitude = _mm512_and_si512(dwords, _mm512_set1_epi32(127));
        __mmask16 is_number = _mm512_cmplt_epi32_mask(magnitude, _mm512_set1_epi32(127));
        __m512 bits = _mm512_castsi512_ps(_mm512_maskz_slli_epi32(is_number, magnitude, 20));
        __m512 value = _mm512_mul_ps(_mm512_mul_ps(bits, _mm512_set1_ps(0x1p120f)), _mm512_set1_ps(0.5f));
        return _mm512_mul_ps(value, _mm512_set1_ps(m->w->type.scale));
    }
    __m512i halves = load_line(lines);
    __m512 factor = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(f ? _mm512_srli_epi32(halves, 16) : halves));
    if (kind == FIELD_GROUP_K8) {
        __m512i byte = _mm512_and_si512(dwords, _mm512_set1_epi32(255));
        return _mm512_mul_ps(factor, _mm512_cvtepi32_ps(_mm512_sub_epi32(byte, _mm512_set1_epi32(128))));
    }
    if (kind == FIELD_GROUP_K4 && f) dwords = _mm512_srli_epi32(dwords, 4);
    __m512i nibble = _mm512_and_si512(dwords, _mm512_set1_epi32(15));
    if (kind == FIELD_GROUP_K4) {
        __m512 product = _mm512_mul_ps(factor, _mm512_cvtepi32_ps(nibble));
        return f ? _mm512_xor_ps(product, _mm512_set1_ps(-0.0f)) : product;
    }
    __m512i odd = _mm512_add_epi32(_mm512_add_epi32(nibble, nibble), _mm512_set1_epi32(1));
    return _mm512_mul_ps(_mm512_mul_ps(factor, _mm512_cvtepi32_ps(odd)), _mm512_set1_ps(0.125f));
}

/* Returns field f of a scale group of a tile; `lines` contains the group's fields from index `first` on. */
INLINE __m512 load_field_of(const tiles *m, uint32_t tile, const uint8_t *lines, uint32_t first, uint32_t f)
{
    const whit_tensor_type *type = &m->w->type;
    if (m->kind == FIELD_TENSOR)
        return _mm512_set1_ps(f == 0                                       ? type->scale
                                  : f == 1 && type->codec == WHIT_CODEC_Q2 ? type->scale_b
                                                                           : type->offset);
    if (m->kind <= FIELD_ROW_F16) return row_field(m, tile, f, m->kind == FIELD_ROW_F32);
    if (m->kind >= FIELD_GROUP_K4) return load_byte_field(m->kind, m, lines, first / m->n_fields, f);
    uint32_t index = first + f;
    if (m->kind == FIELD_GROUP_F32) return _mm512_loadu_ps(lines + 64 * index);
    uint32_t byte = m->kind == FIELD_GROUP_F16 ? 2 * index : index;
    __m512i dwords = load_line(lines + byte / 4 * 64);
    dwords = _mm512_srl_epi32(dwords, _mm_cvtsi32_si128((int)(byte % 4 * 8)));
    if (m->kind == FIELD_GROUP_F16) return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(dwords));
    __m512 units = _mm512_cvtepi32_ps(_mm512_and_si512(dwords, _mm512_set1_epi32(255)));
    return _mm512_mul_ps(units, row_field(m, tile, f, false));
}

/* Returns field f of scale group `group` of a tile, which begins at tile_start. */
INLINE __m512 load_field(const tiles *m, uint32_t tile, const uint8_t *tile_start, uint32_t group, uint32_t f)
{
    if (m->kind <= FIELD_ROW_F16) return load_field_of(m, tile, tile_start, 0, f);
    group_fields at = group_fields_at(m, tile_start, group);
    return load_field_of(m, tile, at.lines, at.first, f);
}

/* Returns a mask with one bit for each row of the tile that exists in the matrix. */
INLINE __mmask16 rows_mask(const tiles *m, uint32_t tile)
{
    uint32_t n = tiles_min(WHIT_TILE_ROWS, m->w->type.n_rows - tile * WHIT_TILE_ROWS);
    return (__mmask16)((1u << n) - 1);
}

/* Stores the outputs that `rows` selects, with a non-temporal store if they fill a whole cache line. Other threads see
 * them after _mm_sfence. */
INLINE void store_outputs(float *y, __mmask16 rows, __m512 out)
{
    if (rows == 0xFFFF && (uintptr_t)y % WHIT_LINE_BYTES == 0)
        _mm512_stream_ps(y, out);
    else
        _mm512_mask_storeu_ps(y, rows, out);
}

/* Defines a whit_matmul_fn run_<lower>, which calls the including file's `run` for one codec. */
#define MATMUL_RUN(lower, upper)                                                                                       \
    static void run_##lower(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,          \
                            float *y, size_t y_stride, void *scratch)                                                  \
    {                                                                                                                  \
        run(WHIT_CODEC_##upper, w, x, tile_begin, tile_end, y, y_stride, scratch);                                     \
    }

/* ---- t5: five digits of a byte -------------------------------------------------------------- */

/* VPERMB looks up by the low six bits of a byte, so each table has 64 entries:
 *
 *   base         index byte / 4: largest multiple of 27 that is at most 4 (byte / 4), so that rest = byte - base
 *                is at most 29
 *   rest         index rest: rest mod 27
 *   digits 0-2   index rest
 *   digits 3, 4  index byte - rest mod 27, which is 27 c with c from 0 to 9; the inverse of 27 modulo 64 is 19.
 *                c is 9 for bytes from 243 on, whose last digit is 2. */
#define T5_BASE(i)   (4 * (i) / 27 * 27)
#define T5_DIGIT0(i) ((i) % 3)
#define T5_DIGIT1(i) ((i) / 3 % 3)
#define T5_DIGIT2(i) ((i) / 9 % 3)
#define T5_REST(i)   ((i) % 27)
#define T5_C(i)      ((i)*19 % 64)
#define T5_DIGIT3(i) (T5_C(i) < 9 ? T5_C(i) % 3 : 0)
#define T5_DIGIT4(i) (T5_C(i) < 9 ? T5_C(i) / 3 : 2)

#define T5_FOUR(f, i)    f(i), f((i) + 1), f((i) + 2), f((i) + 3)
#define T5_SIXTEEN(f, i) T5_FOUR(f, i), T5_FOUR(f, i + 4), T5_FOUR(f, i + 8), T5_FOUR(f, i + 12)
#define T5_TABLE(f)                                                                                                    \
    {                                                                                                                  \
        T5_SIXTEEN(f, 0), T5_SIXTEEN(f, 16), T5_SIXTEEN(f, 32), T5_SIXTEEN(f, 48)                                      \
    }

static const _Alignas(64) uint8_t t5_base[64] = T5_TABLE(T5_BASE), t5_rest[64] = T5_TABLE(T5_REST);
static const _Alignas(64) uint8_t t5_digit[5][64] = {T5_TABLE(T5_DIGIT0), T5_TABLE(T5_DIGIT1), T5_TABLE(T5_DIGIT2),
                                                     T5_TABLE(T5_DIGIT3), T5_TABLE(T5_DIGIT4)};

typedef struct t5_tables {
    __m512i base, rest, digit[5];
} t5_tables;

INLINE __m512i t5_load_table(const uint8_t table[64])
{
    __m512i loaded = load_line(table);
    __asm__("" : "+v"(loaded)); /* keeps the table in a register instead of loading it for every line of codes */
    return loaded;
}

INLINE t5_tables t5_load_tables(void)
{
    t5_tables tables = {.base = t5_load_table(t5_base), .rest = t5_load_table(t5_rest)};
#pragma GCC unroll 5
    for (int d = 0; d < 5; d++) tables.digit[d] = t5_load_table(t5_digit[d]);
    return tables;
}

/* Indices of each byte into the digit tables: `low` for digits 0 to 2, `high` for digits 3 and 4. */
typedef struct t5_keys {
    __m512i low, high;
} t5_keys;

INLINE t5_keys t5_keys_of(const t5_tables *tables, __m512i line)
{
    __m512i base = _mm512_permutexvar_epi8(_mm512_srli_epi16(line, 2), tables->base);
    __m512i rest = _mm512_sub_epi8(line, base);
    return (t5_keys){rest, _mm512_sub_epi8(line, _mm512_permutexvar_epi8(rest, tables->rest))};
}

/* Returns digit d of every byte, a number from 0 to 2. */
INLINE __m512i t5_look_up(const t5_tables *tables, const t5_keys *keys, const int d)
{
    return _mm512_permutexvar_epi8(d < 3 ? keys->low : keys->high, tables->digit[d]);
}

INLINE void t5_digits(const t5_tables *tables, __m512i line, __m512i digits[5])
{
    const t5_keys keys = t5_keys_of(tables, line);
#pragma GCC unroll 5
    for (int d = 0; d < 5; d++) digits[d] = t5_look_up(tables, &keys, d);
}

/* ---- l2: levels of a group ------------------------------------------------------------------ */

/* Returns the levels of one scale group of a tile: dword i belongs to row i, and its byte c is the level of code c plus
 * WHIT_LEVEL_HIGH. */
INLINE __m512i load_group_levels(const tiles *m, const uint8_t *tile_start, uint32_t group)
{
    group_fields at = group_fields_at(m, tile_start, group);
    const __m128i first = _mm_setr_epi32((int)0x80000080, (int)0x80040480, (int)0x80080880, (int)0x800C0C80),
                  second = _mm_setr_epi32((int)0x80020280, (int)0x80060680, (int)0x800A0A80, (int)0x800E0E80);
    /* With a row's low level r, the bytes of its dword become 0, r, r, 0; then 0, r, 63 - r, 0; then 0, 63 + r, 63 - r,
     * 126. */
    __m512i low = _mm512_shuffle_epi8(load_line(at.lines), _mm512_broadcast_i32x4(at.first % 2 ? second : first));
    low = _mm512_ternarylogic_epi32(low, _mm512_set1_epi8(63), _mm512_set1_epi32(63 << 16), 0x6A);
    return _mm512_add_epi8(low, _mm512_set1_epi32(126 << 24 | 63 << 8));
}

/* Returns quad j (0 to 3) of a line of codes as levels plus WHIT_LEVEL_HIGH. VPSHUFB looks up in sixteen bytes, which
 * are the levels of four rows, so an index is the code plus four times the row's index among the four. */
INLINE __m512i quad_of_levels(__m512i levels, __m512i line, const int j)
{
    const __m512i rows = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0C0C0C0C));
    __m512i codes = j ? _mm512_srli_epi32(line, (unsigned)(2 * j)) : line;
    return _mm512_shuffle_epi8(levels, _mm512_ternarylogic_epi32(codes, _mm512_set1_epi8(3), rows, 0xEA));
}

/* ---- values of codes ------------------------------------------------------------------------ */

/* Returns the sum of code * q as f32, computed from `sum`, the sum of u * q, and sum_q, the sum of q. */
INLINE __m512 true_sum(int codec, __m512i sum, int32_t sum_q)
{
    if (whit_codec_is_sign((unsigned)codec)) sum = _mm512_slli_epi32(sum, 1);
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(sum, _mm512_set1_epi32(whit_codec_bias((unsigned)codec) * sum_q)));
}

#endif
