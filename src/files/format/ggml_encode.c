/* SPDX-License-Identifier: MIT
 * Encodes blocks of GGUF weight types from codes. ggml_decode.c describes the layouts. */
#include "format/ggml_encode.h"

#include "base/half.h"
#include "base/mem.h"
#include "kernels/codec_lines.h"

/* Packs n <= 5 trits, `step` codes apart, into a byte: the fraction trits / 243 (the first trit most significant) times
 * 256, rounded up. */
static uint8_t five_trits(const int8_t *codes, int step, int n)
{
    unsigned value = 0;
    for (int i = 0; i < 5; i++) value = 3 * value + (i < n ? (unsigned)(codes[i * step] + 1) : 0);
    return (uint8_t)((value * 256 + 242) / 243);
}

static void tq1_0(const int8_t *codes, uint16_t scale, uint8_t *b)
{
    for (int m = 0; m < 32; m++) b[m] = five_trits(codes + m, 32, 5);
    for (int m = 0; m < 16; m++) b[32 + m] = five_trits(codes + 160 + m, 16, 5);
    for (int m = 0; m < 4; m++) b[48 + m] = five_trits(codes + 240 + m, 4, 4);
    memcpy(b + 52, &scale, 2);
}

static void tq2_0(const int8_t *codes, uint16_t scale, uint8_t *b)
{
    for (int m = 0; m < 64; m++) {
        const int8_t *first = codes + m / 32 * 128 + m % 32;
        unsigned byte = 0;
        for (int n = 0; n < 4; n++) byte |= (unsigned)(first[32 * n] + 1) << 2 * n;
        b[m] = (uint8_t)byte;
    }
    memcpy(b + 64, &scale, 2);
}

static void q8_0(const int8_t *codes, uint16_t scale, uint8_t *b)
{
    memcpy(b, &scale, 2);
    memcpy(b + 2, codes, 32);
}

static void q1_0(const int8_t *codes, uint16_t scale, uint8_t *b)
{
    memcpy(b, &scale, 2);
    memset(b + 2, 0, 16);
    for (int j = 0; j < 128; j++) b[2 + j / 8] |= (uint8_t)((codes[j] > 0) << j % 8);
}

static void q4_0(const int8_t *codes, uint16_t scale, uint8_t *b)
{
    memcpy(b, &scale, 2);
    for (int j = 0; j < 16; j++) b[2 + j] = (uint8_t)((codes[j] + 8) | (codes[j + 16] + 8) << 4);
}

static void q2_0(const int8_t *codes, uint16_t scale, uint8_t *b)
{
    memcpy(b, &scale, 2);
    memset(b + 2, 0, 16);
    for (int j = 0; j < 64; j++) b[2 + j / 4] = (uint8_t)(b[2 + j / 4] | (codes[j] + 1) << j % 4 * 2);
}

/* The kinds that whit_ggml_encode_codes can write, with the range of their codes. A block has codes and one scale. */
static const struct encoder {
    whit_ggml_kind kind;
    int8_t least, most;
    void (*encode)(const int8_t *codes, uint16_t scale, uint8_t *block);
} encoders[] = {
    {WHIT_GGML_TQ1_0, -1, 1, tq1_0},   {WHIT_GGML_TQ2_0, -1, 2, tq2_0}, {WHIT_GGML_Q2_0, -1, 2, q2_0},
    {WHIT_GGML_Q8_0, -128, 127, q8_0}, {WHIT_GGML_Q4_0, -8, 7, q4_0},   {WHIT_GGML_Q1_0, -1, 1, q1_0},
};

static const struct encoder *find_encoder(whit_ggml_kind kind)
{
    for (size_t i = 0; i < sizeof encoders / sizeof *encoders; i++)
        if (encoders[i].kind == kind) return &encoders[i];
    return NULL;
}

static bool codes_fit(const struct encoder *encoder, const int8_t *codes, uint64_t n)
{
    for (uint64_t k = 0; k < n; k++)
        if (codes[k] < encoder->least || codes[k] > encoder->most || (encoder->kind == WHIT_GGML_Q1_0 && codes[k] == 0))
            return false;
    return true;
}

/* Converts the common scale of columns [first, first + n) to float16. Returns false if their scales differ or the scale
 * is not exact in float16. */
static bool scale_of(const float *scales, uint64_t group_cols, uint64_t first, uint64_t n, uint16_t *half)
{
    uint64_t group = first / group_cols, last = (first + n - 1) / group_cols;
    uint32_t bits = whit_f32_bits(scales[group]);
    for (uint64_t g = group + 1; g <= last; g++)
        if (whit_f32_bits(scales[g]) != bits) return false;
    *half = whit_f16_from_f32(scales[group]);
    return whit_f32_bits(whit_f32_from_f16(*half)) == bits;
}

bool whit_ggml_encode_codes(whit_ggml_kind kind, uint64_t n_cols, const int8_t *codes, const float *scales,
                            uint64_t group_cols, uint8_t *out)
{
    const struct encoder *encoder = find_encoder(kind);
    const whit_ggml_info *info = whit_ggml_kind_info(kind);
    if (!encoder || n_cols % info->block_elems || !codes_fit(encoder, codes, n_cols)) return false;
    for (uint64_t first = 0; first < n_cols; first += info->block_elems, out += info->block_bytes) {
        uint16_t scale;
        if (!scale_of(scales, group_cols, first, info->block_elems, &scale)) return false;
        encoder->encode(codes + first, scale, out);
    }
    return true;
}

bool whit_ggml_encode_floats(whit_ggml_kind kind, uint64_t n, const float *values, uint8_t *out)
{
    if (kind == WHIT_GGML_F32) {
        memcpy(out, values, n * sizeof *values);
        return true;
    }
    if (kind != WHIT_GGML_F16 && kind != WHIT_GGML_BF16) return false;
    for (uint64_t i = 0; i < n; i++, out += 2) {
        bool is_half = kind == WHIT_GGML_F16;
        uint16_t bits = is_half ? whit_f16_from_f32(values[i]) : whit_bf16_from_f32(values[i]);
        float back = is_half ? whit_f32_from_f16(bits) : whit_f32_from_bf16(bits);
        if (whit_f32_bits(back) != whit_f32_bits(values[i]) && values[i] == values[i]) return false;
        memcpy(out, &bits, 2);
    }
    return true;
}

/* ---- types of whit that store the codes of a GGUF kind unchanged ------------------------------- */

bool whit_ggml_native_kind(const whit_tensor_type *type, whit_ggml_kind *kind)
{
    static const struct {
        whit_codec codec;
        whit_scale_type scale_type;
        uint16_t group;
        whit_ggml_kind kind;
    } rows[] = {
        {WHIT_CODEC_U2, WHIT_SCALE_K4, 16, WHIT_GGML_Q2_K},      {WHIT_CODEC_I3, WHIT_SCALE_K8, 16, WHIT_GGML_Q3_K},
        {WHIT_CODEC_U4, WHIT_SCALE_K16, 32, WHIT_GGML_Q4_K},     {WHIT_CODEC_U5, WHIT_SCALE_K16, 32, WHIT_GGML_Q5_K},
        {WHIT_CODEC_I8, WHIT_SCALE_K8, 16, WHIT_GGML_Q6_K},      {WHIT_CODEC_I6, WHIT_SCALE_K8, 16, WHIT_GGML_Q6_K},
        {WHIT_CODEC_X8, WHIT_SCALE_ODD4, 32, WHIT_GGML_IQ2_XXS}, {WHIT_CODEC_X9, WHIT_SCALE_ODD4, 16, WHIT_GGML_IQ2_XS},
        {WHIT_CODEC_X10, WHIT_SCALE_ODD4, 16, WHIT_GGML_IQ2_S},  {WHIT_CODEC_N4, WHIT_SCALE_K8, 32, WHIT_GGML_IQ4_XS},
        {WHIT_CODEC_N4, WHIT_SCALE_F16, 32, WHIT_GGML_IQ4_NL},   {WHIT_CODEC_F4, WHIT_SCALE_E8, 32, WHIT_GGML_MXFP4},
        {WHIT_CODEC_F4, WHIT_SCALE_E4, 16, WHIT_GGML_NVFP4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (type->codec != rows[i].codec || type->scale_type != rows[i].scale_type || type->group != rows[i].group ||
            type->scale_kind != WHIT_SCALE_GROUP || (type->scale_type == WHIT_SCALE_E4 && type->scale != 1))
            continue;
        *kind = rows[i].kind;
        return true;
    }
    return false;
}

/* Returns the first nibble whose level is `code`; 15 if none of the first 15 has it. */
static unsigned level_nibble(const int8_t levels[16], int8_t code)
{
    unsigned nibble = 0;
    while (nibble < 15 && levels[nibble] != code) nibble++;
    return nibble;
}

/* Packs 2 n codes into n bytes as nibbles: the first n codes in the low nibbles, the others in the high nibbles. */
static void put_level_nibbles(const int8_t levels[16], const int8_t *codes, int n, uint8_t *qs)
{
    for (int j = 0; j < n; j++)
        qs[j] = (uint8_t)(level_nibble(levels, codes[j]) | level_nibble(levels, codes[j + n]) << 4);
}

/* Packs 256 codes plus `bias` as two-bit fields. Each field of 32 bytes has 32 consecutive codes. */
static void put_two_bits(const int8_t *codes, int bias, uint8_t *qs)
{
    memset(qs, 0, 64);
    for (int j = 0; j < 256; j++) {
        uint8_t *to = qs + j / 128 * 32 + j % 32;
        *to = (uint8_t)(*to | ((codes[j] + bias) & 3) << j % 128 / 32 * 2);
    }
}

/* Splits eight codes of a codebook into an index and sign bits. Returns false if `even` is set and the number of
 * negative signs is odd. */
static bool split_eight(whit_codec codec, bool even, const int8_t *codes, unsigned *index, unsigned *signs)
{
    uint8_t canonical[3];
    whit_grid_canonical(codec, codes, 8, canonical);
    *index = canonical[0] | (unsigned)canonical[1] << 8;
    *signs = canonical[2];
    return !even || __builtin_parity(*signs) == 0;
}

static bool encode_codebook(whit_ggml_kind kind, const int8_t *codes, const uint8_t *bytes, uint8_t *b)
{
    unsigned index, signs;
    memset(b + 2, 0, (size_t)whit_ggml_kind_info(kind)->block_bytes - 2);
    for (int l = 0; l < 32; l++, codes += 8) {
        if (kind == WHIT_GGML_IQ2_S) {
            split_eight(WHIT_CODEC_X10, false, codes, &index, &signs);
            b[2 + l] = (uint8_t)index;
            b[34 + l] = (uint8_t)signs;
            b[66 + l / 4] = (uint8_t)(b[66 + l / 4] | (index >> 8) << 2 * (l % 4));
        } else if (kind == WHIT_GGML_IQ2_XS) {
            if (!split_eight(WHIT_CODEC_X9, true, codes, &index, &signs)) return false;
            uint16_t word = (uint16_t)(index | (signs & 127) << 9);
            memcpy(b + 2 + 2 * l, &word, 2);
        } else {
            if (!split_eight(WHIT_CODEC_X8, true, codes, &index, &signs)) return false;
            uint8_t *words = b + 2 + l / 4 * 8;
            uint32_t above = whit_load_u32(words + 4) | (uint32_t)(signs & 127) << 7 * (l % 4);
            if (l % 4 == 3) above |= (uint32_t)bytes[l / 4] << 28;
            words[l % 4] = (uint8_t)index;
            memcpy(words + 4, &above, 4);
        }
    }
    int at = kind == WHIT_GGML_IQ2_S ? 74 : 66;
    for (int j = 0; kind != WHIT_GGML_IQ2_XXS && j < 16; j++)
        b[at + j / 2] = (uint8_t)(b[at + j / 2] | bytes[j] << 4 * (j & 1));
    return true;
}

/* Converts scales to six bits: stored bytes 96..159, which mean -32..31, become 0..63. Returns false if a byte is
 * outside this range. */
static bool six_bits(const uint8_t *bytes, int n, uint8_t out[16])
{
    for (int j = 0; j < n; j++) {
        if (bytes[j] < 96 || bytes[j] >= 160) return false;
        out[j] = (uint8_t)(bytes[j] - 96);
    }
    return true;
}

/* Packs the numbers in the form that whit_ggml_k_numbers reads. Returns false if a number needs more than six bits. */
static bool put_k_numbers(const uint8_t numbers[16], uint8_t *s)
{
    for (int j = 0; j < 4; j++) {
        const uint8_t low[2] = {numbers[2 * j], numbers[2 * j + 1]}, high[2] = {numbers[2 * j + 8], numbers[2 * j + 9]};
        if ((low[0] | low[1] | high[0] | high[1]) > 63) return false;
        s[j] = (uint8_t)(low[0] | high[0] >> 4 << 6);
        s[j + 4] = (uint8_t)(low[1] | high[1] >> 4 << 6);
        s[j + 8] = (uint8_t)((high[0] & 15) | (high[1] & 15) << 4);
    }
    return true;
}

/* Encodes a block of Q4_K or Q5_K: d and dmin (`halves`), the packed scales and minimums (`bytes`), for Q5_K the fifth
 * bits, then the nibbles. */
static bool encode_k_block(whit_ggml_kind kind, const int8_t *codes, const uint8_t *bytes, const uint16_t halves[2],
                           uint8_t *b)
{
    uint8_t *high = b + 16, *low = kind == WHIT_GGML_Q5_K ? b + 48 : b + 16;
    memcpy(b, halves, 4);
    memset(high, 0, 32);
    for (int j = 0; j < 256; j += 64, low += 32)
        for (int l = 0; l < 32; l++) {
            int first = codes[j + l], second = codes[j + l + 32];
            if (kind == WHIT_GGML_Q5_K)
                high[l] = (uint8_t)(high[l] | (first >> 4) << j / 32 | (second >> 4) << (j / 32 + 1));
            low[l] = (uint8_t)((first & 15) | (second & 15) << 4);
        }
    return put_k_numbers(bytes, b + 4);
}

static bool encode_block(whit_ggml_kind kind, const int8_t *codes, const uint8_t *bytes, const uint16_t halves[2],
                         uint8_t *b)
{
    uint8_t six[16];
    switch (kind) {
    case WHIT_GGML_Q2_K:
        memcpy(b, bytes, 16);
        put_two_bits(codes, 0, b + 16);
        memcpy(b + 80, halves, 4);
        return true;
    case WHIT_GGML_Q3_K:
        if (!six_bits(bytes, 16, six)) return false;
        memset(b, 0, 32);
        for (int j = 0; j < 256; j++) b[j % 32] = (uint8_t)(b[j % 32] | (codes[j] >= 0) << j / 32);
        put_two_bits(codes, 4, b + 32);
        memset(b + 96, 0, 12);
        for (int j = 0; j < 16; j++) {
            b[96 + j % 8] = (uint8_t)(b[96 + j % 8] | (six[j] & 15) << j / 8 * 4);
            b[104 + j % 4] = (uint8_t)(b[104 + j % 4] | six[j] >> 4 << j / 4 * 2);
        }
        memcpy(b + 108, halves, 2);
        return true;
    case WHIT_GGML_Q4_K:
    case WHIT_GGML_Q5_K: return encode_k_block(kind, codes, bytes, halves, b);
    case WHIT_GGML_Q6_K:
        memset(b, 0, 192);
        for (int j = 0; j < 256; j++) {
            int half = j / 128, part = j % 128 / 32, l = j % 32, u = codes[j] + 32;
            if (u < 0 || u > 63) return false;
            uint8_t *low = b + 64 * half + l + 32 * (part & 1), *high = b + 128 + 32 * half + l;
            *low = (uint8_t)(*low | (u & 15) << 4 * (part >> 1));
            *high = (uint8_t)(*high | u >> 4 << 2 * part);
        }
        for (int j = 0; j < 16; j++) b[192 + j] = bytes[j] ^ 128;
        memcpy(b + 208, halves, 2);
        return true;
    case WHIT_GGML_IQ4_XS:
        if (!six_bits(bytes, 8, six)) return false;
        memcpy(b, halves, 2);
        memset(b + 2, 0, 6);
        for (int j = 0; j < 8; j++) {
            b[2 + j / 4] = (uint8_t)(b[2 + j / 4] | six[j] >> 4 << 2 * (j % 4));
            b[4 + j / 2] = (uint8_t)(b[4 + j / 2] | (six[j] & 15) << 4 * (j & 1));
            put_level_nibbles(whit_levels_nl, codes + 32 * j, 16, b + 8 + 16 * j);
        }
        return true;
    case WHIT_GGML_IQ4_NL:
        memcpy(b, halves, 2);
        put_level_nibbles(whit_levels_nl, codes, 16, b + 2);
        return true;
    case WHIT_GGML_MXFP4:
        b[0] = bytes[0];
        put_level_nibbles(whit_levels_e2m1, codes, 16, b + 1);
        return true;
    case WHIT_GGML_NVFP4:
        memcpy(b, bytes, 4);
        for (int j = 0; j < 4; j++) put_level_nibbles(whit_levels_e2m1, codes + 16 * j, 8, b + 4 + 8 * j);
        return true;
    default: memcpy(b, halves, 2); return encode_codebook(kind, codes, bytes, b);
    }
}

bool whit_ggml_encode_native(whit_ggml_kind kind, uint64_t n_cols, const whit_rows *rows, uint8_t *out)
{
    const whit_ggml_info *info = whit_ggml_kind_info(kind);
    const uint64_t n_blocks = n_cols / info->block_elems;
    const bool has_pairs = kind == WHIT_GGML_Q4_K || kind == WHIT_GGML_Q5_K;
    const unsigned n_bytes = info->block_elems / info->group_elems * (has_pairs ? 2 : 1);
    const unsigned n_factors = info->has_offset ? 2 : 1;
    const bool has_factors = kind != WHIT_GGML_MXFP4 && kind != WHIT_GGML_NVFP4;
    for (uint64_t i = 0; i < n_blocks; i++, out += info->block_bytes) {
        uint16_t halves[2] = {0};
        for (unsigned f = 0; has_factors && f < n_factors; f++)
            halves[f] = whit_f16_from_f32(rows->fields[i * n_factors + f]);
        const uint8_t *bytes = rows->fields_u8 ? rows->fields_u8 + i * n_bytes : NULL;
        if (!encode_block(kind, (const int8_t *)rows->elems + i * info->block_elems, bytes, halves, out)) return false;
    }
    return true;
}
