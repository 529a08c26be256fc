/* SPDX-License-Identifier: MIT
 * Unpacks tiles to *quads*. A quad has 64 bytes for 4 k of 16 rows: byte 4r + c is an unsigned number u of row r. It is
 * an operand of VPDPBUSD and a row of an AMX tile. Codes are u - bias (signs: 2 u - 1). Quad j of a plane is written to
 * out + j * stride.
 * compile with: -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vbmi -mavx512vnni -mfma -mf16c */
#ifndef WHIT_KERNELS_X86_UNPACK_AVX512_H
#define WHIT_KERNELS_X86_UNPACK_AVX512_H

#include "kernels/codec_lines.h"
#include "kernels/x86/prefetch.h"
#include "kernels/x86/tiles_avx512.h"
#include "kernels/x86/transpose_avx512.h"

/* Returns the largest number of quads that unpacking n_cols columns of any codec writes, including whole lines (for
 * i8s, 128 columns). */
static inline uint32_t quads_written(uint32_t n_cols)
{
    return (n_cols + 127) / 128 * 32 + 8;
}

/* Unpacks n fields of each byte of a line to n quads: field j is bits [bits * j, bits * (j + 1)). */
INLINE void unpack_fields(const int bits, const int n, __m512i line, uint8_t *out, size_t stride)
{
    const __m512i mask = _mm512_set1_epi8((char)((1 << bits) - 1));
#pragma GCC unroll 8
    for (int j = 0; j < n; j++) {
        __m512i shifted = _mm512_srli_epi16(line, (unsigned)(bits * j));
        _mm512_storeu_si512(out + (size_t)j * stride, bits == 8 ? line : _mm512_and_si512(shifted, mask));
    }
}

INLINE void unpack_t5_by(const t5_tables *tables, __m512i line, uint8_t *out, size_t stride)
{
    __m512i digits[5];
    t5_digits(tables, line, digits);
#pragma GCC unroll 5
    for (int d = 0; d < 5; d++) _mm512_storeu_si512(out + (size_t)d * stride, digits[d]);
}

INLINE void unpack_t5(__m512i line, uint8_t *out, size_t stride)
{
    const t5_tables tables = t5_load_tables();
    unpack_t5_by(&tables, line, out, stride);
}

/* Returns the number of quads of one line (for i8s with its low nibbles, for q2 of each plane), or of one period of a
 * codec with top bits. */
INLINE int quads_of_line(const int codec)
{
    if (codec == WHIT_CODEC_T5) return 5;
    if (codec == WHIT_CODEC_I8S) return 2;
    if (whit_codecs[codec].top_bits) return 8;
    return 8 / whit_codec_bits((unsigned)codec);
}

/* Returns the number of lines of codes (of periods, for a codec with top bits) of n_cols columns, without lines of
 * scales. */
INLINE uint32_t lines_of(const int codec, uint32_t n_cols)
{
    uint32_t line_cols = 4 * (uint32_t)quads_of_line(codec);
    return (n_cols + line_cols - 1) / line_cols;
}

/* Returns the sixteen levels of a codec plus 128, for look-ups by nibbles. */
INLINE __m512i load_levels(const int codec)
{
    const int8_t *levels = whit_codecs[codec].levels;
    return _mm512_xor_si512(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)levels)),
                            _mm512_set1_epi8((char)128));
}

/* Unpacks a line of nibbles to two quads of levels plus 128. */
INLINE void unpack_levels(const int codec, __m512i line, uint8_t *out, size_t stride)
{
    const __m512i mask = _mm512_set1_epi8(15), levels = load_levels(codec);
    _mm512_storeu_si512(out, _mm512_shuffle_epi8(levels, _mm512_and_si512(line, mask)));
    _mm512_storeu_si512(out + stride, _mm512_shuffle_epi8(levels, _mm512_and_si512(_mm512_srli_epi16(line, 4), mask)));
}

enum { PERIOD_LINES_MAX = 6 };

/* Returns quad j (0 to 7) of a period of a codec with top bits. */
INLINE __m512i quad_of_period(const int codec, const __m512i lines[PERIOD_LINES_MAX], const int j)
{
    const int bits = whit_codec_bits((unsigned)codec), n_top = whit_codecs[codec].top_bits, per_line = 8 / bits;
    const __m512i low = _mm512_srli_epi16(lines[j / per_line], (unsigned)(bits * (j % per_line)));
    const __m512i from = lines[8 / per_line + n_top * j / 8];
    const int left = bits - n_top * j % 8; /* left shift from the position of the quad's top bits to the position
                                            * above `bits` */
    const __m512i top = left > 0 ? _mm512_slli_epi16(from, (unsigned)(left > 0 ? left : 0))
                                 : _mm512_srli_epi16(from, (unsigned)(left > 0 ? 0 : -left));
    const __m512i mask = _mm512_set1_epi8((char)((1 << bits) - 1)),
                  top_mask = _mm512_set1_epi8((char)(((1 << n_top) - 1) << bits));
    /* computes low | (top & top_mask) */
    return _mm512_ternarylogic_epi32(_mm512_and_si512(low, mask), top, top_mask, 0xF8);
}

INLINE void load_period(const int codec, const uint8_t *from, __m512i lines[PERIOD_LINES_MAX])
{
#pragma GCC unroll 6
    for (int l = 0; l < whit_codecs[codec].lines; l++) lines[l] = load_line(from + l * WHIT_LINE_BYTES);
}

INLINE void unpack_period(const int codec, const uint8_t *from, uint8_t *out, size_t stride)
{
    __m512i lines[PERIOD_LINES_MAX];
    load_period(codec, from, lines);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) _mm512_storeu_si512(out + (size_t)j * stride, quad_of_period(codec, lines, j));
}

/* Unpacks one line of t5, or of a codec whose fields are the numbers u, except i8s, whose low nibbles are in another
 * part. */
INLINE void unpack_line(const int codec, __m512i line, uint8_t *out, size_t stride)
{
    if (codec == WHIT_CODEC_T5)
        unpack_t5(line, out, stride);
    else
        unpack_fields(whit_codec_bits((unsigned)codec), quads_of_line(codec), line, out, stride);
}

/* Unpacks up to 16 lines of a tile of i8s from line l on. The low nibbles are stored row by row and are transposed to
 * lines. There may be fewer lines of high nibbles; a row of low nibbles always has the bytes of 16 lines. */
INLINE void unpack_i8s(const tiles *m, uint32_t tile, uint32_t l, uint8_t *out, size_t stride)
{
    const __m512i mask = _mm512_set1_epi8(15);
    const uint8_t *start = m->codes + tile * m->tile_bytes;
    uint32_t n_lines = tiles_min(16, (m->w->type.n_cols + 7) / 8 - l);
    const uint64_t next = whit_low_offset(&m->w->type, WHIT_TILE_ROWS, 0);
    __m512i low[16];
    for (uint32_t r = 0; r < WHIT_TILE_ROWS; r++) { /* also prefetches the rows of the next tile */
        const uint8_t *line = m->w->part[WHIT_PART_LOW] + whit_low_offset(&m->w->type, tile * WHIT_TILE_ROWS + r, l);
        low[r] = load_line(line);
        prefetch_l2(line + next);
    }
    transpose_dwords(low);
    for (uint32_t i = 0; i < n_lines; i++, out += 2 * stride) {
        __m512i high = load_line(start + (l + i) * WHIT_LINE_BYTES);
        prefetch_l2(start + m->tile_bytes + (l + i) * WHIT_LINE_BYTES);
        __m512i first = _mm512_slli_epi16(_mm512_and_si512(high, mask), 4);
        __m512i second = _mm512_andnot_si512(mask, high);
        __m512i low_second = _mm512_and_si512(_mm512_srli_epi16(low[i], 4), mask);
        _mm512_storeu_si512(out, _mm512_or_si512(first, _mm512_and_si512(low[i], mask)));
        _mm512_storeu_si512(out + stride, _mm512_or_si512(second, low_second));
    }
}

INLINE void unpack_superblocks(const tiles *m, const uint8_t *start, uint8_t *out, size_t stride)
{
    uint32_t n_cols = m->w->type.n_cols;
    for (uint32_t h = 0; h < (n_cols + 127) / 128; h++) {
        const uint8_t *block = start + (uint64_t)(h / 2) * m->block_bytes;
        uint32_t n_lines = n_cols - h / 2 * 256 <= 128 ? 6 : 12;
        for (uint32_t i = 0; i < 6; i++, out += 5 * stride)
            unpack_t5(load_line(block + (h % 2 * 6 + i) * WHIT_LINE_BYTES), out, stride);
        __m512i rest = load_line(block + n_lines * WHIT_LINE_BYTES);
        unpack_fields(2, 2, h % 2 ? _mm512_srli_epi16(rest, 4) : rest, out, stride);
        out += 2 * stride;
    }
}

/* Unpacks a tile of l2. */
INLINE void unpack_l2(const tiles *m, const uint8_t *start, uint8_t *out, size_t stride)
{
    const uint8_t *line = start;
    for (uint32_t k = 0, n_cols = m->w->type.n_cols; k < n_cols;) {
        if ((k & (m->block_cols - 1)) == 0) line += m->scale_bytes;
        const __m512i levels = load_group_levels(m, start, k >> m->group_shift);
        const uint32_t end = tiles_min(((k >> m->group_shift) + 1) << m->group_shift, n_cols);
        for (; k < end; k += 16, line += WHIT_LINE_BYTES, out += 4 * stride) {
            __m512i codes = load_line(line);
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++) _mm512_storeu_si512(out + (size_t)j * stride, quad_of_levels(levels, codes, j));
        }
    }
}

/* Unpacks a whole tile. For q2 the plane of s is written to `out`, the plane of e to out + plane_bytes. */
INLINE void unpack_tile(const int codec, const tiles *m, uint32_t tile, uint8_t *out, size_t stride, size_t plane_bytes)
{
    const uint8_t *start = m->codes + tile * m->tile_bytes, *line = start;
    if (codec == WHIT_CODEC_I8S) {
        for (uint32_t l = 0; 8 * l < m->w->type.n_cols; l += 16, out += 32 * stride)
            unpack_i8s(m, tile, l, out, stride);
        return;
    }
    if (codec == WHIT_CODEC_T5 && m->in_superblocks) {
        unpack_superblocks(m, start, out, stride);
        return;
    }
    if (whit_codecs[codec].group_levels) {
        unpack_l2(m, start, out, stride);
        return;
    }
    const int quads = quads_of_line(codec);
    const uint32_t line_cols = 4 * (uint32_t)quads;
    uint32_t n_cols = m->w->type.n_cols, next_block = 0;
    for (uint32_t k = 0; k < n_cols; k += line_cols, out += quads * stride) {
        if (m->block_cols && k == next_block) {
            line += m->scale_bytes;
            next_block += m->block_cols;
        }
        if (whit_codecs[codec].top_bits) {
            unpack_period(codec, line, out, stride);
            line += whit_codecs[codec].lines * WHIT_LINE_BYTES;
            continue;
        }
        if (whit_codecs[codec].levels)
            unpack_levels(codec, load_line(line), out, stride);
        else
            unpack_line(codec, load_line(line), out, stride);
        line += WHIT_LINE_BYTES;
        if (codec != WHIT_CODEC_Q2) continue;
        unpack_line(codec, load_line(line), out + plane_bytes, stride);
        line += WHIT_LINE_BYTES;
    }
}

#endif
