/* SPDX-License-Identifier: MIT
 * Coded weights times int8 activations, one to eight columns: AVX-512 with VNNI.
 *
 * The weights are read once, from memory; what counts is to do little for each line of 64 bytes.
 * So fields of a byte are masked but not shifted: bits [b j, b j + b) of every byte go as they
 * stand into VPDPBUSD and accumulate in a register of their own, which is shifted down by b j once
 * per step. Shifts are exact, since every sum in that register is a multiple of 2^(b j).
 *
 *   t2   L & 0x03, L & 0x0C, L & 0x30, L & 0xC0            four registers per column
 *   t5   digits by seven look-ups (tiles_avx512.h), as they are, so that nothing is to be shifted
 *   b1   L & 1, 2, 4, 8, then the same of L >> 4: eight fields share four registers
 *   i4   two fields, i8 one; several lines take turns, which hides VPDPBUSD's latency
 *
 * Outputs go past the cache: to be written there a line would have to be fetched first, in between
 * the weights.
 *
 * One or two columns take four registers each, three or four take two each and more shifts.
 * Sums stay below 2^31: 16 fields of a 64-k line times 192 * 128 at most, K <= 65,536. */
#include "kernels/x86/unpack_avx512.h"

enum { PASS_COLUMNS = 4, REGISTERS_MAX = 4 };

/* A line is asked for twice: far ahead from memory into the second cache, near from there into the
 * first. */
enum { FAR_BYTES = 8192, NEAR_BYTES = 512 };

/* Registers of one column and one plane. */
typedef struct sums {
    __m512i of[REGISTERS_MAX];
} sums;

INLINE int registers_for(const int n)
{
    return n <= 2 ? 4 : 2;
}

INLINE void ask_ahead(const uint8_t *line)
{
    _mm_prefetch((const char *)line + FAR_BYTES, _MM_HINT_T1);
    _mm_prefetch((const char *)line + NEAR_BYTES, _MM_HINT_T0);
}

/* Adds one line whose byte holds 8 / bits fields; `first` is the register of its first field. */
INLINE void add_line(const int bits, const int n, sums *acc, const int first, __m512i line,
                     const int8_t *q, size_t stride)
{
    const int fields = 8 / bits, registers = registers_for(n);
#pragma GCC unroll 8
    for (int j = 0; j < fields; j++) {
        const int r = (first + j) % registers;
        if (j > 0 && j % registers == 0)
            line = _mm512_srli_epi16(line, (unsigned)(bits * registers));
        __m512i mask = _mm512_set1_epi8((char)(((1 << bits) - 1) << bits * (j % registers)));
        __m512i field = bits == 8 ? line : _mm512_and_si512(line, mask);
#pragma GCC unroll 4
        for (int c = 0; c < n; c++)
            acc[c].of[r] = add_products(acc[c].of[r], field, q + c * stride + 4 * j);
    }
}

/* Adds n_lines lines `line_stride` bytes apart. */
INLINE void add_lines(const int bits, const int n, sums *acc, const uint8_t *line,
                      const size_t line_stride, const int8_t *q, size_t stride, uint32_t n_lines)
{
    const int fields = 8 / bits, registers = registers_for(n);
    const uint32_t turns = fields >= registers ? 1 : (uint32_t)(registers / fields);
    uint32_t l = 0;
    for (; l + turns <= n_lines; l += turns) {
#pragma GCC unroll 4
        for (uint32_t turn = 0; turn < turns; turn++) {
            ask_ahead(line);
            add_line(bits, n, acc, (int)turn * fields, load_line(line), q, stride);
            line += line_stride;
            q += 4 * fields;
        }
    }
    for (; l < n_lines; l++, line += line_stride, q += 4 * fields)
        add_line(bits, n, acc, 0, load_line(line), q, stride);
}

INLINE void add_t5_lines(const int n, const t5_tables *tables, sums *acc, const uint8_t *line,
                         const int8_t *q, size_t stride, uint32_t n_lines)
{
    const int registers = registers_for(n);
    for (uint32_t l = 0; l < n_lines; l++, line += WHIT_LINE_BYTES, q += 20) {
        ask_ahead(line);
        __m512i digits[5];
        t5_digits(tables, load_line(line), digits);
#pragma GCC unroll 5
        for (int d = 0; d < 5; d++)
#pragma GCC unroll 4
            for (int c = 0; c < n; c++)
                acc[c].of[d % registers] =
                    add_products(acc[c].of[d % registers], digits[d], q + c * stride + 4 * d);
    }
}

/* Columns [128 h, + 8) behind the six t5 lines of a half superblock: two fields of a t2 line. */
INLINE void add_t5_rest(const int n, sums *acc, const uint8_t *line, const int half,
                        const int8_t *q, size_t stride)
{
    __m512i fields = load_line(line);
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
        __m512i shifted = _mm512_srli_epi16(fields, (unsigned)(4 * half + 2 * j));
        __m512i field = _mm512_and_si512(shifted, _mm512_set1_epi8(3));
#pragma GCC unroll 4
        for (int c = 0; c < n; c++)
            acc[c].of[j] = add_products(acc[c].of[j], field, q + c * stride + 4 * j);
    }
}

INLINE __m512i total(const int codec, const int n, const sums *acc)
{
    const int bits = code_bits(codec), fields = codec == WHIT_CODEC_T5 ? 1 : 8 / bits;
    __m512i sum = acc->of[0];
#pragma GCC unroll 4
    for (int r = 1; r < registers_for(n); r++)
        sum = _mm512_add_epi32(sum, _mm512_srai_epi32(acc->of[r], (unsigned)(bits * (r % fields))));
    return sum;
}

/* One tile, n <= PASS_COLUMNS columns from token t on. */
INLINE void multiply_tile(const int codec, const int n, const tiles *m, const t5_tables *t5,
                          const whit_acts *x, uint32_t tile, uint32_t t, float *y, size_t y_stride)
{
    const int bits = code_bits(codec);
    const bool is_q2 = codec == WHIT_CODEC_Q2;
    const uint32_t line_cols = codec == WHIT_CODEC_T5 ? 20 : (uint32_t)(32 / bits);
    const uint8_t *start = m->codes + tile * m->tile_bytes, *line = start;
    const int8_t *q = x->i8 + (size_t)t * x->stride;
    const size_t stride = x->stride;
    uint32_t step_cols = x->spec.step ? x->spec.step : x->n_cols;
    __m512 out[PASS_COLUMNS];
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) out[c] = _mm512_setzero_ps();
    for (uint32_t step = 0, k = 0; step < x->n_steps; step++) {
        uint32_t end = tiles_min(k + step_cols, x->n_cols);
        sums acc[PASS_COLUMNS], extra[PASS_COLUMNS];
#pragma GCC unroll 4
        for (int c = 0; c < n; c++) {
#pragma GCC unroll 4
            for (int r = 0; r < REGISTERS_MAX; r++)
                acc[c].of[r] = extra[c].of[r] = _mm512_setzero_si512();
        }
        if (codec == WHIT_CODEC_T5 && m->in_superblocks) {
            for (uint32_t h = k / 128; h < (end + 127) / 128; h++) {
                const uint8_t *block = start + (uint64_t)(h / 2) * m->block_bytes;
                const uint8_t *lines = block + h % 2 * 6 * WHIT_LINE_BYTES;
                uint32_t n_lines = x->n_cols - h / 2 * 256 <= 128 ? 6 : 12;
                const int8_t *from = q + 128 * h;
                add_t5_lines(n, t5, acc, lines, from, stride, 6);
                block += n_lines * WHIT_LINE_BYTES;
                if (h % 2)
                    add_t5_rest(n, acc, block, 1, from + 120, stride);
                else
                    add_t5_rest(n, acc, block, 0, from + 120, stride);
            }
        } else if (codec == WHIT_CODEC_I8S) {
            for (uint32_t from = k; from < end; from += 128) {
                _Alignas(64) uint8_t quads[32 * WHIT_LINE_BYTES];
                unpack_i8s(m, tile, from / 8, quads, WHIT_LINE_BYTES);
                add_lines(bits, n, acc, quads, WHIT_LINE_BYTES, q + from, stride,
                          tiles_min(32, (end - from + 3) / 4));
            }
        } else {
            uint32_t n_lines = (end - k + line_cols - 1) / line_cols;
            if (m->block_cols && (k & (m->block_cols - 1)) == 0) line += m->scale_bytes;
            if (codec == WHIT_CODEC_T5) {
                add_t5_lines(n, t5, acc, line, q + k, stride, n_lines);
            } else if (is_q2) {
                add_lines(bits, n, acc, line, 2 * WHIT_LINE_BYTES, q + k, stride, n_lines);
                add_lines(bits, n, extra, line + WHIT_LINE_BYTES, 2 * WHIT_LINE_BYTES, q + k,
                          stride, n_lines);
                line += n_lines * WHIT_LINE_BYTES;
            } else {
                add_lines(bits, n, acc, line, WHIT_LINE_BYTES, q + k, stride, n_lines);
            }
            line += n_lines * WHIT_LINE_BYTES;
        }
        uint32_t group = k >> m->group_shift;
        __m512 scale = load_field(m, tile, start, group, 0), scale_b = scale, offset = scale;
        if (is_q2) scale_b = load_field(m, tile, start, group, 1);
        if (m->has_offset) offset = load_field(m, tile, start, group, 1 + is_q2);
#pragma GCC unroll 4
        for (int c = 0; c < n; c++) {
            size_t at = (size_t)(t + (uint32_t)c) * x->n_steps + step;
            __m512 scale_x = _mm512_set1_ps(x->scales[at]);
            int32_t sum_q = x->sums[at];
            out[c] = _mm512_fmadd_ps(true_sum(codec, total(codec, n, &acc[c]), sum_q),
                                     _mm512_mul_ps(scale, scale_x), out[c]);
            if (is_q2)
                out[c] = _mm512_fmadd_ps(true_sum(codec, total(codec, n, &extra[c]), sum_q),
                                         _mm512_mul_ps(scale_b, scale_x), out[c]);
            if (m->has_offset)
                out[c] = _mm512_fmadd_ps(_mm512_mul_ps(offset, scale_x),
                                         _mm512_set1_ps((float)sum_q), out[c]);
        }
        k = end;
    }
    __mmask16 rows = rows_mask(m, tile);
#pragma GCC unroll 4
    for (int c = 0; c < n; c++)
        store_outputs(y + (t + (uint32_t)c) * y_stride + (size_t)tile * WHIT_TILE_ROWS, rows,
                      out[c]);
}

/* Tiles one after the other; a tile's second pass finds its lines in the cache. */
INLINE void run(const int codec, const whit_tensor *w, const whit_acts *x, uint32_t tile_begin,
                uint32_t tile_end, float *y, size_t y_stride)
{
    tiles m = tiles_of(w);
    const t5_tables t5 = codec == WHIT_CODEC_T5 ? t5_load_tables() : (t5_tables){0};
    for (uint32_t tile = tile_begin; tile < tile_end; tile++)
        for (uint32_t t = 0; t < x->n_tokens;) {
            uint32_t n = tiles_min(x->n_tokens - t, PASS_COLUMNS);
            if (n == 1)
                multiply_tile(codec, 1, &m, &t5, x, tile, t, y, y_stride);
            else if (n == 2)
                multiply_tile(codec, 2, &m, &t5, x, tile, t, y, y_stride);
            else if (n == 3)
                multiply_tile(codec, 3, &m, &t5, x, tile, t, y, y_stride);
            else
                multiply_tile(codec, 4, &m, &t5, x, tile, t, y, y_stride);
            t += n;
        }
    _mm_sfence();
}

#define MATMUL(lower, upper)                                                                       \
    static bool accepts_##lower(const whit_tensor_type *type, const whit_acts_spec *spec)          \
    {                                                                                              \
        return type->codec == WHIT_CODEC_##upper && spec->kind == WHIT_ACTS_I8 &&                  \
               steps_are_lines(type, spec);                                                        \
    }                                                                                              \
    static void run_##lower(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin,         \
                            uint32_t tile_end, float *y, size_t y_stride, void *scratch)           \
    {                                                                                              \
        (void)scratch;                                                                             \
        run(WHIT_CODEC_##upper, w, x, tile_begin, tile_end, y, y_stride);                          \
    }                                                                                              \
    const whit_matmul_kernel whit_matmul_i8_##lower##_16x4_avx512 = {                              \
        .name = "matmul_i8_" #lower "_16x4_avx512",                                                \
        .isa = WHIT_ISA_AVX512,                                                                    \
        .min_tokens = 1,                                                                           \
        .max_tokens = UINT32_MAX,                                                                  \
        .accepts = accepts_##lower,                                                                \
        .run = run_##lower,                                                                        \
    };

MATMUL(t2, T2)
MATMUL(t5, T5)
MATMUL(b1, B1)
MATMUL(q2, Q2)
MATMUL(i4, I4)
MATMUL(i8, I8)
MATMUL(i8s, I8S)
