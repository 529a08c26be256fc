/* SPDX-License-Identifier: MIT
 * Makes random tensors of every type for the tests of src/engine/kernels: their logical content, and parts in
 * buffers of exactly the right size with guard bytes around them. */
#ifndef WHIT_TESTS_KERNELS_MATRIX_H
#define WHIT_TESTS_KERNELS_MATRIX_H

#include "test.h"

#include <math.h>

#include "base/half.h"
#include "base/mem.h"
#include "base/rng.h"
#include "kernels/codec.h"
#include "kernels/corrections.h"

#define CANARY       0xC5
#define CANARY_BYTES 64

/* Allocates `bytes` bytes at an address that is `misalign` modulo 64, between canaries. */
static inline uint8_t *guarded_alloc(size_t bytes, size_t misalign)
{
    uint8_t *memory = whit_alloc(NULL, 2 * CANARY_BYTES + bytes + misalign + 64);
    assert_non_null(memory);
    memset(memory, CANARY, 2 * CANARY_BYTES + bytes + misalign + 64);
    return memory + CANARY_BYTES + misalign;
}

static inline void guarded_check(const uint8_t *data, size_t bytes)
{
    for (size_t i = 0; i < CANARY_BYTES; i++) {
        if (data[-1 - (ptrdiff_t)i] != CANARY) fail_msg("canary %zu bytes before a buffer is gone", i + 1);
        if (data[bytes + i] != CANARY) fail_msg("canary %zu bytes behind a buffer is gone", i);
    }
}

static inline void guarded_free(uint8_t *data, size_t misalign)
{
    if (data) whit_free(NULL, data - CANARY_BYTES - misalign, 0);
}

/* Returns the seed of this run: WHIT_TEST_SEED, or a fixed number. Prints it, so that a failure can be repeated. */
static inline uint64_t test_seed(void)
{
    const char *text = getenv("WHIT_TEST_SEED");
    uint64_t seed = text && *text ? strtoull(text, NULL, 0) : 20261121;
    print_message("seed %llu (WHIT_TEST_SEED repeats it)\n", (unsigned long long)seed);
    return seed;
}

static inline whit_tensor_type type_of(whit_codec codec, whit_scale_kind kind, whit_scale_type scale_type,
                                       uint16_t group, bool has_offset, uint32_t n_rows, uint32_t n_cols)
{
    whit_tensor_type type = {.codec = (uint8_t)codec,
                             .layout = WHIT_LAYOUT_TILE16,
                             .scale_kind = (uint8_t)kind,
                             .scale_type = (uint8_t)scale_type,
                             .has_offset = has_offset,
                             .group = group,
                             .n_rows = n_rows,
                             .n_cols = n_cols};
    if (kind == WHIT_SCALE_TENSOR) {
        type.scale = 0.37f;
        if (codec == WHIT_CODEC_Q2) type.scale_b = 0.21f;
        if (has_offset) type.offset = -0.05f;
    }
    if (scale_type == WHIT_SCALE_E4) type.scale = 0.37f;
    return type;
}

/* Calls `visit` with every valid combination of codec and scales, for a matrix (n_rows, n_cols). */
typedef void visit_type(const whit_tensor_type *type, void *user);
static inline void for_each_type(uint32_t n_rows, uint32_t n_cols, visit_type *visit, void *user)
{
    for (int codec = 0; codec < WHIT_CODEC_COUNT; codec++)
        for (int kind = 0; kind <= WHIT_SCALE_GROUP; kind++)
            for (int scale_type = 0; scale_type < WHIT_SCALE_TYPE_COUNT; scale_type++)
                for (int group = 0; group <= 256; group = group ? 2 * group : 16)
                    for (int offset = 0; offset <= 1; offset++) {
                        whit_tensor_type type =
                            type_of((whit_codec)codec, (whit_scale_kind)kind, (whit_scale_type)scale_type,
                                    (uint16_t)group, offset, n_rows, n_cols);
                        if (whit_tensor_type_check(&type, NULL) == WHIT_OK) visit(&type, user);
                    }
}

/* A tensor with its own buffers for the parts, and its logical content. */
typedef struct test_matrix {
    whit_tensor tensor;
    uint8_t *part[WHIT_PART_COUNT];
    whit_rows rows; /* content of all rows */
} test_matrix;

static inline void matrix_alloc(test_matrix *matrix, const whit_tensor_type *type)
{
    memset(matrix, 0, sizeof *matrix);
    matrix->tensor.type = *type;
    for (int part = 0; part < WHIT_PART_COUNT; part++) {
        uint64_t bytes;
        assert_true(whit_codec_part_bytes(type, (whit_part)part, &bytes));
        if (!bytes) continue;
        matrix->part[part] = guarded_alloc(bytes, 0);
        matrix->tensor.part[part] = matrix->part[part];
        matrix->tensor.part_bytes[part] = bytes;
    }
}

static inline void rows_alloc(whit_rows *rows, const whit_tensor_type *type, uint32_t n)
{
    const whit_codec_info *codec = whit_codec_find(type->codec);
    whit_geometry g = whit_codec_geometry(type);
    size_t n_fields = (size_t)n * g.n_groups * (g.n_fields + 1);
    rows->elems = calloc((size_t)n * type->n_cols, codec->is_float ? codec->elem_bytes : 1);
    rows->fields = calloc(n_fields, sizeof(float));
    rows->fields_u8 = calloc(n_fields, 1);
}

static inline void rows_free(whit_rows *rows)
{
    free(rows->elems);
    free(rows->fields);
    free(rows->fields_u8);
}

/* Returns a random f16 of magnitude `size`, as f32. */
static inline float random_field(whit_rng *rng, float size)
{
    return whit_f32_from_f16(whit_f16_from_f32((float)(whit_rng_uniform(rng) - 0.3) * size));
}

/* Returns the level of the codec that is nearest to `code`, for codecs whose levels are not a range of integers. */
static inline int nearest_level(const whit_codec_info *codec, int code)
{
    int best = codec->levels[0];
    for (int i = 1; i < 16; i++)
        if (abs(codec->levels[i] - code) < abs(best - code)) best = codec->levels[i];
    return best;
}

/* Writes the eight codes of a random entry of the codec's codebook. */
static inline void random_entry(const whit_codec_info *codec, whit_rng *rng, int8_t codes[8])
{
    uint16_t entry = codec->grid[whit_rng_below(rng, 256u << codec->high_bits)];
    for (int j = 0; j < 8; j++) {
        int8_t level = codec->levels[entry >> 2 * j & 3];
        codes[j] = (int8_t)(whit_rng_next(rng) & 1 ? -level : level);
    }
}

/* Fills rows with random content; `extreme`: only the largest and smallest codes. */
static inline void rows_random(whit_rows *rows, const whit_tensor_type *type, uint32_t n, whit_rng *rng, bool extreme)
{
    const whit_codec_info *codec = whit_codec_find(type->codec);
    whit_geometry g = whit_codec_geometry(type);
    const size_t n_elems = (size_t)n * type->n_cols;
    const uint64_t n_codes = (uint64_t)(codec->code_max - codec->code_min) + 1;
    for (size_t i = 0; codec->is_float && i < n_elems; i++) {
        float value = (float)(whit_rng_uniform(rng) * 2 - 1);
        if (type->codec == WHIT_CODEC_F32)
            ((float *)rows->elems)[i] = value;
        else
            ((uint16_t *)rows->elems)[i] =
                type->codec == WHIT_CODEC_F16 ? whit_f16_from_f32(value) : whit_bf16_from_f32(value);
    }
    for (size_t i = 0; !codec->is_float && !codec->grid && i < n_elems; i++) {
        const uint64_t drawn = whit_rng_next(rng) >> 32;
        int code = codec->code_min + (int)(drawn * n_codes >> 32);
        if (extreme) code = drawn & 1 ? codec->code_min : codec->code_max;
        if (type->codec == WHIT_CODEC_B1) code = code > 0 ? 1 : -1;
        if (type->codec == WHIT_CODEC_F4 || type->codec == WHIT_CODEC_N4) code = nearest_level(codec, code);
        ((int8_t *)rows->elems)[i] = (int8_t)code;
    }
    for (size_t i = 0; codec->grid && i < n_elems; i += 8) random_entry(codec, rng, (int8_t *)rows->elems + i);
    for (size_t i = 0; i < (size_t)n * g.n_groups * g.n_fields; i++) {
        rows->fields[i] = random_field(rng, 0.1f);
        rows->fields_u8[i] = (uint8_t)whit_rng_next(rng);
        if (type->scale_type == WHIT_SCALE_ODD4) rows->fields_u8[i] &= 15;
        if (type->scale_type == WHIT_SCALE_E8) rows->fields_u8[i] = (uint8_t)(118 + rows->fields_u8[i] % 12);
    }
    for (size_t i = 0; type->scale_type == WHIT_SCALE_L6 && i < (size_t)n * g.n_groups; i++) {
        uint64_t u = whit_rng_next(rng); /* scales from 0 to 4, some of them subnormal as f16 */
        rows->fields_u8[2 * i] = (uint8_t)u;
        rows->fields_u8[2 * i + 1] = (uint8_t)((u >> 8) % 0x84);
    }
}

/* Allocates a matrix, fills it with random content and packs it. */
static inline void matrix_random(test_matrix *matrix, const whit_tensor_type *type, whit_rng *rng, bool extreme)
{
    whit_error error;
    matrix_alloc(matrix, type);
    rows_alloc(&matrix->rows, type, type->n_rows);
    rows_random(&matrix->rows, type, type->n_rows, rng, extreme);
    assert_ok(whit_codec_pack(type, 0, type->n_rows, &matrix->rows, matrix->part, &error), error);
    assert_ok(whit_tensor_check(&matrix->tensor, &error), error);
}

static inline void matrix_free(test_matrix *matrix)
{
    for (int part = 0; part < WHIT_PART_COUNT; part++)
        if (matrix->part[part]) {
            guarded_check(matrix->part[part], matrix->tensor.part_bytes[part]);
            guarded_free(matrix->part[part], 0);
        }
    rows_free(&matrix->rows);
}

/* Makes a random outliers part of a type: at most `most` outliers in a row, in most rows fewer. Some are at the ends of
 * rows, some far apart. */
static inline void outliers_random(const whit_tensor_type *type, uint32_t most, whit_rng *rng, whit_buf *part)
{
    whit_outlier *list = calloc((size_t)type->n_rows * most + 1, sizeof *list);
    float *scales = calloc((type->n_rows + 15) / 16, sizeof *scales);
    whit_error error;
    size_t n = 0;
    assert_non_null(list);
    assert_non_null(scales);
    for (uint32_t row = 0; row < type->n_rows; row++) {
        uint32_t left = (uint32_t)whit_rng_below(rng, most + 1), col = (uint32_t)whit_rng_below(rng, 3) ? 0 : 1;
        for (; left && col < type->n_cols; left--, col += 1 + (uint32_t)whit_rng_below(rng, type->n_cols))
            list[n++] = (whit_outlier){row, col, (int8_t)whit_rng_next(rng)};
    }
    if (!n) list[n++] = (whit_outlier){type->n_rows - 1, type->n_cols - 1, 5};
    for (uint32_t tile = 0; tile < (type->n_rows + 15) / 16; tile++) scales[tile] = random_field(rng, 0.02f);
    assert_ok(whit_outliers_build(type, list, n, scales, part, &error), error);
    free(list);
    free(scales);
}

/* Like content_value(), for groups whose scale is a byte: the formulas of base/tensor.h in doubles, which are exact. */
static inline float content_value_by_bytes(const test_matrix *matrix, uint32_t row, uint32_t k)
{
    const whit_tensor_type *type = &matrix->tensor.type;
    uint32_t n_groups = (type->n_cols + type->group - 1) / type->group, n_factors = type->has_offset ? 2 : 1;
    size_t at = (size_t)row * n_groups + k / type->group;
    int byte = matrix->rows.fields_u8[at];
    int code = ((const int8_t *)matrix->rows.elems)[(size_t)row * type->n_cols + k];
    if (type->scale_type == WHIT_SCALE_E8) return (float)ldexp(code, byte - 128);
    if (type->scale_type == WHIT_SCALE_L6) {
        int u = matrix->rows.fields_u8[2 * at] | matrix->rows.fields_u8[2 * at + 1] << 8, exponent = u >> 11,
            fraction = u >> 6 & 31, level = code == 0 || code == 3 ? 63 : u & 63;
        double scale = exponent ? ldexp(32 + fraction, exponent - 20) : ldexp(fraction, -19);
        return (float)(scale / 64 * (code & 1 ? level : -level));
    }
    if (type->scale_type == WHIT_SCALE_E4) {
        int exponent = byte >> 3 & 15, fraction = byte & 7;
        double scale = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
        return (float)code * ((float)((byte & 127) == 127 ? 0 : scale / 2) * type->scale);
    }
    const float *d = matrix->rows.fields + ((size_t)row * (type->n_cols / 256) + k / 256) * n_factors;
    if (type->scale_type == WHIT_SCALE_K4)
        return (float)((double)d[0] * (byte & 15) * code - (double)d[1] * (byte >> 4));
    if (type->scale_type == WHIT_SCALE_K8) return (float)((double)d[0] * (byte - 128) * code);
    if (type->scale_type == WHIT_SCALE_K16) {
        const uint8_t *pair = matrix->rows.fields_u8 + 2 * at;
        return (float)((double)d[0] * pair[0] * code - (double)d[1] * pair[1]);
    }
    return (float)((double)d[0] * (2 * byte + 1) / 8 * code);
}

/* Returns the offset of a group's values, or 0 if the type has none. A value may be a small difference of a product and
 * this offset. */
static inline float content_offset(const test_matrix *matrix, uint32_t row, uint32_t k)
{
    const whit_tensor_type *type = &matrix->tensor.type;
    if (!type->has_offset) return 0;
    whit_geometry g = whit_codec_geometry(type);
    float fields[WHIT_MAX_FIELDS][WHIT_TILE_ROWS];
    whit_tile_fields(&matrix->tensor, row / WHIT_TILE_ROWS, k / g.group_cols, fields);
    return fields[g.n_fields - 1][row % WHIT_TILE_ROWS];
}

/* Returns the value of an element of the content, by a formula that does not use the codec. */
static inline float content_value(const test_matrix *matrix, uint32_t row, uint32_t k)
{
    const whit_tensor_type *type = &matrix->tensor.type;
    size_t i = (size_t)row * type->n_cols + k;
    if (type->codec == WHIT_CODEC_F32) return ((const float *)matrix->rows.elems)[i];
    if (type->codec == WHIT_CODEC_F16) return whit_f32_from_f16(((const uint16_t *)matrix->rows.elems)[i]);
    if (type->codec == WHIT_CODEC_BF16) return whit_f32_from_bf16(((const uint16_t *)matrix->rows.elems)[i]);
    if (type->scale_type > WHIT_SCALE_U8) return content_value_by_bytes(matrix, row, k);
    bool is_q2 = type->codec == WHIT_CODEC_Q2, is_u8 = type->scale_type == WHIT_SCALE_U8;
    unsigned n_fields = 1u + is_q2 + type->has_offset;
    unsigned n_groups = type->group ? (type->n_cols + type->group - 1) / type->group : 1;
    unsigned group = type->group ? k / type->group : 0;
    float field[3] = {type->scale, is_q2 ? type->scale_b : type->offset, type->offset};
    for (unsigned f = 0; type->scale_kind != WHIT_SCALE_TENSOR && f < n_fields; f++) {
        size_t at = ((size_t)row * n_groups + group) * n_fields + f;
        field[f] = is_u8 ? matrix->rows.fields_u8[at] * matrix->rows.fields[(size_t)row * n_fields + f]
                         : matrix->rows.fields[at];
    }
    int code = ((const int8_t *)matrix->rows.elems)[i];
    if (!is_q2) return type->has_offset ? fmaf((float)code, field[0], field[1]) : (float)code * field[0];
    float sum = (code & 1 ? 1.0f : -1.0f) * field[0] + (code & 2 ? 1.0f : -1.0f) * field[1];
    return type->has_offset ? sum + field[2] : sum;
}

#endif
