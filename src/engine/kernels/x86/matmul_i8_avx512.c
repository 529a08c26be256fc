/* SPDX-License-Identifier: MIT
 * Computes GEMV and narrow GEMM of coded weights and int8 activations with AVX-512 and VNNI, for up to 127 tokens of
 * most codecs.
 *
 *   microtile    MR = 16 rows x NR = 1 or 2 tokens; from three tokens on MR = 32 (two tiles, so that
 *                four activations are loaded once for two products: otherwise loads are the limit)
 *                x NR = 4. More tokens need more passes, whose lines are in the cache
 *   KC           a step: the columns over which neither scale changes, at most K
 *   registers    4 sums per token (t5: one for each digit), from three tokens on 2 per token and tile;
 *                a line adds to each register only once, because a second addition would wait for the first
 *   L1, L2       lines prefetched from memory, first to L2, then to L1, and the activations; outputs are
 *                written by non-temporal stores, because other stores would first read their cache lines
 *                from memory, between the weights
 *
 * The weights are read once, from memory, so the work per line of 64 bytes must be small. Therefore fields of a byte
 * are masked but not shifted: VPDPBUSD multiplies bits [b j, b j + b) of every byte in their places and adds the
 * products to a register for field j, which is shifted down by b j once per step. Shifts are exact, since every sum in
 * that register is a multiple of 2^(b j).
 *
 *   t2   L & 0x03, L & 0x0C, L & 0x30, L & 0xC0            four registers per token
 *   t5   digits by seven look-ups (tiles_avx512.h), which need no shift
 *   b1   L & 1, 2, 4, 8, then the same of L >> 4: eight fields share four registers
 *   l2   fields look up levels by VPSHUFB, four registers without shifts
 *   i4   two fields, i8 one; several lines take turns, which hides VPDPBUSD's latency
 *
 * Sums stay below 2^31: 16 fields of a 64-k line times 192 * 128 at most, K <= 65,536. */
#include "kernels/x86/prefetch.h"
#include "kernels/x86/unpack_avx512.h"

enum { PASS_TOKENS = 4, REGISTERS_MAX = 5, PLANES = 2, PAIR_TOKENS = 3 };

/* Sums of one token and one plane; planes are two tiles, or the two planes of q2. */
typedef struct sums {
    __m512i of[REGISTERS_MAX];
} sums;

INLINE int registers_for(const int codec, const int n)
{
    if (n >= PAIR_TOKENS) return 2;
    return codec == WHIT_CODEC_T5 ? 5 : 4;
}

INLINE void prefetch_ahead(const prefetch_distances *ahead, const uint8_t *line)
{
    prefetch_l2(line + ahead->l2_bytes);
    prefetch_l1(line + ahead->l1_bytes);
}

/* Adds to register r of each sum the products of a field of every plane with four columns of n tokens. */
INLINE void add_fields(const int n, const int planes, const int r, sums acc[][PLANES], const __m512i fields[PLANES],
                       const int8_t *q, size_t stride)
{
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) {
        if (planes == 1) {
            acc[c][0].of[r] = add_products(acc[c][0].of[r], fields[0], q + c * stride);
            continue;
        }
        const __m512i quad = broadcast_quad(q + c * stride);
#pragma GCC unroll 2
        for (int p = 0; p < planes; p++) acc[c][p].of[r] = add_quad_products(acc[c][p].of[r], fields[p], quad);
    }
}

/* Adds the products of one line of every plane with n tokens; a byte of a line has 8 / bits fields, and `first` is the
 * register of the first field. */
INLINE void add_line(const int bits, const int n, const int planes, const int registers, sums acc[][PLANES],
                     const int first, const uint8_t *const lines[PLANES], const int8_t *q, size_t stride)
{
    const int n_fields = 8 / bits;
    __m512i line[PLANES], fields[PLANES];
#pragma GCC unroll 2
    for (int p = 0; p < planes; p++) line[p] = load_line(lines[p]);
#pragma GCC unroll 8
    for (int j = 0; j < n_fields; j++) {
        __m512i mask = _mm512_set1_epi8((char)(((1 << bits) - 1) << bits * (j % registers)));
#pragma GCC unroll 2
        for (int p = 0; p < planes; p++) {
            if (j > 0 && j % registers == 0) line[p] = _mm512_srli_epi16(line[p], (unsigned)(bits * registers));
            fields[p] = bits == 8 ? line[p] : _mm512_and_si512(line[p], mask);
        }
        add_fields(n, planes, (first + j) % registers, acc, fields, q + 4 * j, stride);
    }
}

/* Adds the products of n_lines lines of every plane, which are line_stride bytes apart. */
INLINE void add_lines(const int bits, const int n, const int planes, const int registers, sums acc[][PLANES],
                      const prefetch_distances *ahead, const uint8_t *const from[PLANES], const size_t line_stride,
                      const int8_t *q, size_t stride, uint32_t n_lines)
{
    const int fields = 8 / bits;
    const uint32_t turns = fields >= registers ? 1 : (uint32_t)(registers / fields);
    const uint8_t *lines[PLANES] = {from[0], from[1]};
    for (uint32_t l = 0; l < n_lines; l += turns) {
#pragma GCC unroll 4
        for (uint32_t turn = 0; turn < turns; turn++) {
            if (turn > 0 && l + turn >= n_lines) break;
#pragma GCC unroll 2
            for (int p = 0; p < planes; p++) prefetch_ahead(ahead, lines[p]);
            add_line(bits, n, planes, registers, acc, (int)turn * fields, lines, q, stride);
#pragma GCC unroll 2
            for (int p = 0; p < planes; p++) lines[p] += line_stride;
            q += 4 * fields;
        }
    }
}

INLINE void add_t5_lines(const int n, const int planes, const int registers, const t5_tables *tables,
                         sums acc[][PLANES], const prefetch_distances *ahead, const uint8_t *const from[PLANES],
                         const int8_t *q, size_t stride, uint32_t n_lines)
{
    const uint8_t *lines[PLANES] = {from[0], from[1]};
    for (uint32_t l = 0; l < n_lines; l++, q += 20) {
        t5_keys keys[PLANES];
#pragma GCC unroll 2
        for (int p = 0; p < planes; p++) {
            prefetch_ahead(ahead, lines[p]);
            keys[p] = t5_keys_of(tables, load_line(lines[p]));
            lines[p] += WHIT_LINE_BYTES;
        }
#pragma GCC unroll 5
        for (int d = 0; d < 5; d++) { /* digits are looked up as late as possible to save registers */
            __m512i fields[PLANES];
#pragma GCC unroll 2
            for (int p = 0; p < planes; p++) fields[p] = t5_look_up(tables, &keys[p], d);
            add_fields(n, planes, d % registers, acc, fields, q + 4 * d, stride);
        }
    }
}

/* Adds the products of the last 8 columns of a half superblock of t5, which follow its six t5 lines: two fields of a t2
 * line. */
INLINE void add_t5_rest(const int n, const int planes, const int registers, sums acc[][PLANES],
                        const uint8_t *const lines[PLANES], const int half, const int8_t *q, size_t stride)
{
#pragma GCC unroll 2
    for (int j = 0; j < 2; j++) {
        __m512i fields[PLANES];
#pragma GCC unroll 2
        for (int p = 0; p < planes; p++)
            fields[p] = _mm512_and_si512(_mm512_srli_epi16(load_line(lines[p]), (unsigned)(4 * half + 2 * j)),
                                         _mm512_set1_epi8(3));
        add_fields(n, planes, j % registers, acc, fields, q + 4 * j, stride);
    }
}

/* Adds the products of n_lines lines of l2, all of one scale group. */
INLINE void add_l2_lines(const int n, const int planes, const int registers, sums acc[][PLANES],
                         const __m512i levels[PLANES], const prefetch_distances *ahead,
                         const uint8_t *const from[PLANES], const int8_t *q, size_t stride, uint32_t n_lines)
{
    const uint8_t *lines[PLANES] = {from[0], from[1]};
    for (uint32_t l = 0; l < n_lines; l++, q += 16) {
        __m512i line[PLANES];
#pragma GCC unroll 2
        for (int p = 0; p < planes; p++) {
            prefetch_ahead(ahead, lines[p]);
            line[p] = load_line(lines[p]);
            lines[p] += WHIT_LINE_BYTES;
        }
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            __m512i quads[PLANES];
#pragma GCC unroll 2
            for (int p = 0; p < planes; p++) quads[p] = quad_of_levels(levels[p], line[p], j);
            add_fields(n, planes, j % registers, acc, quads, q + 4 * j, stride);
        }
    }
}

INLINE __m512i total(const int codec, const int registers, const sums *acc)
{
    const int bits = whit_codec_bits((unsigned)codec),
              fields = codec == WHIT_CODEC_T5 || codec == WHIT_CODEC_L2 ? 1 : 8 / bits;
    __m512i sum = acc->of[0];
#pragma GCC unroll 5
    for (int r = 1; r < registers; r++)
        sum = _mm512_add_epi32(sum, _mm512_srai_epi32(acc->of[r], (unsigned)(bits * (r % fields))));
    return sum;
}

/* Adds the products of columns [k, end) of t5 in superblocks to acc, half a superblock at a time. */
INLINE void add_t5_superblocks(const int n, const int planes, const int registers, const tiles *m, const t5_tables *t5,
                               sums acc[][PLANES], const prefetch_distances *ahead, const uint8_t *const start[PLANES],
                               const int8_t *q, size_t stride, uint32_t k, uint32_t end)
{
    for (uint32_t h = k / 128; h < (end + 127) / 128; h++) {
        const uint32_t n_lines = m->w->type.n_cols - h / 2 * 256 <= 128 ? 6 : 12;
        const uint8_t *lines[PLANES], *rest[PLANES];
        for (int p = 0; p < PLANES; p++) {
            const uint8_t *block = start[p] + (uint64_t)(h / 2) * m->block_bytes;
            lines[p] = block + h % 2 * 6 * WHIT_LINE_BYTES;
            rest[p] = block + n_lines * WHIT_LINE_BYTES;
        }
        add_t5_lines(n, planes, registers, t5, acc, ahead, lines, q + 128 * h, stride, 6);
        if (h % 2)
            add_t5_rest(n, planes, registers, acc, rest, 1, q + 128 * h + 120, stride);
        else
            add_t5_rest(n, planes, registers, acc, rest, 0, q + 128 * h + 120, stride);
    }
}

/* Multiplies n_tiles tiles by tokens [t, t + n), n <= PASS_TOKENS. */
INLINE void multiply_tiles(const int codec, const int n, const int n_tiles, const tiles *m, const t5_tables *t5,
                           const whit_acts *x, const uint32_t tile[PLANES], uint32_t t, float *y, size_t y_stride)
{
    const int bits = whit_codec_bits((unsigned)codec);
    const bool is_q2 = codec == WHIT_CODEC_Q2;
    const int planes = is_q2 ? 2 : n_tiles, registers = registers_for(codec, n);
    const size_t line_stride = is_q2 ? 2 * WHIT_LINE_BYTES : WHIT_LINE_BYTES;
    const uint32_t line_cols = codec == WHIT_CODEC_T5 ? 20 : (uint32_t)(32 / bits);
    const uint8_t *start[PLANES], *lines[PLANES];
    for (int p = 0; p < PLANES; p++) {
        start[p] = m->codes + tile[p] * m->tile_bytes;
        lines[p] = is_q2 ? start[p] + p * WHIT_LINE_BYTES : start[p];
    }
    const int8_t *q = x->i8 + (size_t)t * x->stride;
    const size_t stride = x->stride;
    /* On Zen 4 two tokens of 6,912 columns are a fifth slower with the distances for one token. */
    const prefetch_distances ahead = n == 1 ? prefetch_one_stream() : PREFETCH_USUAL;
    uint32_t step_cols = x->spec.step ? x->spec.step : x->n_cols;
    __m512 out[PASS_TOKENS][PLANES];
#pragma GCC unroll 4
    for (int c = 0; c < n; c++) out[c][0] = out[c][1] = _mm512_setzero_ps();
    for (uint32_t step = 0, k = 0; step < x->n_steps; step++) {
        uint32_t end = tiles_min(k + step_cols, x->n_cols);
        sums acc[PASS_TOKENS][PLANES];
#pragma GCC unroll 4
        for (int c = 0; c < n; c++) {
#pragma GCC unroll 5
            for (int r = 0; r < REGISTERS_MAX; r++) acc[c][0].of[r] = acc[c][1].of[r] = _mm512_setzero_si512();
        }
        if (codec == WHIT_CODEC_T5 && m->in_superblocks) {
            add_t5_superblocks(n, planes, registers, m, t5, acc, &ahead, start, q, stride, k, end);
        } else if (codec == WHIT_CODEC_I8S) {
            for (uint32_t from = k; from < end; from += 128) {
                _Alignas(64) uint8_t quads[PLANES][32 * WHIT_LINE_BYTES];
                for (int p = 0; p < planes; p++) unpack_i8s(m, tile[p], from / 8, quads[p], WHIT_LINE_BYTES);
                const uint8_t *const unpacked[PLANES] = {quads[0], quads[1]};
                add_lines(bits, n, planes, registers, acc, &ahead, unpacked, WHIT_LINE_BYTES, q + from, stride,
                          tiles_min(32, (end - from + 3) / 4));
            }
        } else {
            const uint32_t n_lines = (end - k + line_cols - 1) / line_cols;
            const bool begins_block = m->block_cols && (k & (m->block_cols - 1)) == 0;
            for (int p = 0; p < planes && begins_block; p++) lines[p] += m->scale_bytes;
            if (codec == WHIT_CODEC_T5) {
                add_t5_lines(n, planes, registers, t5, acc, &ahead, lines, q + k, stride, n_lines);
            } else if (codec == WHIT_CODEC_L2) {
                __m512i levels[PLANES];
                for (int p = 0; p < planes; p++) levels[p] = load_group_levels(m, start[p], k >> m->group_shift);
                add_l2_lines(n, planes, registers, acc, levels, &ahead, lines, q + k, stride, n_lines);
            } else {
                add_lines(bits, n, planes, registers, acc, &ahead, lines, line_stride, q + k, stride, n_lines);
            }
            for (int p = 0; p < planes; p++) lines[p] += n_lines * line_stride;
        }
        uint32_t group = k >> m->group_shift;
#pragma GCC unroll 2
        for (int i = 0; i < n_tiles; i++) {
            __m512 scale = load_field(m, tile[i], start[i], group, 0), scale_b = scale;
            __m512 offset = scale;
            if (is_q2) scale_b = load_field(m, tile[i], start[i], group, 1);
            if (m->has_offset) offset = load_field(m, tile[i], start[i], group, 1 + is_q2);
#pragma GCC unroll 4
            for (int c = 0; c < n; c++) {
                size_t at = (size_t)(t + (uint32_t)c) * x->n_steps + step;
                __m512 scale_x = _mm512_set1_ps(x->scales[at]), sum = out[c][i];
                int32_t sum_q = x->sums[at];
                sum = _mm512_fmadd_ps(true_sum(codec, total(codec, registers, &acc[c][i]), sum_q),
                                      _mm512_mul_ps(scale, scale_x), sum);
                if (is_q2)
                    sum = _mm512_fmadd_ps(true_sum(codec, total(codec, registers, &acc[c][1]), sum_q),
                                          _mm512_mul_ps(scale_b, scale_x), sum);
                if (m->has_offset)
                    sum = _mm512_fmadd_ps(_mm512_mul_ps(offset, scale_x), _mm512_set1_ps((float)sum_q), sum);
                out[c][i] = sum;
            }
        }
        k = end;
    }
#pragma GCC unroll 2
    for (int i = 0; i < n_tiles; i++) {
        __mmask16 rows = rows_mask(m, tile[i]);
#pragma GCC unroll 4
        for (int c = 0; c < n; c++)
            store_outputs(y + (t + (uint32_t)c) * y_stride + (size_t)tile[i] * WHIT_TILE_ROWS, rows, out[c][i]);
    }
}

/* Multiplies n_tiles tiles by all tokens; after the first pass their lines are in the cache. */
INLINE void multiply_passes(const int codec, const int n_tiles, const tiles *m, const t5_tables *t5, const whit_acts *x,
                            const uint32_t tile[PLANES], float *y, size_t y_stride)
{
    for (uint32_t t = 0, n; t < x->n_tokens; t += n) {
        n = tiles_min(x->n_tokens - t, PASS_TOKENS);
#define PASS(n_tokens)                                                                                                 \
    case n_tokens: multiply_tiles(codec, n_tokens, n_tiles, m, t5, x, tile, t, y, y_stride); break;
        switch (n) {
            PASS(1) PASS(2) PASS(3) PASS(4)
        }
#undef PASS
    }
}

/* Multiplies tiles in order, or from PAIR_TOKENS tokens on pairs of a tile of the first half and a tile of the second
 * half, so that each half is read sequentially. */
INLINE void run(const int codec, const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,
                float *y, size_t y_stride)
{
    tiles m = tiles_of(w);
    const t5_tables t5 = codec == WHIT_CODEC_T5 ? t5_load_tables() : (t5_tables){0};
    uint32_t half = codec == WHIT_CODEC_Q2 || x->n_tokens < PAIR_TOKENS ? 0 : (tile_end - tile_begin) / 2;
    for (uint32_t i = 0; i < half; i++) {
        const uint32_t pair[PLANES] = {tile_begin + i, tile_begin + half + i};
        multiply_passes(codec, 2, &m, &t5, x, pair, y, y_stride);
    }
    for (uint32_t i = tile_begin + 2 * half; i < tile_end; i++) {
        const uint32_t tile[PLANES] = {i, i};
        multiply_passes(codec, 1, &m, &t5, x, tile, y, y_stride);
    }
    _mm_sfence();
}

#define MATMUL(lower, upper, to_tokens)                                                                                \
    static bool accepts_##lower(const whit_tensor_type *type, const whit_acts_spec *spec)                              \
    {                                                                                                                  \
        return type->codec == WHIT_CODEC_##upper && spec->kind == WHIT_ACTS_I8 && steps_are_lines(type, spec);         \
    }                                                                                                                  \
    static void run_##lower(const whit_tensor *w, const whit_acts *x, uint32_t tile_begin, uint32_t tile_end,          \
                            float *y, size_t y_stride, void *scratch)                                                  \
    {                                                                                                                  \
        (void)scratch;                                                                                                 \
        run(WHIT_CODEC_##upper, w, x, tile_begin, tile_end, y, y_stride);                                              \
    }                                                                                                                  \
    const whit_matmul_kernel whit_matmul_i8_##lower##_16x4_avx512 = {                                                  \
        .name = "matmul_i8_" #lower "_16x4_avx512",                                                                    \
        .isa = WHIT_ISA_AVX512,                                                                                        \
        .min_tokens = 1,                                                                                               \
        .max_tokens = to_tokens,                                                                                       \
        .accepts = accepts_##lower,                                                                                    \
        .run = run_##lower,                                                                                            \
    };

MATMUL(t2, T2, UINT32_MAX)
MATMUL(t5, T5, 127) /* kernels.inc lists this kernel after the 64x6 kernel of t5, so that for at most 127 tokens the
                     * latter is only selected if this one does not accept the tensor (steps that end within lines) */
MATMUL(b1, B1, UINT32_MAX)
MATMUL(q2, Q2, UINT32_MAX)
MATMUL(i4, I4, UINT32_MAX)
MATMUL(i8, I8, UINT32_MAX)
MATMUL(i8s, I8S, UINT32_MAX)
MATMUL(l2, L2, UINT32_MAX)
