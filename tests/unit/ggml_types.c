/* SPDX-License-Identifier: MIT
 * Tests GGUF weight types: goldens, a formula for single elements of each type that is independent of the decoder,
 * and that twins (equivalent types of the library) are exact, also in packed codecs. */
#include "ggml_random.h"
#include "test.h"

#include <math.h>

#include "base/half.h"
#include "kernels/grids.h"
#include "base/rng.h"
#include "format/ggml_encode.h"
#include "format/gguf.h"
#include "kernels/codec.h"

/* ---- formulas for single elements, from the format descriptions ----------------------------- */

static int trit(int byte, int n)
{
    static const int power[5] = {1, 3, 9, 27, 81};
    return ((byte * power[n] & 255) * 3 >> 8) - 1;
}

static double half_at(const uint8_t *p)
{
    return (double)whit_f32_from_f16((uint16_t)(p[0] | p[1] << 8));
}

static int nibble(const uint8_t *qs, int j)
{
    return j < 16 ? qs[j] & 15 : qs[j - 16] >> 4;
}

static int bit(const uint8_t *bytes, int j)
{
    return bytes[j / 8] >> j % 8 & 1;
}

static double k_type(const uint8_t *b, int j, int code)
{
    const uint8_t *s = b + 4;
    int g = j / 32;
    int scale = g < 4 ? s[g] % 64 : s[g + 4] % 16 + 16 * (s[g - 4] / 64);
    int minimum = g < 4 ? s[g + 4] % 64 : s[g + 4] / 16 + 16 * (s[g] / 64);
    return (double)((float)(half_at(b) * scale * code) - (float)(half_at(b + 2) * minimum));
}

/* Returns the little-endian number of n bits at bit `first`. */
static unsigned bits(const uint8_t *bytes, int first, int n)
{
    unsigned value = 0;
    for (int i = 0; i < n; i++) value |= (unsigned)bit(bytes, first + i) << i;
    return value;
}

/* Returns the sign of weight j of eight, which seven bits encode: the eighth sign makes the number of minus signs
 * even. */
static int even_sign(unsigned seven, int j)
{
    return (j < 7 ? seven >> j & 1 : (unsigned)__builtin_popcount(seven) & 1) ? -1 : 1;
}

static int iq2_level(uint16_t entry, int j)
{
    static const int levels[3] = {8, 25, 43};
    return levels[entry >> 2 * j & 3];
}

static double e2m1(unsigned q)
{
    static const double values[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return q & 8 ? -values[q & 7] : values[q];
}

/* Returns weight j of a block of a type with a codebook or four-bit floats. */
static double codebook_element(whit_ggml_kind kind, const uint8_t *b, int j)
{
    static const int nl[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    static const int xxs[8] = {4, 12, 20, 28, 36, 44, 52, 62};
    int at = j / 8, in = j % 8, part = j / 32;
    switch (kind) {
    case WHIT_GGML_IQ2_XXS: {
        const uint8_t *words = b + 2 + 8 * part;
        return half_at(b) * (0.5 + bits(words + 4, 28, 4)) / 4 * iq2_level(whit_grid_iq2_xxs[words[at % 4]], in) *
            even_sign(bits(words + 4, 7 * (at % 4), 7), in);
    }
    case WHIT_GGML_IQ2_XS:
        return half_at(b) * (0.5 + bits(b + 66, j / 16 * 4, 4)) / 4 *
            iq2_level(whit_grid_iq2_xs[bits(b + 2, 16 * at, 9)], in) * even_sign(bits(b + 2, 16 * at + 9, 7), in);
    case WHIT_GGML_IQ2_S:
        return half_at(b) * (0.5 + bits(b + 74, j / 16 * 4, 4)) / 4 *
            iq2_level(whit_grid_iq2_s[b[2 + at] + 256 * bits(b + 66, 2 * at, 2)], in) * (bit(b + 34, j) ? -1 : 1);
    case WHIT_GGML_IQ3_XXS:
        return half_at(b) * (0.5 + bits(b + 66 + 4 * part, 28, 4)) / 2 *
            xxs[whit_grid_iq3_xxs[b[2 + j / 4]] >> 3 * (j % 4) & 7] *
            even_sign(bits(b + 66 + 4 * part, 7 * (at % 4), 7), in);
    case WHIT_GGML_IQ3_S: {
        uint16_t entry = whit_grid_iq3_s[b[2 + j / 4] + 256 * bit(b + 66, j / 4)];
        return half_at(b) * (1 + 2 * bits(b + 106, 4 * part, 4)) * (2 * (entry >> 3 * (j % 4) & 7) + 1) *
            (bit(b + 74, j) ? -1 : 1);
    }
    case WHIT_GGML_IQ1_S: {
        const uint8_t *high = b + 34 + 2 * part;
        uint16_t entry = whit_grid_iq1_s[b[2 + at] + 256 * bits(high, 3 * (at % 4), 3)];
        return half_at(b) * (2 * bits(high, 12, 3) + 1) *
            ((entry >> 2 * in & 3) - 1.0 + (bit(high, 15) ? -0.125 : 0.125));
    }
    case WHIT_GGML_IQ1_M: {
        uint8_t half[2] = {(uint8_t)(b[49] / 16 + b[51] / 16 * 16), (uint8_t)(b[53] / 16 + b[55] / 16 * 16)};
        uint16_t entry = whit_grid_iq1_s[b[at] + 256 * bits(b + 32, 4 * at, 3)];
        unsigned s = bits(b + 48, 16 * (j / 64) + 3 * (j / 16 % 4), 3);
        return half_at(half) * (2 * s + 1) * ((entry >> 2 * in & 3) - 1.0 + (bit(b + 32, 4 * at + 3) ? -0.125 : 0.125));
    }
    case WHIT_GGML_IQ4_XS:
        return half_at(b) * ((int)(bits(b + 4, 4 * part, 4) + 16 * bits(b + 2, 2 * part, 2)) - 32) *
            nl[nibble(b + 8 + 16 * part, j % 32)];
    case WHIT_GGML_MXFP4: return ldexp(e2m1((unsigned)nibble(b + 1, j)), b[0] - 127);
    case WHIT_GGML_NVFP4: {
        int exponent = b[j / 16] >> 3 & 15, fraction = b[j / 16] & 7;
        double scale = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
        unsigned byte = b[4 + j / 16 * 8 + j % 8];
        return ((b[j / 16] & 127) == 127 ? 0 : scale) * e2m1(j % 16 < 8 ? byte & 15 : byte >> 4);
    }
    default: return NAN;
    }
}

/* Returns weight j of a block; the result is rounded to float32 once, as in the decoder. */
static float element(whit_ggml_kind kind, const uint8_t *b, int j, float row_scale)
{
    static const int nl[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    static const int slots[16] = {0xA9, 0x89, 0x29, 0x09, 0xA6, 0x86, 0x26, 0x06,
                                  0x9A, 0x92, 0x1A, 0x12, 0x6A, 0x62, 0x4A, 0x42};
    switch (kind) {
    case WHIT_GGML_Q4_0: return (float)(half_at(b) * (nibble(b + 2, j) - 8));
    case WHIT_GGML_Q4_1: return (float)(half_at(b) * nibble(b + 4, j) + half_at(b + 2));
    case WHIT_GGML_Q5_0: return (float)(half_at(b) * (nibble(b + 6, j) + 16 * bit(b + 2, j) - 16));
    case WHIT_GGML_Q5_1: return (float)(half_at(b) * (nibble(b + 8, j) + 16 * bit(b + 4, j)) + half_at(b + 2));
    case WHIT_GGML_Q8_0: return (float)(half_at(b) * (int8_t)b[2 + j]);
    case WHIT_GGML_IQ4_NL: return (float)(half_at(b) * nl[nibble(b + 2, j)]);
    case WHIT_GGML_Q4_K:
        return (float)k_type(b, j, nibble(b + 16 + 32 * (j / 64) + j % 32 - j % 16, j / 32 % 2 * 16 + j % 16));
    case WHIT_GGML_Q5_K: {
        int low = nibble(b + 48 + 32 * (j / 64) + j % 32 - j % 16, j / 32 % 2 * 16 + j % 16);
        return (float)k_type(b, j, low + 16 * (b[16 + j % 32] >> j / 32 & 1));
    }
    case WHIT_GGML_Q6_K: {
        int part = j % 128 / 32, l = j % 32, byte = b[64 * (j / 128) + l + 32 * (part % 2)];
        int low = part < 2 ? byte & 15 : byte >> 4, high = b[128 + 32 * (j / 128) + l] >> 2 * part & 3;
        return (float)(half_at(b + 208) * (int8_t)b[192 + j / 16] * (low + 16 * high - 32));
    }
    case WHIT_GGML_Q2_K: {
        int sc = b[j / 16], q = bits(b + 16 + j / 128 * 32 + j % 32, j % 128 / 32 * 2, 2);
        return (float)(half_at(b + 80) * (sc % 16) * q - half_at(b + 82) * (sc / 16));
    }
    case WHIT_GGML_Q3_K: {
        int g = j / 16,
            sc = (int)(bits(b + 96, g < 8 ? 8 * g : 8 * (g - 8) + 4, 4) + 16 * bits(b + 104 + g % 4, g / 4 * 2, 2));
        int q = (int)bits(b + 32 + j / 128 * 32 + j % 32, j % 128 / 32 * 2, 2) + 4 * bit(b + j % 32, j / 32) - 4;
        return (float)(half_at(b + 108) * (sc - 32) * q);
    }
    case WHIT_GGML_I2_S: return row_scale * (float)((b[j % 32] >> (6 - 2 * (j / 32)) & 3) - 1);
    case WHIT_GGML_TQ1_0: {
        int code = j < 160 ? trit(b[j % 32], j / 32)
            : j < 240      ? trit(b[32 + j % 16], (j - 160) / 16)
                           : trit(b[48 + j % 4], (j - 240) / 4);
        return (float)(half_at(b + 52) * code);
    }
    case WHIT_GGML_TQ2_0: return (float)(half_at(b + 64) * ((b[j / 128 * 32 + j % 32] >> 2 * (j % 128 / 32) & 3) - 1));
    case WHIT_GGML_Q1_0: return (float)(bit(b + 2, j) ? half_at(b) : -half_at(b));
    case WHIT_GGML_Q2_0:
    case WHIT_GGML_PQ2_0: return (float)(half_at(b) * ((b[2 + j / 4] >> 2 * (j % 4) & 3) - 1));
    case WHIT_GGML_PTQ1_0: {
        int code = j < 80 ? trit(b[j % 16], j / 16)
            : j < 120     ? trit(b[16 + j % 8], (j - 80) / 8)
                          : trit(b[24 + j % 2], (j - 120) / 2);
        return (float)(half_at(b + 26) * code);
    }
    case WHIT_GGML_STQ1_0: {
        int g = j / 64 * 16 + j % 16, lane = j % 64 / 16;
        int pattern = slots[b[g / 2] >> 4 * (g % 2) & 15];
        int code = (pattern >> 2 * lane & 3) - 1;
        return (float)(half_at(b + 40) * (bit(b + 32, g) ? -code : code));
    }
    case WHIT_GGML_IQ1_BN: {
        int i = j / 16, k = j % 16 / 5;
        return row_scale * (float)(k < 3 ? trit(b[3 * i + k], 4 - j % 16 % 5) : trit(b[12], 4 - i));
    }
    case WHIT_GGML_IQ2_BN: return row_scale * (float)((b[j % 16] >> 2 * (j / 16) & 3) - 1);
    default: return (float)codebook_element(kind, b, j);
    }
}

/* ---- random tensors ------------------------------------------------------------------------- */

#define N_ROWS    5
#define N_ROWS_R4 8

static bool same(float a, float b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void rows_follow_the_description(void **state)
{
    (void)state;
    whit_rng rng = {42};
    for (int k = WHIT_GGML_Q4_0; k < WHIT_GGML_IQ2_BN_R4; k++) {
        whit_ggml_kind kind = (whit_ggml_kind)k;
        const whit_ggml_info *info = whit_ggml_kind_info(kind);
        uint64_t n_cols = 512, size = 0;
        uint8_t *data = random_tensor(kind, n_cols, N_ROWS, &size, &rng);
        whit_ggml_view view = {kind, n_cols, N_ROWS, data};
        float row_f32[512];
        for (uint64_t row = 0; row < N_ROWS; row++) {
            const uint8_t *start = data + row * ((size - info->tail_bytes) / N_ROWS);
            float scale = kind == WHIT_GGML_I2_S ? 0.0625f
                : info->row_scale_bytes == 4     ? whit_load_f32(start)
                                                 : whit_f32_from_f16(whit_load_u16(start));
            whit_ggml_row_f32(&view, row, row_f32);
            for (uint64_t col = 0; col < n_cols; col++) {
                const uint8_t *block = start + info->row_scale_bytes + col / info->block_elems * info->block_bytes;
                float expected = element(kind, block, (int)(col % info->block_elems), scale);
                if (!same(row_f32[col], expected))
                    fail_msg("%s row %d column %d: %g, expected %g", info->name, (int)row, (int)col,
                             (double)row_f32[col], (double)expected);
            }
        }
        free(data);
    }
}

static void four_interleaved_rows_equal_single_ones(void **state)
{
    (void)state;
    whit_rng rng = {7};
    uint64_t size, n_cols = 192;
    uint8_t *data = random_tensor(WHIT_GGML_IQ2_BN_R4, n_cols, N_ROWS_R4, &size, &rng);
    whit_ggml_view view = {WHIT_GGML_IQ2_BN_R4, n_cols, N_ROWS_R4, data};
    float values[192];
    for (uint64_t row = 0; row < N_ROWS_R4; row++) {
        const uint8_t *four = data + row / 4 * 4 * (size / N_ROWS_R4);
        float scale = whit_load_f32(four + 4 * (row % 4));
        whit_ggml_row_f32(&view, row, values);
        for (uint64_t col = 0; col < n_cols; col++) {
            uint64_t l = col % 64 / 16, z = col % 16 / 4, i = col % 4;
            int code = (four[16 + col / 64 * 64 + 16 * l + 4 * (row % 4) + i] >> 2 * z & 3) - 1;
            assert_true(values[col] == scale * (float)code);
        }
    }
    free(data);
}

static void i2_s_blocks_run_over_row_ends(void **state)
{
    (void)state;
    whit_rng rng = {9};
    uint64_t size, n_cols = 96, n_rows = 8;
    uint8_t *data = random_tensor(WHIT_GGML_I2_S, n_cols, n_rows, &size, &rng);
    whit_ggml_view view = {WHIT_GGML_I2_S, n_cols, n_rows, data};
    assert_int_equal(size, 96 * 8 / 4 + 32);
    assert_false(whit_ggml_size(WHIT_GGML_I2_S, 96, 7, &size));
    float values[96];
    for (uint64_t row = 0; row < n_rows; row++) {
        whit_ggml_row_f32(&view, row, values);
        for (uint64_t col = 0; col < n_cols; col++) {
            uint64_t at = row * n_cols + col;
            assert_true(values[col] == element(WHIT_GGML_I2_S, data + at / 128 * 32, (int)(at % 128), 0.0625f));
        }
    }
    free(data);
}

/* Packs a tensor in the codec of its twin (the equivalent type of the library) and compares the values. */
static void check_twin(const whit_ggml_view *view, const whit_ggml_twin *twin)
{
    whit_error error;
    whit_tensor tensor = {.type = twin->type};
    tensor.type.layout = WHIT_LAYOUT_TILE16;
    assert_ok(whit_tensor_type_check(&tensor.type, &error), error);
    uint64_t n_cols = view->n_cols, n_rows = view->n_rows;
    whit_geometry g = whit_codec_geometry(&tensor.type);
    int8_t *codes = malloc(n_rows * n_cols);
    uint8_t *fields_u8 = calloc(n_rows, g.row_bytes + 1);
    float *fields = calloc(n_rows * g.row_fields, sizeof *fields), *value = malloc(n_cols * 4),
          *expected = malloc(n_cols * 4);
    for (uint64_t row = 0; row < n_rows; row++)
        whit_ggml_row_twin(
            view, twin, row,
            &(whit_rows){codes + row * n_cols, fields + row * g.row_fields, fields_u8 + row * g.row_bytes});
    uint8_t *parts[WHIT_PART_COUNT] = {NULL};
    for (int part = 0; part < WHIT_PART_COUNT; part++) {
        uint64_t bytes = 0;
        if (!whit_codec_part_bytes(&tensor.type, (whit_part)part, &bytes) || !bytes) continue;
        tensor.part[part] = parts[part] = aligned_alloc(64, (bytes + 63) / 64 * 64);
        tensor.part_bytes[part] = bytes;
    }
    whit_rows rows = {.elems = codes, .fields = fields, .fields_u8 = fields_u8};
    assert_ok(whit_codec_pack(&tensor.type, 0, (uint32_t)n_rows, &rows, parts, &error), error);
    for (uint64_t row = 0; row < n_rows; row++) {
        int32_t id = (int32_t)row;
        whit_codec_get_rows(&tensor, &id, 1, value, n_cols);
        whit_ggml_row_f32(view, row, expected);
        for (uint64_t col = 0; col < n_cols; col++)
            if (!same(value[col], expected[col]))
                fail_msg("%s row %d column %d: %a packed, %a in the file", whit_ggml_kind_info(view->kind)->name,
                         (int)row, (int)col, (double)value[col], (double)expected[col]);
    }
    for (int part = 0; part < WHIT_PART_COUNT; part++) free(parts[part]);
    free(codes);
    free(fields);
    free(fields_u8);
    free(value);
    free(expected);
}

static void twins_hold_every_value(void **state)
{
    (void)state;
    whit_rng rng = {1};
    whit_error error;
    for (int k = WHIT_GGML_Q4_0; k < WHIT_GGML_KIND_COUNT; k++) {
        whit_ggml_kind kind = (whit_ggml_kind)k;
        uint64_t size, n_cols = 768, n_rows = 20;
        uint8_t *data = random_tensor(kind, n_cols, n_rows, &size, &rng);
        whit_ggml_view view = {kind, n_cols, n_rows, data};
        whit_ggml_twin twin;
        assert_ok(whit_ggml_find_twin(&view, "x", &twin, &error), error);
        check_twin(&view, &twin);
        assert_int_equal(twin.one_scale, kind == WHIT_GGML_I2_S);
        whit_ggml_narrow_twin(&twin);
        check_twin(&view, &twin);
        free(data);
    }
}

static void twins_depend_on_content(void **state)
{
    (void)state;
    whit_rng rng = {2};
    whit_error error;
    whit_ggml_twin twin;
    uint64_t size, n_cols = 256, n_rows = 16;
    uint8_t *data = random_tensor(WHIT_GGML_TQ2_0, n_cols, n_rows, &size, &rng);
    whit_ggml_view view = {WHIT_GGML_TQ2_0, n_cols, n_rows, data};
    assert_ok(whit_ggml_find_twin(&view, "x", &twin, &error), error);
    assert_int_equal(twin.type.codec, WHIT_CODEC_T2); /* t5 cannot store the code 2 */
    assert_int_equal(twin.type.group, 256);
    for (uint64_t i = 0; i < size; i++)
        if (i % 66 < 64) data[i] &= (uint8_t) ~((data[i] & data[i] << 1) & 0xAA);
    assert_ok(whit_ggml_find_twin(&view, "x", &twin, &error), error);
    assert_int_equal(twin.type.codec, WHIT_CODEC_T5);
    assert_true(twin.is_ternary);
    for (uint64_t i = 64; i < size; i += 66) memcpy(data + i, "\x00\x2C", 2);
    assert_ok(whit_ggml_find_twin(&view, "x", &twin, &error), error);
    assert_true(twin.one_scale && twin.scale == 0.0625f);
    whit_ggml_narrow_twin(&twin);
    assert_int_equal(twin.type.scale_kind, WHIT_SCALE_TENSOR);
    check_twin(&view, &twin);
    free(data);

    /* When several groups of a block have one scale, the rows of the narrowed twin have one scale, whatever the blocks
     * have. */
    data = random_tensor(WHIT_GGML_IQ3_S, n_cols, n_rows, &size, &rng);
    for (uint64_t i = 0; i < size; i += 110) {
        memset(data + i + 106, 0, 4);
        memcpy(data + i, "\x00\x78", 2); /* 32768, of which u5 cannot store 16 times as much */
    }
    view = (whit_ggml_view){WHIT_GGML_IQ3_S, n_cols, n_rows, data};
    assert_ok(whit_ggml_find_twin(&view, "x", &twin, &error), error);
    assert_true(twin.one_scale && twin.scale == 32768);
    whit_ggml_narrow_twin(&twin);
    int8_t codes[256];
    float fields[WHIT_GGML_BLOCK_GROUPS] = {0};
    whit_ggml_row_twin(&view, &twin, 0, &(whit_rows){codes, fields, NULL});
    assert_true(fields[0] == 32768);
    for (int i = 1; i < WHIT_GGML_BLOCK_GROUPS; i++) assert_true(fields[i] == 0);
    check_twin(&view, &twin);
    free(data);

    data = random_tensor(WHIT_GGML_Q4_1, n_cols, n_rows, &size, &rng);
    view = (whit_ggml_view){WHIT_GGML_Q4_1, n_cols, n_rows, data};
    assert_ok(whit_ggml_find_twin(&view, "x", &twin, &error), error);
    assert_int_equal(twin.type.codec, WHIT_CODEC_I4);
    memcpy(data, "\xFF\x7B\x01\x00", 4); /* d = 65504, m = 2^-24: their sum needs 40 bits */
    assert_ok(whit_ggml_find_twin(&view, "x", &twin, &error), error);
    assert_int_equal(twin.type.codec, WHIT_CODEC_I8);
    check_twin(&view, &twin);
    free(data);

    data = random_tensor(WHIT_GGML_I2_S, n_cols, n_rows, &size, &rng);
    view = (whit_ggml_view){WHIT_GGML_I2_S, n_cols, n_rows, data};
    data[17] |= 0xC0;
    assert_int_equal(whit_ggml_find_twin(&view, "x", &twin, &error), WHIT_ERROR_FORMAT);
    free(data);
}

/* IQ3 types get codecs of fewer bits if their factors fit f16, otherwise int8. */
static void iq3_keeps_few_bits(void **state)
{
    (void)state;
    static const struct {
        whit_ggml_kind kind;
        uint16_t half; /* d of one block; d of all others is 2^-6 */
        whit_codec codec;
    } cases[] = {
        {WHIT_GGML_IQ3_S, 0x2400, WHIT_CODEC_U5},   {WHIT_GGML_IQ3_S, 0x0001, WHIT_CODEC_U5},
        {WHIT_GGML_IQ3_S, 0x6BFF, WHIT_CODEC_U5},   {WHIT_GGML_IQ3_S, 0x6C00, WHIT_CODEC_I8},
        {WHIT_GGML_IQ3_S, 0x7E00, WHIT_CODEC_I8},   {WHIT_GGML_IQ3_XXS, 0x2400, WHIT_CODEC_I6},
        {WHIT_GGML_IQ3_XXS, 0x0002, WHIT_CODEC_I6}, {WHIT_GGML_IQ3_XXS, 0x8401, WHIT_CODEC_I8},
        {WHIT_GGML_IQ3_XXS, 0x0001, WHIT_CODEC_I8}, {WHIT_GGML_IQ3_XXS, 0x7BFE, WHIT_CODEC_I6},
        {WHIT_GGML_IQ3_XXS, 0xFC00, WHIT_CODEC_I8},
    };
    whit_rng rng = {17};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        whit_error error;
        whit_ggml_twin twin;
        uint64_t size, n_cols = 768, n_rows = 20, block = whit_ggml_kind_info(cases[i].kind)->block_bytes;
        uint8_t *data = random_tensor(cases[i].kind, n_cols, n_rows, &size, &rng);
        for (uint64_t at = 0; at < size; at += block) memcpy(data + at, "\x00\x24", 2);
        memcpy(data + 7 * block, &cases[i].half, 2);
        whit_ggml_view view = {cases[i].kind, n_cols, n_rows, data};
        assert_ok(whit_ggml_find_twin(&view, "x", &twin, &error), error);
        assert_int_equal(twin.type.codec, cases[i].codec);
        check_twin(&view, &twin);
        free(data);
    }
}

static void sizes_are_checked(void **state)
{
    (void)state;
    uint64_t size;
    assert_false(whit_ggml_size(WHIT_GGML_F32, UINT64_MAX, 2, &size));
    assert_false(whit_ggml_size(WHIT_GGML_Q8_0, 33, 1, &size));
    assert_false(whit_ggml_size(WHIT_GGML_IQ2_BN_R4, 64, 6, &size));
    assert_true(whit_ggml_size(WHIT_GGML_IQ1_BN, 128, 3, &size));
    assert_int_equal(size, 3 * (2 + 26));
    whit_ggml_kind kinds[WHIT_GGML_MAX_CANDIDATES];
    assert_int_equal(whit_ggml_candidates(42, kinds), 3);
    assert_int_equal(whit_ggml_candidates(38, kinds), 0);
    assert_non_null(strstr(whit_ggml_refusal(38), "TL1"));
    assert_non_null(strstr(whit_ggml_refusal(39), "TL2"));
    static const uint32_t removed[] = {31, 32, 33, 36, 37};
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++)
        assert_non_null(strstr(whit_ggml_refusal(removed[i]), "was removed from the format"));
    assert_null(whit_ggml_refusal(99));
}

/* Checks every value of a folder's tensors, and of their twins. */
static void check_goldens(const char *folder, size_t n_tensors)
{
    whit_error error;
    whit_gguf *gguf;
    char path[128];
    snprintf(path, sizeof path, "models-tiny/%s/%s.gguf", folder, folder);
    assert_ok(whit_gguf_open(shared_path(path), NULL, &gguf, &error), error);
    assert_int_equal(gguf->n_tensors, n_tensors);
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        const whit_gguf_tensor *tensor = &gguf->tensors[i];
        char relative[128];
        snprintf(relative, sizeof relative, "models-tiny/%s/%.*s.f32", folder, (int)tensor->name_bytes, tensor->name);
        whit_map golden;
        assert_ok(whit_map_open(shared_path(relative), NULL, &golden, &error), error);
        whit_ggml_view view = whit_gguf_view(tensor);
        assert_int_equal(golden.size_bytes, view.n_rows * view.n_cols * 4);
        float row_f32[512];
        for (uint64_t row = 0; row < view.n_rows; row++) {
            whit_ggml_row_f32(&view, row, row_f32);
            for (uint64_t col = 0; col < view.n_cols; col++)
                assert_true(row_f32[col] == whit_load_f32(golden.data + (row * view.n_cols + col) * 4));
        }
        whit_map_close(&golden);
        whit_ggml_twin twin;
        assert_ok(whit_ggml_find_twin(&view, relative, &twin, &error), error);
        if (view.kind > WHIT_GGML_BF16) check_twin(&view, &twin);
    }
    whit_gguf_close(gguf);
}

static void goldens_are_met(void **state)
{
    (void)state;
    check_goldens("weight-types", 13);
    check_goldens("weight-types-more", 12);
}

/* For every type that a codec stores exactly: decoding to the codec's fields and encoding gives bytes of the same
 * values; a second round gives the same bytes (in the first, minus zero may become zero). */
static void native_rows_return(void **state)
{
    (void)state;
    whit_rng rng = {31};
    whit_error error;
    int n_kinds = 0;
    for (int k = WHIT_GGML_Q4_0; k < WHIT_GGML_KIND_COUNT; k++) {
        whit_ggml_kind kind = (whit_ggml_kind)k, own;
        uint64_t size, n_cols = 512;
        uint8_t *data = random_tensor(kind, n_cols, kind == WHIT_GGML_IQ2_BN_R4 ? 4 : 1, &size, &rng);
        whit_ggml_view view = {kind, n_cols, kind == WHIT_GGML_IQ2_BN_R4 ? 4 : 1, data};
        whit_ggml_twin twin;
        assert_ok(whit_ggml_find_twin(&view, "x", &twin, &error), error);
        if (whit_ggml_native_kind(&twin.type, &own)) {
            int8_t codes[512];
            uint8_t bytes[32], again[512], third[512];
            float fields[32], before[512], after[512];
            whit_rows rows = {codes, fields, bytes};
            whit_ggml_view encoded = {own, n_cols, 1, again};
            whit_ggml_kind expected = kind; /* IQ3 has the codecs of wider types */
            if (kind == WHIT_GGML_IQ3_S) expected = WHIT_GGML_Q5_K;
            if (kind == WHIT_GGML_IQ3_XXS) expected = WHIT_GGML_Q6_K;
            assert_int_equal(own, expected);
            whit_ggml_row_twin(&view, &twin, 0, &rows);
            assert_true(whit_ggml_encode_native(own, n_cols, &rows, again));
            whit_ggml_row_f32(&view, 0, before);
            whit_ggml_row_f32(&encoded, 0, after);
            for (int i = 0; i < 512; i++) assert_true(before[i] == after[i]);
            whit_ggml_row_twin(&encoded, &twin, 0, &rows);
            assert_true(whit_ggml_encode_native(own, n_cols, &rows, third));
            assert_memory_equal(third, again, size);
            n_kinds++;
        }
        free(data);
    }
    assert_int_equal(n_kinds, 14);
}

/* Decodes bytes to codes and encodes these to the same bytes. */
static void encoders_invert_decoders(void **state)
{
    (void)state;
    static const whit_ggml_kind kinds[] = {WHIT_GGML_TQ1_0, WHIT_GGML_TQ2_0, WHIT_GGML_Q8_0, WHIT_GGML_Q1_0};
    whit_rng rng = {12};
    for (size_t i = 0; i < 4; i++) {
        uint64_t size, n_cols = 512;
        uint8_t *data = random_tensor(kinds[i], n_cols, 1, &size, &rng), *again = malloc(size), third[1024];
        whit_ggml_view view = {kinds[i], n_cols, 1, data}, encoded = {kinds[i], n_cols, 1, again};
        int8_t codes[512], codes_again[512];
        float scales[16], scales_again[16];
        uint64_t group = whit_ggml_kind_info(kinds[i])->group_elems;
        decode_row(&view, 0, codes, scales);
        assert_true(whit_ggml_encode_codes(kinds[i], n_cols, codes, scales, group, again));
        decode_row(&encoded, 0, codes_again, scales_again);
        assert_memory_equal(codes, codes_again, n_cols);
        assert_memory_equal(scales, scales_again, n_cols / group * 4);
        /* Random TQ1_0 bytes may have several encodings of one value; encoded bytes have one. */
        assert_true(whit_ggml_encode_codes(kinds[i], n_cols, codes_again, scales_again, group, third));
        assert_memory_equal(third, again, size);
        if (kinds[i] != WHIT_GGML_TQ1_0) assert_memory_equal(again, data, size);

        /* Values that the type cannot store must be reported. */
        const float one[1] = {0.5f}, thirds[1] = {1.0f / 3};
        assert_true(whit_ggml_encode_codes(kinds[i], n_cols, codes, one, n_cols, third));
        assert_false(whit_ggml_encode_codes(kinds[i], n_cols, codes, thirds, n_cols, third));
        assert_false(whit_ggml_encode_codes(kinds[i], n_cols - 8, codes, one, n_cols, third));
        const float halves[32] = {0.5f, 0.25f};
        if (group > 16) assert_false(whit_ggml_encode_codes(kinds[i], n_cols, codes, halves, 16, third));
        codes[100] = kinds[i] == WHIT_GGML_Q1_0 ? 0 : 3;
        assert_int_equal(whit_ggml_encode_codes(kinds[i], n_cols, codes, one, n_cols, third),
                         kinds[i] == WHIT_GGML_Q8_0);
        free(again);
        free(data);
    }
    float values[3] = {1.5f, -0.0f, 0x1p-24f};
    uint8_t out[12];
    assert_true(whit_ggml_encode_floats(WHIT_GGML_F16, 3, values, out));
    assert_true(whit_load_u16(out) == 0x3E00 && whit_load_u16(out + 2) == 0x8000 && whit_load_u16(out + 4) == 1);
    values[0] = 1.0f + 0x1p-11f;
    assert_false(whit_ggml_encode_floats(WHIT_GGML_F16, 3, values, out));
    assert_false(whit_ggml_encode_floats(WHIT_GGML_BF16, 3, values, out));
    assert_true(whit_ggml_encode_floats(WHIT_GGML_F32, 3, values, out));
    assert_memory_equal(out, values, 12);
    assert_false(whit_ggml_encode_floats(WHIT_GGML_Q8_0, 3, values, out));
}

/* Decoding and encoding blocks of other programs must give the same bytes. */
static void encoders_write_what_others_write(void **state)
{
    (void)state;
    static const char *const names[] = {"q8_0", "tq1_0", "tq2_0", "q1_0"};
    whit_error error;
    whit_gguf *gguf;
    assert_ok(whit_gguf_open(shared_path("models-tiny/weight-types/weight-types.gguf"), NULL, &gguf, &error), error);
    for (size_t i = 0; i < 4; i++) {
        const whit_gguf_tensor *tensor = whit_gguf_find_tensor(gguf, names[i]);
        whit_ggml_view view = whit_gguf_view(tensor);
        int8_t codes[512];
        float scales[16];
        uint8_t row[1024];
        uint64_t stride = tensor->size_bytes / view.n_rows;
        for (uint64_t r = 0; r < view.n_rows; r++) {
            decode_row(&view, r, codes, scales);
            assert_true(whit_ggml_encode_codes(view.kind, view.n_cols, codes, scales,
                                               whit_ggml_kind_info(view.kind)->group_elems, row));
            assert_memory_equal(row, view.data + r * stride, stride);
        }
    }
    whit_gguf_close(gguf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_follow_the_description),
        cmocka_unit_test(four_interleaved_rows_equal_single_ones),
        cmocka_unit_test(i2_s_blocks_run_over_row_ends),
        cmocka_unit_test(twins_hold_every_value),
        cmocka_unit_test(twins_depend_on_content),
        cmocka_unit_test(iq3_keeps_few_bits),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(goldens_are_met),
        cmocka_unit_test(native_rows_return),
        cmocka_unit_test(encoders_invert_decoders),
        cmocka_unit_test(encoders_write_what_others_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
