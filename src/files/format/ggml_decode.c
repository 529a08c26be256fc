/* SPDX-License-Identifier: MIT
 * Decodes blocks of GGUF weight types to codes, scales and offsets, and rows to float32.
 *
 * One function per block type writes the codes of a block in row order and, if the block has them, a scale (and offset)
 * per group. A comment at a function lists the block's fields in order, with their sizes in bytes in brackets. The
 * fields' letters are those of the format descriptions: d scale, m minimum, q codes, sc sub-scale. Bits are numbered
 * from the least significant. */
#include "format/ggml_types.h"

#include "base/half.h"
#include "format/ggml_blocks.h"
#include "kernels/grids.h"

static float f16_at(const uint8_t *p)
{
    return whit_f32_from_f16(whit_load_u16(p));
}

/* Decodes qs[16] to 32 codes: the low nibbles are codes 0 to 15, the high nibbles codes 16 to 31. */
static void nibbles(const uint8_t *qs, int8_t *codes)
{
    for (int j = 0; j < 16; j++) {
        codes[j] = (int8_t)(qs[j] & 15);
        codes[j + 16] = (int8_t)(qs[j] >> 4);
    }
}

static void q4_0(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    (void)offsets;
    scales[0] = f16_at(b);
    nibbles(b + 2, codes);
    for (int j = 0; j < 32; j++) codes[j] = (int8_t)(codes[j] - 8);
}

static void q4_1(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    scales[0] = f16_at(b);
    offsets[0] = f16_at(b + 2);
    nibbles(b + 4, codes);
}

/* Decodes 32 codes of five bits and subtracts `bias`. The low four bits are the nibbles of qs; the fifth bit of code j
 * is bit j of the little-endian word at qh. */
static void nibbles_and_fifth(const uint8_t *qh, const uint8_t *qs, int bias, int8_t *codes)
{
    uint32_t fifth = whit_load_u32(qh);
    nibbles(qs, codes);
    for (int j = 0; j < 32; j++) codes[j] = (int8_t)((codes[j] | (int)(fifth >> j & 1) << 4) - bias);
}

static void q5_0(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    (void)offsets;
    scales[0] = f16_at(b);
    nibbles_and_fifth(b + 2, b + 6, 16, codes);
}

static void q5_1(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    scales[0] = f16_at(b);
    offsets[0] = f16_at(b + 2);
    nibbles_and_fifth(b + 4, b + 8, 0, codes);
}

static void q8_0(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    (void)offsets;
    scales[0] = f16_at(b);
    memcpy(codes, b + 2, 32);
}

static void iq4_nl(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    static const int8_t levels[16] = WHIT_GRID_LEVELS_NL;
    (void)offsets;
    scales[0] = f16_at(b);
    nibbles(b + 2, codes);
    for (int j = 0; j < 32; j++) codes[j] = levels[codes[j]];
}

void whit_ggml_k_numbers(const uint8_t *block, uint8_t numbers[16])
{
    const uint8_t *s = block + 4;
    for (int j = 0; j < 4; j++) {
        numbers[2 * j] = s[j] & 63;
        numbers[2 * j + 1] = s[j + 4] & 63;
        numbers[2 * j + 8] = (uint8_t)((s[j + 8] & 15) | (s[j] >> 6) << 4);
        numbers[2 * j + 9] = (uint8_t)(s[j + 8] >> 4 | (s[j + 4] >> 6) << 4);
    }
}

/* Computes the scales and offsets of a Q4_K or Q5_K block, which begins with d[2] and dmin[2]. An offset is -(dmin *
 * minimum). */
static void k_scales(const uint8_t *b, float *scales, float *offsets)
{
    float d = f16_at(b), dmin = f16_at(b + 2);
    uint8_t numbers[16];
    whit_ggml_k_numbers(b, numbers);
    for (int j = 0; j < 8; j++) {
        scales[j] = d * (float)numbers[2 * j];
        offsets[j] = -(dmin * (float)numbers[2 * j + 1]);
    }
}

static void q4_k(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    const uint8_t *qs = b + 16;
    k_scales(b, scales, offsets);
    for (int half = 0; half < 4; half++, qs += 32, codes += 64)
        for (int l = 0; l < 32; l++) {
            codes[l] = (int8_t)(qs[l] & 15);
            codes[l + 32] = (int8_t)(qs[l] >> 4);
        }
}

static void q5_k(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    const uint8_t *qh = b + 16, *qs = b + 48;
    k_scales(b, scales, offsets);
    for (int half = 0; half < 4; half++, qs += 32, codes += 64)
        for (int l = 0; l < 32; l++) {
            codes[l] = (int8_t)((qs[l] & 15) | (qh[l] >> (2 * half) & 1) << 4);
            codes[l + 32] = (int8_t)(qs[l] >> 4 | (qh[l] >> (2 * half + 1) & 1) << 4);
        }
}

/* Decodes 128 codes of two bits from 32 bytes and subtracts `bias`. Field f of the bytes, at bit shift + f * step, has
 * codes 32 f to 32 f + 31. */
static void two_bit_fields(const uint8_t *qs, int shift, int step, int bias, int8_t *codes)
{
    for (int field = 0; field < 4; field++, shift += step)
        for (int m = 0; m < 32; m++) codes[32 * field + m] = (int8_t)((qs[m] >> shift & 3) - bias);
}

/* A block consists of scales[16] (low nibble: scale, high nibble: minimum), qs[64], d[2], dmin[2]. Each two-bit field
 * of 32 bytes of qs has 32 consecutive codes. */
static void q2_k(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    float d = f16_at(b + 80), dmin = f16_at(b + 82);
    for (int j = 0; j < 16; j++) {
        scales[j] = d * (float)(b[j] & 15);
        offsets[j] = -(dmin * (float)(b[j] >> 4));
    }
    two_bit_fields(b + 16, 0, 2, 0, codes);
    two_bit_fields(b + 48, 0, 2, 0, codes + 128);
}

/* A block consists of hmask[32], qs[64], scales[12], d[2]. Where hmask has a zero bit, 4 is subtracted from the code. A
 * scale has six bits: the low four are a nibble of scales[0..7], the high two a field of scales[8..11]; 32 is
 * subtracted from it. */
static void q3_k(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    const uint8_t *qs = b + 32, *s = b + 96;
    float d = f16_at(b + 108);
    (void)offsets;
    for (int j = 0; j < 16; j++) {
        int low = s[j % 8] >> j / 8 * 4 & 15, high = s[8 + j % 4] >> j / 4 * 2 & 3;
        scales[j] = d * (float)((low | high << 4) - 32);
    }
    two_bit_fields(qs, 0, 2, 4, codes);
    two_bit_fields(qs + 32, 0, 2, 4, codes + 128);
    for (int field = 0; field < 8; field++)
        for (int m = 0; m < 32; m++) codes[32 * field + m] = (int8_t)(codes[32 * field + m] + 4 * (b[m] >> field & 1));
}

static void q6_k(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    const uint8_t *ql = b, *qh = b + 128;
    float d = f16_at(b + 208);
    (void)offsets;
    for (int j = 0; j < 16; j++) scales[j] = d * (float)(int8_t)b[192 + j];
    for (int half = 0; half < 2; half++, ql += 64, qh += 32, codes += 128)
        for (int l = 0; l < 32; l++)
            for (int part = 0; part < 4; part++) {
                int low = ql[l + 32 * (part & 1)] >> (4 * (part >> 1)) & 15;
                codes[l + 32 * part] = (int8_t)((low | (qh[l] >> (2 * part) & 3) << 4) - 32);
            }
}

static void i2_s(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    (void)scales, (void)offsets;
    two_bit_fields(b, 6, -2, 1, codes);
}

static void tq2_0(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    (void)offsets;
    scales[0] = f16_at(b + 64);
    two_bit_fields(b, 0, 2, 1, codes);
    two_bit_fields(b + 32, 0, 2, 1, codes + 128);
}

/* Decodes trit n of each of n_bytes bytes. A byte stores five trits as a fraction in base 3 (byte / 256), whose first
 * digit is trit 0. */
static void trits(const uint8_t *bytes, int n_bytes, int n, int8_t *codes)
{
    static const uint8_t power[5] = {1, 3, 9, 27, 81};
    for (int m = 0; m < n_bytes; m++) codes[m] = (int8_t)(((uint8_t)(bytes[m] * power[n]) * 3 >> 8) - 1);
}

static void tq1_0(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    (void)offsets;
    scales[0] = f16_at(b + 52);
    for (int n = 0; n < 5; n++) trits(b, 32, n, codes + 32 * n);
    for (int n = 0; n < 5; n++) trits(b + 32, 16, n, codes + 160 + 16 * n);
    for (int n = 0; n < 4; n++) trits(b + 48, 4, n, codes + 240 + 4 * n);
}

static void ptq1_0(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    (void)offsets;
    scales[0] = f16_at(b + 26);
    for (int n = 0; n < 5; n++) trits(b, 16, n, codes + 16 * n);
    for (int n = 0; n < 5; n++) trits(b + 16, 8, n, codes + 80 + 8 * n);
    for (int n = 0; n < 4; n++) trits(b + 24, 2, n, codes + 120 + 2 * n);
}

static void q1_0(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    (void)offsets;
    scales[0] = f16_at(b);
    for (int i = 0; i < 16; i++) {
        /* Spreads bit j of the byte to byte j of a word. The three steps isolate each bit, turn it into 0 or 1, and map
         * that to -1 or 1. */
        uint64_t word = b[2 + i] * 0x0101010101010101u & 0x8040201008040201u;
        word = (word + 0x7F7F7F7F7F7F7F7Fu) >> 7 & 0x0101010101010101u;
        word = ~(word * 0xFE);
        memcpy(codes + 8 * i, &word, sizeof word);
    }
}

/* Decodes n codes from n / 4 bytes. Each byte has four consecutive codes, the first in its low bits. */
static void q2_codes(const uint8_t *qs, int n, int8_t *codes)
{
    for (int i = 0; i < n / 4; i++) {
        uint32_t byte = qs[i], word = (byte | byte << 6 | byte << 12 | byte << 18) & 0x03030303u;
        word = ((word | 0x80808080u) - 0x01010101u) ^ 0x80808080u; /* subtract 1 from each byte */
        memcpy(codes + 4 * i, &word, sizeof word);
    }
}

static void q2_0(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    (void)offsets;
    scales[0] = f16_at(b);
    q2_codes(b + 2, 64, codes);
}

static void pq2_0(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    (void)offsets;
    scales[0] = f16_at(b);
    q2_codes(b + 2, 128, codes);
}

/* A block consists of qs[32] (64 slots of four bits), sign[8], d[2]. A slot selects a pattern for a group of four
 * weights of which exactly one is zero. A pattern has two bits per weight, the first weight lowest; a set bit in `sign`
 * negates it. The weights of group g are 16 apart, from 64 (g / 16) + g % 16 on. */
static void stq1_0(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    static const uint8_t patterns[16] = {0xA9, 0x89, 0x29, 0x09, 0xA6, 0x86, 0x26, 0x06,
                                         0x9A, 0x92, 0x1A, 0x12, 0x6A, 0x62, 0x4A, 0x42};
    (void)offsets;
    scales[0] = f16_at(b + 40);
    for (int g = 0; g < 64; g++) {
        int pattern = patterns[b[g / 2] >> 4 * (g % 2) & 15];
        if (b[32 + g / 8] >> g % 8 & 1) pattern = 0xAA - pattern;
        for (int lane = 0; lane < 4; lane++)
            codes[64 * (g / 16) + 16 * lane + g % 16] = (int8_t)((pattern >> 2 * lane & 3) - 1);
    }
}

/* A block consists of 13 bytes for 64 weights. The first twelve have five consecutive trits each; the last has the
 * trits of weights 15, 31, 47, 63. The first trit of a byte is least significant. */
static void iq1_bn(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    (void)scales, (void)offsets;
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 3; k++)
            for (int j = 0; j < 5; j++) trits(b + 3 * i + k, 1, 4 - j, codes + 16 * i + 5 * k + j);
        trits(b + 12, 1, 4 - i, codes + 16 * i + 15);
    }
}

static void iq2_bn(const uint8_t *b, int8_t *codes, float *scales, float *offsets)
{
    (void)scales, (void)offsets;
    for (int field = 0; field < 4; field++)
        for (int j = 0; j < 16; j++) codes[16 * field + j] = (int8_t)((b[j] >> 2 * field & 3) - 1);
}

/* Decodes row k (0 to 3) of a block of four interleaved rows. Byte 16 l + 4 k + i has column 16 l + 4 z + i in bits 2 z
 * and 2 z + 1. */
static void iq2_bn_r4(const uint8_t *b, uint64_t k, int8_t *codes)
{
    for (int l = 0; l < 4; l++)
        for (int z = 0; z < 4; z++)
            for (int i = 0; i < 4; i++)
                codes[16 * l + 4 * z + i] = (int8_t)((b[16 * l + 4 * (int)k + i] >> 2 * z & 3) - 1);
}

static whit_ggml_block_fn *const block_functions[WHIT_GGML_KIND_COUNT] = {
    [WHIT_GGML_Q4_0] = q4_0,
    [WHIT_GGML_Q4_1] = q4_1,
    [WHIT_GGML_Q5_0] = q5_0,
    [WHIT_GGML_Q5_1] = q5_1,
    [WHIT_GGML_Q8_0] = q8_0,
    [WHIT_GGML_Q4_K] = q4_k,
    [WHIT_GGML_Q5_K] = q5_k,
    [WHIT_GGML_Q6_K] = q6_k,
    [WHIT_GGML_IQ4_NL] = iq4_nl,
    [WHIT_GGML_I2_S] = i2_s,
    [WHIT_GGML_TQ1_0] = tq1_0,
    [WHIT_GGML_TQ2_0] = tq2_0,
    [WHIT_GGML_Q1_0] = q1_0,
    [WHIT_GGML_Q2_0] = q2_0,
    [WHIT_GGML_PQ2_0] = pq2_0,
    [WHIT_GGML_PTQ1_0] = ptq1_0,
    [WHIT_GGML_STQ1_0] = stq1_0,
    [WHIT_GGML_IQ1_BN] = iq1_bn,
    [WHIT_GGML_IQ2_BN] = iq2_bn,
    [WHIT_GGML_Q2_K] = q2_k,
    [WHIT_GGML_Q3_K] = q3_k,
    [WHIT_GGML_IQ1_S] = whit_ggml_block_iq1_s,
    [WHIT_GGML_IQ1_M] = whit_ggml_block_iq1_m,
    [WHIT_GGML_IQ2_XXS] = whit_ggml_block_iq2_xxs,
    [WHIT_GGML_IQ2_XS] = whit_ggml_block_iq2_xs,
    [WHIT_GGML_IQ2_S] = whit_ggml_block_iq2_s,
    [WHIT_GGML_IQ3_XXS] = whit_ggml_block_iq3_xxs,
    [WHIT_GGML_IQ3_S] = whit_ggml_block_iq3_s,
    [WHIT_GGML_IQ4_XS] = whit_ggml_block_iq4_xs,
    [WHIT_GGML_MXFP4] = whit_ggml_block_mxfp4,
    [WHIT_GGML_NVFP4] = whit_ggml_block_nvfp4,
};

/* Decodes columns [column, column + n) of a row of I2_S. Blocks of 128 codes continue from one row to the next, so that
 * a row may begin inside a block, and n <= 128 columns come from at most two blocks. */
static void i2_s_columns(const whit_ggml_view *view, uint64_t row, uint64_t column, unsigned n, int8_t *codes)
{
    int8_t block[128];
    uint64_t at = row * view->n_cols + column;
    while (n) {
        unsigned skip = at % 128, part = 128 - skip < n ? 128 - skip : n;
        i2_s(view->data + at / 128 * 32, block, NULL, NULL);
        memcpy(codes, block + skip, part);
        codes += part;
        at += part;
        n -= part;
    }
}

unsigned whit_ggml_block_codes(const whit_ggml_view *view, uint64_t row, uint64_t index, int8_t *codes, float *scales,
                               float *offsets)
{
    const whit_ggml_info *info = whit_ggml_kind_info(view->kind);
    unsigned n = info->block_elems;
    if (view->kind == WHIT_GGML_I2_S) {
        if (view->n_cols - index * n < n) n = (unsigned)(view->n_cols - index * n);
        scales[0] = whit_load_f32(view->data + view->n_cols * view->n_rows / 4);
        i2_s_columns(view, row, index * info->block_elems, n, codes);
        return n;
    }
    uint64_t stride = view->n_cols / n * info->block_bytes + info->row_scale_bytes;
    if (view->kind == WHIT_GGML_IQ2_BN_R4) {
        const uint8_t *four = view->data + row / 4 * 4 * stride;
        scales[0] = whit_load_f32(four + row % 4 * 4);
        iq2_bn_r4(four + 16 + 64 * index, row % 4, codes);
        return n;
    }
    const uint8_t *data = view->data + row * stride;
    if (info->row_scale_bytes == 2) scales[0] = f16_at(data);
    if (info->row_scale_bytes == 4) scales[0] = whit_load_f32(data);
    block_functions[view->kind](data + info->row_scale_bytes + index * info->block_bytes, codes, scales, offsets);
    return n;
}

/* Decodes a row block by block through a small buffer, so that no allocation is needed for rows of any length. */
static void coded_row_f32(const whit_ggml_view *view, uint64_t row, float *out)
{
    const whit_ggml_info *info = whit_ggml_kind_info(view->kind);
    int8_t codes[WHIT_GGML_BLOCK_ELEMS];
    float scales[WHIT_GGML_BLOCK_GROUPS], offsets[WHIT_GGML_BLOCK_GROUPS];
    for (uint64_t column = 0, index = 0; column < view->n_cols; index++) {
        unsigned n = whit_ggml_block_codes(view, row, index, codes, scales, offsets);
        unsigned group = info->group_elems ? info->group_elems : n;
        for (unsigned first = 0, g = 0; first < n; first += group, g++) {
            float *values = out + column + first;
            for (unsigned k = 0; k < group; k++) values[k] = scales[g] * (float)codes[first + k];
            for (unsigned k = 0; info->has_offset && k < group; k++) values[k] += offsets[g];
        }
        column += n;
    }
}

void whit_ggml_row_f32(const whit_ggml_view *view, uint64_t row, float *out)
{
    uint64_t n_cols = view->n_cols;
    const uint8_t *data = view->data;
    switch (view->kind) {
    case WHIT_GGML_F32: memcpy(out, data + row * n_cols * 4, n_cols * 4); break;
    case WHIT_GGML_F16:
        for (uint64_t k = 0; k < n_cols; k++) out[k] = f16_at(data + (row * n_cols + k) * 2);
        break;
    case WHIT_GGML_BF16:
        for (uint64_t k = 0; k < n_cols; k++) out[k] = whit_f32_from_bf16(whit_load_u16(data + (row * n_cols + k) * 2));
        break;
    default: coded_row_f32(view, row, out); break;
    }
}
