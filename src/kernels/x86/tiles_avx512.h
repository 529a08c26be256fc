/* SPDX-License-Identifier: MIT
 * A tile's scales, sums and outputs in registers: one lane per row.
 * compile with: -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vbmi -mavx512vnni -mfma -mf16c
 */
#ifndef WHIT_KERNELS_X86_TILES_AVX512_H
#define WHIT_KERNELS_X86_TILES_AVX512_H

#include "kernels/tiles.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

INLINE __m512i load_line(const uint8_t *line)
{
    return _mm512_loadu_si512(line);
}

/* Four activations for every lane. */
INLINE __m512i broadcast_quad(const int8_t *q)
{
    int32_t quad;
    __builtin_memcpy(&quad, q, sizeof quad);
    return _mm512_set1_epi32(quad);
}

INLINE __m512 halves_to_floats(const uint8_t *halves)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)halves));
}

/* A field of one per-row array of (tile, field, 16). */
INLINE __m512 row_field(const tiles *m, uint32_t tile, uint32_t f, bool is_f32)
{
    uint64_t index = ((uint64_t)tile * m->n_fields + f) * WHIT_TILE_ROWS;
    return is_f32 ? _mm512_loadu_ps(m->row_fields + 4 * index)
                  : halves_to_floats(m->row_fields + 2 * index);
}

/* Field f of a scale group of one tile. */
INLINE __m512 load_field(const tiles *m, uint32_t tile, const uint8_t *tile_start, uint32_t group,
                         uint32_t f)
{
    const whit_tensor_type *type = &m->w->type;
    if (m->kind == FIELD_TENSOR)
        return _mm512_set1_ps(f == 0                                   ? type->scale
                              : f == 1 && type->codec == WHIT_CODEC_Q2 ? type->scale_b
                                                                       : type->offset);
    if (m->kind <= FIELD_ROW_F16) return row_field(m, tile, f, m->kind == FIELD_ROW_F32);
    group_fields at = group_fields_at(m, tile_start, group);
    uint32_t index = at.first + f;
    if (m->kind == FIELD_GROUP_F32) return _mm512_loadu_ps(at.lines + 64 * index);
    uint32_t byte = m->kind == FIELD_GROUP_F16 ? 2 * index : index;
    __m512i dwords = load_line(at.lines + byte / 4 * 64);
    dwords = _mm512_srl_epi32(dwords, _mm_cvtsi32_si128((int)(byte % 4 * 8)));
    if (m->kind == FIELD_GROUP_F16) return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(dwords));
    __m512 units = _mm512_cvtepi32_ps(_mm512_and_si512(dwords, _mm512_set1_epi32(255)));
    return _mm512_mul_ps(units, row_field(m, tile, f, false));
}

/* Rows of the tile that exist. */
INLINE __mmask16 rows_mask(const tiles *m, uint32_t tile)
{
    uint32_t n = tiles_min(WHIT_TILE_ROWS, m->w->type.n_rows - tile * WHIT_TILE_ROWS);
    return (__mmask16)((1u << n) - 1);
}

/* ---- t5: five digits of a byte -------------------------------------------------------------- */

#define T5_FIELDS(b)    ((b) % 3 | (b) / 3 % 3 << 2 | (b) / 9 % 3 << 4 | (b) / 27 % 3 << 6)
#define T5_FIELDS_4(b)  T5_FIELDS(b), T5_FIELDS(b + 1), T5_FIELDS(b + 2), T5_FIELDS(b + 3)
#define T5_FIELDS_16(b) T5_FIELDS_4(b), T5_FIELDS_4(b + 4), T5_FIELDS_4(b + 8), T5_FIELDS_4(b + 12)
#define T5_FIELDS_64(b)                                                                            \
    T5_FIELDS_16(b), T5_FIELDS_16(b + 16), T5_FIELDS_16(b + 32), T5_FIELDS_16(b + 48)

/* The first four digits of each number as 2-bit fields, in the places that a t2 byte has them. */
static const _Alignas(64) uint8_t t5_table[128] = {T5_FIELDS_64(0), T5_FIELDS_64(64)};

/* byte mod 81, but for bytes from 243 on, which give 81 to 93: the table takes those too. A
 * subtraction that goes below zero wraps round to a large number and loses the minimum. */
INLINE __m512i t5_remainder(__m512i line)
{
    __m512i step = _mm512_set1_epi8(81);
    __m512i once = _mm512_min_epu8(line, _mm512_sub_epi8(line, step));
    return _mm512_min_epu8(once, _mm512_sub_epi8(once, step));
}

INLINE __m512i t5_low_digits(__m512i remainder)
{
    return _mm512_permutex2var_epi8(load_line(t5_table), remainder, load_line(t5_table + 64));
}

/* 81 times the fifth digit. */
INLINE __m512i t5_high_digit_81(__m512i line, __m512i remainder)
{
    return _mm512_sub_epi8(line, remainder);
}
/* Exact division of multiples of 81, by its inverse modulo 2^32. */
INLINE __m512i divide_by_81(__m512i sums)
{
    return _mm512_mullo_epi32(sums, _mm512_set1_epi32((int)0x781948B1));
}

/* ---- what codes stand for ------------------------------------------------------------------- */

/* The stored number u of a code is in [0, 256): the code is twice * u - bias. */
INLINE int code_bias(int codec)
{
    return codec == WHIT_CODEC_I8 || codec == WHIT_CODEC_I8S ? 128 : codec == WHIT_CODEC_I4 ? 8 : 1;
}
INLINE bool code_is_sign(int codec)
{
    return codec == WHIT_CODEC_B1 || codec == WHIT_CODEC_Q2;
}
INLINE int code_bits(int codec)
{
    return codec == WHIT_CODEC_I8 || codec == WHIT_CODEC_I8S ? 8 : codec == WHIT_CODEC_I4 ? 4 : code_is_sign(codec) ? 1 : 2;
}

/* The sum of code * q out of the sum of u * q and that of q. */
INLINE __m512 true_sum(int codec, __m512i sum, int32_t sum_q)
{
    if (code_is_sign(codec)) sum = _mm512_slli_epi32(sum, 1);
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(sum, _mm512_set1_epi32(code_bias(codec) * sum_q)));
}

#endif
