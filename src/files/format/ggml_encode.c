/* SPDX-License-Identifier: MIT
 * Blocks of GGUF weight types from codes. The layouts are drawn in ggml_decode.c. */
#include "format/ggml_encode.h"

#include "base/half.h"

/* n trits from step to step, the first most significant, as a fraction of 243 rounded up. */
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

static bool codes_fit(whit_ggml_kind kind, const int8_t *codes, uint64_t n)
{
    int least = kind == WHIT_GGML_Q8_0 ? -128 : -1;
    int most = kind == WHIT_GGML_Q8_0 ? 127 : kind == WHIT_GGML_TQ2_0 ? 2 : 1;
    for (uint64_t k = 0; k < n; k++)
        if (codes[k] < least || codes[k] > most || (kind == WHIT_GGML_Q1_0 && codes[k] == 0)) return false;
    return true;
}

/* The one scale of columns [first, first + n), as a float16. */
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
    void (*encode)(const int8_t *, uint16_t, uint8_t *) = kind == WHIT_GGML_TQ1_0 ? tq1_0
        : kind == WHIT_GGML_TQ2_0                                                 ? tq2_0
        : kind == WHIT_GGML_Q8_0                                                  ? q8_0
        : kind == WHIT_GGML_Q1_0                                                  ? q1_0
                                                                                  : NULL;
    const whit_ggml_info *info = whit_ggml_kind_info(kind);
    if (!encode || n_cols % info->block_elems || !codes_fit(kind, codes, n_cols)) return false;
    for (uint64_t first = 0; first < n_cols; first += info->block_elems, out += info->block_bytes) {
        uint16_t scale;
        if (!scale_of(scales, group_cols, first, info->block_elems, &scale)) return false;
        encode(codes + first, scale, out);
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
