/* SPDX-License-Identifier: MIT
 * Tests codecs: sizes, refusals, round trips of every combination, random lines, and canonical bytes. */
#include <math.h>

#include "kernels/levels.h"
#include "kernels/matrix.h"

static const char *describe(const whit_tensor_type *type)
{
    static char text[128];
    snprintf(text, sizeof text, "%s kind %u scale %u group %u offset %u, %u x %u", whit_codec_find(type->codec)->name,
             type->scale_kind, type->scale_type, type->group, type->has_offset, type->n_rows, type->n_cols);
    return text;
}

/* Unpacking must return what was packed, for all rows and for any range of rows, and a lookup must return the
 * values. */
static void round_trip(const whit_tensor_type *type, void *user)
{
    whit_rng *rng = user;
    test_matrix matrix;
    matrix_random(&matrix, type, rng, whit_rng_next(rng) & 1);
    const whit_codec_info *codec = whit_codec_find(type->codec);
    whit_geometry g = whit_codec_geometry(type);
    uint32_t begin = (uint32_t)whit_rng_below(rng, type->n_rows);
    uint32_t n = 1 + (uint32_t)whit_rng_below(rng, type->n_rows - begin);
    whit_rows found;
    rows_alloc(&found, type, n);
    whit_codec_unpack(&matrix.tensor, begin, n, &found);
    size_t row_bytes = (size_t)type->n_cols * (codec->is_float ? codec->elem_bytes : 1);
    if (memcmp(found.elems, (uint8_t *)matrix.rows.elems + begin * row_bytes, n * row_bytes))
        fail_msg("codes of %s", describe(type));
    if (type->scale_kind >= WHIT_SCALE_ROW) {
        bool is_u8 = type->scale_type >= WHIT_SCALE_U8;
        size_t per_row = is_u8 && !whit_scale_has_factors(type->scale_type) ? 0 : g.row_fields,
               u8_per_row = g.row_bytes;
        if (memcmp(found.fields, matrix.rows.fields + begin * per_row, n * per_row * sizeof(float)))
            fail_msg("fields of %s", describe(type));
        if (is_u8 && memcmp(found.fields_u8, matrix.rows.fields_u8 + begin * u8_per_row, n * u8_per_row))
            fail_msg("u8 scales of %s", describe(type));
    }
    rows_free(&found);

    int32_t ids[3] = {(int32_t)begin, (int32_t)(type->n_rows - 1), 0};
    size_t stride = type->n_cols + 3;
    float *values = calloc(3 * stride, sizeof *values);
    whit_codec_get_rows(&matrix.tensor, ids, 3, values, stride);
    for (int i = 0; i < 3; i++)
        for (uint32_t k = 0; k < type->n_cols; k++)
            if (values[i * stride + k] != content_value(&matrix, (uint32_t)ids[i], k))
                fail_msg("row %d column %u of %s", ids[i], k, describe(type));
    free(values);
    matrix_free(&matrix);
}

static void every_combination_round_trips(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    static const uint32_t shapes[][2] = {{16, 256}, {1, 1}, {8, 20}, {33, 129}, {17, 300}, {48, 512}, {5, 1400}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for_each_type(shapes[i][0], shapes[i][1], round_trip, &rng);
}

/* Packing tiles separately must give the same bytes as packing all at once. */
static void ranges_pack_alike(const whit_tensor_type *type, void *user)
{
    whit_error error;
    test_matrix whole, parts;
    matrix_random(&whole, type, user, false);
    matrix_alloc(&parts, type);
    whit_geometry g = whit_codec_geometry(type);
    const whit_codec_info *codec = whit_codec_find(type->codec);
    for (uint32_t row = 0; row < type->n_rows; row += 16) {
        uint32_t n = type->n_rows - row < 16 ? type->n_rows - row : 16;
        size_t per_row = g.row_fields;
        whit_rows rows = {.elems = (uint8_t *)whole.rows.elems +
                              (size_t)row * type->n_cols * (codec->is_float ? codec->elem_bytes : 1),
                          .fields = whole.rows.fields + row * per_row,
                          .fields_u8 = whole.rows.fields_u8 + (size_t)row * g.row_bytes};
        assert_ok(whit_codec_pack(type, row, n, &rows, parts.part, &error), error);
    }
    for (int part = 0; part < WHIT_PART_COUNT; part++)
        if (whole.part[part] && memcmp(whole.part[part], parts.part[part], whole.tensor.part_bytes[part]))
            fail_msg("part %d of %s", part, describe(type));
    matrix_free(&whole);
    matrix_free(&parts);
}

static void tiles_pack_alone(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    for_each_type(40, 264, ranges_pack_alike, &rng);
}

/* Any bytes must unpack to values, and packing and unpacking these again must not change them. */
static void random_bytes(const whit_tensor_type *type, void *user)
{
    whit_rng *rng = user;
    whit_error error;
    test_matrix matrix, again;
    matrix_alloc(&matrix, type);
    matrix_alloc(&again, type);
    rows_alloc(&matrix.rows, type, type->n_rows);
    whit_rows found;
    rows_alloc(&found, type, type->n_rows);
    for (int part = 0; part < WHIT_PART_COUNT; part++)
        for (uint64_t i = 0; i < matrix.tensor.part_bytes[part]; i++)
            matrix.part[part][i] = (uint8_t)whit_rng_next(rng);
    whit_codec_unpack(&matrix.tensor, 0, type->n_rows, &matrix.rows);
    /* t2 lines inside t5 can contain the value 2, which t5 cannot pack */
    if (type->codec != WHIT_CODEC_T5) {
        assert_ok(whit_codec_pack(type, 0, type->n_rows, &matrix.rows, again.part, &error), error);
        whit_codec_unpack(&again.tensor, 0, type->n_rows, &found);
        size_t bytes = (size_t)type->n_rows * type->n_cols;
        if (memcmp(found.elems, matrix.rows.elems, bytes)) fail_msg("%s", describe(type));
    }
    rows_free(&found);
    matrix_free(&matrix);
    matrix_free(&again);
}

static void any_bytes_have_a_value(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    for_each_type(19, 300, random_bytes, &rng);
}

/* ---- the drawings of docs/dev/kernels.md, by hand ----------------------------------------------- */

static int8_t code_at(whit_codec codec, unsigned byte_index, uint8_t byte, uint32_t n_cols, uint32_t row, uint32_t k)
{
    whit_tensor_type type = type_of(codec, WHIT_SCALE_TENSOR, WHIT_SCALE_F32, 0, false, 16, n_cols);
    test_matrix matrix;
    matrix_alloc(&matrix, &type);
    for (int part = 0; part < WHIT_PART_COUNT; part++)
        if (matrix.part[part]) memset(matrix.part[part], 0, matrix.tensor.part_bytes[part]);
    matrix.part[WHIT_PART_CODES][byte_index] = byte;
    rows_alloc(&matrix.rows, &type, 16);
    whit_codec_unpack(&matrix.tensor, 0, 16, &matrix.rows);
    int8_t code = ((int8_t *)matrix.rows.elems)[row * n_cols + k];
    matrix_free(&matrix);
    return code;
}

static void lines_are_as_drawn(void **state)
{
    (void)state;
    assert_int_equal(code_at(WHIT_CODEC_I8, 4 * 5 + 2, 200, 8, 5, 2), 72);
    assert_int_equal(code_at(WHIT_CODEC_I8, 64 + 4 * 5 + 2, 200, 8, 5, 6), 72);
    assert_int_equal(code_at(WHIT_CODEC_I4, 4 * 3 + 1, 0xA1, 8, 3, 1), -7);
    assert_int_equal(code_at(WHIT_CODEC_I4, 4 * 3 + 1, 0xA1, 8, 3, 5), 2);
    for (unsigned d = 0; d < 4; d++)
        assert_int_equal(code_at(WHIT_CODEC_T2, 4 * 7 + 3, 0xE4, 16, 7, 4 * d + 3), (int)d - 1);
    static const int digits[5] = {1, 0, 2, 1, 2}; /* digits in base 3: 1 + 18 + 27 + 162 = 208 */
    for (unsigned d = 0; d < 5; d++)
        assert_int_equal(code_at(WHIT_CODEC_T5, 4 * 15 + 1, 208, 20, 15, 4 * d + 1), digits[d] - 1);
    for (unsigned j = 0; j < 8; j++)
        assert_int_equal(code_at(WHIT_CODEC_B1, 4 * 2, 0x91, 32, 2, 4 * j), 0x91 >> j & 1 ? 1 : -1);
    assert_int_equal(code_at(WHIT_CODEC_Q2, 4 * 2, 0x10, 32, 2, 16), 1);
    assert_int_equal(code_at(WHIT_CODEC_Q2, 64 + 4 * 2, 0x10, 32, 2, 16), 2);
}

/* One group of l2 with scale 1.5 / 64 and low level 20; row 7 has the codes 0 to 3. */
static void levels_of_a_group_are_as_drawn(void **state)
{
    (void)state;
    whit_tensor_type type = type_of(WHIT_CODEC_L2, WHIT_SCALE_GROUP, WHIT_SCALE_L6, 32, false, 16, 64);
    test_matrix matrix;
    matrix_alloc(&matrix, &type);
    memset(matrix.part[WHIT_PART_CODES], 0, matrix.tensor.part_bytes[WHIT_PART_CODES]);
    const uint16_t u = (15 << 5 | 16) << 6 | 20;                   /* exponent 15 and fraction one half: 1.5 */
    memcpy(matrix.part[WHIT_PART_CODES] + 4 * 7 + 2, &u, 2);       /* the second group of row 7 */
    matrix.part[WHIT_PART_CODES][(1 + 2) * 64 + 4 * 7 + 1] = 0xE4; /* columns 33, 37, 41, 45: codes 0 to 3 */
    float values[64];
    whit_codec_get_rows(&matrix.tensor, (const int32_t[]){7}, 1, values, 64);
    const float scale = 1.5f / 64;
    assert_true(values[33] == -63 * scale && values[37] == 20 * scale && values[41] == -20 * scale &&
                values[45] == 63 * scale);
    assert_true(values[32] == -63 * scale && values[0] == 0);
    int8_t integers[64 * 16];
    whit_tile_integers(&matrix.tensor, 0, 0, 64, integers);
    assert_int_equal(integers[37 * 16 + 7], 20);
    assert_int_equal(integers[41 * 16 + 6], -63);
    matrix_free(&matrix);
}

/* The nearest representation of a pair of magnitudes: itself if it is exact, otherwise rounded to even, and never 0. */
static void levels_round_to_the_nearest(void **state)
{
    (void)state;
    for (unsigned u = 1 << 6; u < 31u << 11; u++) { /* all scales except 0, infinities and NaN */
        float scale = whit_level_scale(u);
        float pair[2];
        assert_int_equal(whit_level_nearest(63 * scale, (float)whit_level_low(u) * scale), u);
        whit_level_pair(u, pair);
        assert_true(pair[0] + pair[1] == 63 * scale && pair[0] - pair[1] == (float)whit_level_low(u) * scale);
        assert_int_equal(whit_level_of_pair(pair), u);
    }
    const float one = 63.0f / 64;
    assert_int_equal(whit_level_nearest(one * (1 + 1 / 64.0f), 0), 15u << 11);
    assert_int_equal(whit_level_nearest(one * (1 + 3 / 64.0f), 0), (15u << 5 | 2) << 6);
    assert_int_equal(whit_level_nearest(one, 0.4f * one / 63), 15u << 11);
    assert_int_equal(whit_level_nearest(one, 0.6f * one / 63), 15u << 11 | 1);
    assert_int_equal(whit_level_nearest(one, 2 * one), 15u << 11 | 63);
    assert_int_equal(whit_level_nearest(0, 0), 1u << 6);
    assert_int_equal(whit_level_nearest(-1, -1), 1u << 6);
    assert_int_equal(whit_level_nearest(1e9f, 0), 31u << 11);
    assert_int_equal(whit_level_nearest(INFINITY, 1), 31u << 11);
    assert_true(isnan(whit_level_scale(whit_level_nearest(NAN, 1))) &&
                isnan(whit_level_scale(whit_level_nearest(1, NAN))));
}

static void t5_bytes_beyond_242(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        unsigned rest = byte % 81;
        for (unsigned d = 0; d < 4; d++, rest /= 3)
            assert_int_equal(code_at(WHIT_CODEC_T5, 0, (uint8_t)byte, 20, 0, 4 * d), (int)(rest % 3) - 1);
        unsigned last = byte / 81 > 2 ? 2 : byte / 81;
        assert_int_equal(code_at(WHIT_CODEC_T5, 0, (uint8_t)byte, 20, 0, 16), (int)last - 1);
    }
}

static uint64_t bytes_of(whit_codec codec, whit_scale_kind kind, whit_scale_type scale, uint16_t group, bool offset,
                         uint32_t n_rows, uint32_t n_cols)
{
    whit_tensor_type type = type_of(codec, kind, scale, group, offset, n_rows, n_cols);
    whit_error error;
    uint64_t bytes = 0;
    assert_ok(whit_tensor_type_check(&type, &error), error);
    assert_true(whit_codec_total_bytes(&type, &bytes));
    return bytes;
}

static void sizes_are_as_documented(void **state)
{
    (void)state;
    const whit_scale_kind tensor = WHIT_SCALE_TENSOR, group = WHIT_SCALE_GROUP;
    assert_int_equal(bytes_of(WHIT_CODEC_T2, tensor, 0, 0, false, 2560, 6912), 2560 * 6912 / 4);
    assert_int_equal(bytes_of(WHIT_CODEC_T5, tensor, 0, 0, false, 2560, 2560), 2560 * 2560 / 5);
    /* 14 lines per 256 columns are 1.75 bits per weight; a half superblock has 6 + 1 + 1 lines */
    assert_int_equal(bytes_of(WHIT_CODEC_T5, group, WHIT_SCALE_F16, 128, false, 16, 2560), 10 * 14 * 64);
    assert_int_equal(bytes_of(WHIT_CODEC_T5, group, WHIT_SCALE_F16, 128, false, 16, 256 + 128), 22 * 64);
    assert_int_equal(bytes_of(WHIT_CODEC_T5, group, WHIT_SCALE_F16, 128, false, 16, 256 + 129), 28 * 64);
    /* scales precede their lines: one line for two groups of f16, one group of f32, or four groups of u8 */
    assert_int_equal(bytes_of(WHIT_CODEC_T2, group, WHIT_SCALE_F16, 128, false, 16, 256), 17 * 64);
    assert_int_equal(bytes_of(WHIT_CODEC_T2, group, WHIT_SCALE_F32, 128, false, 16, 256), 18 * 64);
    assert_int_equal(bytes_of(WHIT_CODEC_T2, group, WHIT_SCALE_U8, 64, false, 16, 256), 17 * 64 + 32);
    assert_int_equal(bytes_of(WHIT_CODEC_Q2, group, WHIT_SCALE_F16, 128, false, 16, 256), 18 * 64);
    assert_int_equal(bytes_of(WHIT_CODEC_L2, group, WHIT_SCALE_L6, 128, false, 16, 256), 17 * 64);
    assert_int_equal(bytes_of(WHIT_CODEC_I4, group, WHIT_SCALE_F16, 32, true, 16, 256), (32 + 8) * 64);
    /* per 256 columns one line of factors and four lines of scales (also for i6); per 32 columns four lines of u4, five
     * of u5, six of i6 */
    assert_int_equal(bytes_of(WHIT_CODEC_U4, group, WHIT_SCALE_K16, 32, true, 16, 256), (5 + 32) * 64);
    assert_int_equal(bytes_of(WHIT_CODEC_U5, group, WHIT_SCALE_K16, 32, true, 16, 256), (5 + 40) * 64);
    assert_int_equal(bytes_of(WHIT_CODEC_I6, group, WHIT_SCALE_K8, 16, false, 16, 256), (5 + 48) * 64);
    assert_int_equal(bytes_of(WHIT_CODEC_B1, group, WHIT_SCALE_F16, 128, false, 16, 2048), (64 + 8) * 64);
    /* odd sizes: rows are padded to 16, columns to the line */
    assert_int_equal(bytes_of(WHIT_CODEC_F32, 0, 0, 0, false, 3, 5), 5 * 64);
    assert_int_equal(bytes_of(WHIT_CODEC_F16, 0, 0, 0, false, 17, 5), 2 * 3 * 64);
    assert_int_equal(bytes_of(WHIT_CODEC_I8S, WHIT_SCALE_ROW, WHIT_SCALE_F16, 0, false, 20, 130),
                     2 * 17 * 64 + 32 * 128 + 64);
}

static void plain_layout(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    whit_tensor_type type = {.codec = WHIT_CODEC_F16, .layout = WHIT_LAYOUT_PLAIN, .n_rows = 3, .n_cols = 70001};
    test_matrix matrix;
    matrix_random(&matrix, &type, &rng, false);
    assert_int_equal(matrix.tensor.part_bytes[0], 3 * 70001 * 2);
    float *row = calloc(70001, sizeof *row);
    whit_codec_get_rows(&matrix.tensor, (const int32_t[]){2}, 1, row, 0);
    for (uint32_t k = 0; k < 70001; k++) assert_true(row[k] == content_value(&matrix, 2, k));
    free(row);
    matrix_free(&matrix);
}

/* ---- refusals ------------------------------------------------------------------------------- */

static void assert_refused(whit_tensor_type type, const char *reason)
{
    whit_error error = {0};
    assert_int_equal(whit_tensor_type_check(&type, &error), WHIT_ERROR_FORMAT);
    if (!strstr(error.message, reason)) fail_msg("'%s' lacks '%s'", error.message, reason);
}

static void impossible_types_are_refused(void **state)
{
    (void)state;
    whit_tensor_type good = type_of(WHIT_CODEC_T2, WHIT_SCALE_GROUP, WHIT_SCALE_F16, 128, false, 16, 256), type;
    assert_int_equal(whit_tensor_type_check(&good, NULL), WHIT_OK);
#define REFUSE(change, reason) type = good, type.change, assert_refused(type, reason)
    REFUSE(codec = WHIT_CODEC_COUNT, "codec 21 is not known");
    REFUSE(layout = 2, "layout 2 is not known");
    REFUSE(layout = WHIT_LAYOUT_PLAIN, "plain layout");
    REFUSE(act = 3, "activation rule");
    REFUSE(act = WHIT_TENSOR_ACT_FIXED, "a scale per row");
    REFUSE(scale_kind = 0, "kind of scales");
    REFUSE(scale_kind = 9, "kind of scales");
    REFUSE(scale_type = WHIT_SCALE_TYPE_COUNT, "type of scales");
    REFUSE(scale_type = WHIT_SCALE_K4, "does not have its type of scales");
    REFUSE(has_offset = 2, "offset flag");
    REFUSE(group = 0, "group size");
    REFUSE(group = 48, "group size");
    REFUSE(group = 512, "group size");
    REFUSE(reserved = 1, "reserved");
    REFUSE(n_rows = 0, "no rows");
    REFUSE(n_cols = 0, "no rows");
    REFUSE(n_cols = WHIT_MAX_COLS + 1, "65536 columns");
    REFUSE(n_rows = UINT32_MAX, "too many");
    REFUSE(scale = 1, "its tensor scale does not fit");
    REFUSE(scale_b = 1, "second scale");
    REFUSE(offset = 1, "an offset, which nothing uses");
    good.codec = WHIT_CODEC_T5;
    REFUSE(group = 64, "group size");
    good = type_of(WHIT_CODEC_F16, WHIT_SCALE_NONE, 0, 0, false, 16, 256);
    REFUSE(act = WHIT_TENSOR_ACT_TOKEN, "float activations");
    REFUSE(scale_kind = WHIT_SCALE_ROW, "no scales");
    REFUSE(has_offset = 1, "no offset");
    good = type_of(WHIT_CODEC_I8S, WHIT_SCALE_ROW, WHIT_SCALE_F16, 0, false, 16, 256);
    REFUSE(has_offset = 1, "no offset");
    REFUSE(scale_type = WHIT_SCALE_U8, "scales of bytes need groups");
    good = type_of(WHIT_CODEC_T2, WHIT_SCALE_ROW, WHIT_SCALE_F32, 0, false, 16, 256);
    good.act = WHIT_TENSOR_ACT_FIXED;
    good.scale_b = 0.5f;
    assert_int_equal(whit_tensor_type_check(&good, NULL), WHIT_OK);
    REFUSE(scale_b = 0, "its fixed scale of activations is missing");
    REFUSE(scale_b = -1, "not a positive number");
    REFUSE(scale = NAN, "not a positive number");
    REFUSE(scale = INFINITY, "not a positive number");
    REFUSE(offset = 1, "an offset, which nothing uses");
    REFUSE(codec = WHIT_CODEC_I8S, "a scale per row");
    REFUSE(act = WHIT_TENSOR_ACT_TOKEN, "second scale");
    good = type_of(WHIT_CODEC_U2, WHIT_SCALE_GROUP, WHIT_SCALE_K4, 16, true, 16, 512);
    assert_int_equal(whit_tensor_type_check(&good, NULL), WHIT_OK);
    REFUSE(has_offset = 0, "its offset does not fit its type of scales");
    REFUSE(n_cols = 384, "multiple of 256");
    REFUSE(group = 64, "group size");
    REFUSE(scale_type = WHIT_SCALE_F16, "does not have its type of scales");
    good = type_of(WHIT_CODEC_F4, WHIT_SCALE_GROUP, WHIT_SCALE_E4, 16, false, 16, 80);
    assert_int_equal(whit_tensor_type_check(&good, NULL), WHIT_OK);
    REFUSE(scale = 0, "its tensor scale does not fit");
    good = type_of(WHIT_CODEC_L2, WHIT_SCALE_GROUP, WHIT_SCALE_L6, 128, false, 16, 80);
    assert_int_equal(whit_tensor_type_check(&good, NULL), WHIT_OK);
    REFUSE(has_offset = 1, "its offset does not fit its type of scales");
    REFUSE(scale_type = WHIT_SCALE_F16, "does not have its type of scales");
    REFUSE(group = 16, "group size");
    REFUSE(scale_kind = WHIT_SCALE_ROW, "need groups");
    good = type_of(WHIT_CODEC_F32, WHIT_SCALE_NONE, 0, 0, false, INT32_MAX, INT32_MAX);
    good.layout = WHIT_LAYOUT_PLAIN;
    assert_int_equal(whit_tensor_type_check(&good, NULL), WHIT_OK); /* sizes just below 2^64 bytes are accepted */
#undef REFUSE
}

static void wrong_parts_are_refused(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    whit_tensor_type type = type_of(WHIT_CODEC_I8S, WHIT_SCALE_ROW, WHIT_SCALE_F16, 0, false, 16, 256);
    test_matrix matrix;
    matrix_random(&matrix, &type, &rng, false);
    whit_tensor tensor = matrix.tensor;
    tensor.part[WHIT_PART_LOW] = NULL;
    assert_int_equal(whit_tensor_check(&tensor, NULL), WHIT_ERROR_FORMAT);
    tensor = matrix.tensor;
    tensor.part_bytes[WHIT_PART_CODES]--;
    assert_int_equal(whit_tensor_check(&tensor, NULL), WHIT_ERROR_FORMAT);
    tensor = matrix.tensor;
    tensor.part[WHIT_PART_CODES]++;
    assert_int_equal(whit_tensor_check(&tensor, NULL), WHIT_ERROR_FORMAT);
    matrix_free(&matrix);
}

static void codes_out_of_range_are_refused(void **state)
{
    (void)state;
    whit_error error;
    whit_tensor_type type = type_of(WHIT_CODEC_T5, WHIT_SCALE_TENSOR, 0, 0, false, 1, 20);
    test_matrix matrix;
    matrix_alloc(&matrix, &type);
    rows_alloc(&matrix.rows, &type, 1);
    ((int8_t *)matrix.rows.elems)[7] = 2;
    assert_int_equal(whit_codec_pack(&type, 0, 1, &matrix.rows, matrix.part, &error), WHIT_ERROR_ARGUMENT);
    assert_int_equal(whit_codec_pack(&type, 1, 1, &matrix.rows, matrix.part, &error), WHIT_ERROR_ARGUMENT);
    matrix_free(&matrix);

    /* values between two levels, and groups of eight that are not in the codebook */
    type = type_of(WHIT_CODEC_F4, WHIT_SCALE_GROUP, WHIT_SCALE_E8, 32, false, 1, 32);
    matrix_alloc(&matrix, &type);
    rows_alloc(&matrix.rows, &type, 1);
    ((int8_t *)matrix.rows.elems)[9] = 5;
    assert_int_equal(whit_codec_pack(&type, 0, 1, &matrix.rows, matrix.part, &error), WHIT_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "the code 5"));
    matrix_free(&matrix);
    type = type_of(WHIT_CODEC_X9, WHIT_SCALE_GROUP, WHIT_SCALE_ODD4, 16, false, 1, 256);
    whit_rng rng = {3};
    matrix_random(&matrix, &type, &rng, false);
    int8_t *codes = matrix.rows.elems;
    memset(codes + 16, 25, 8);
    assert_int_equal(whit_codec_pack(&type, 0, 1, &matrix.rows, matrix.part, &error), WHIT_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, "columns 16 to 23"));
    matrix_free(&matrix);
}

/* ---- canonical bytes ------------------------------------------------------------------------ */

static uint8_t *canonical(const whit_tensor *tensor, size_t *bytes)
{
    *bytes = whit_codec_canonical_row_bytes(&tensor->type) * tensor->type.n_rows;
    uint8_t *out = malloc(*bytes);
    whit_codec_canonical_rows(tensor, 0, tensor->type.n_rows, out);
    return out;
}

/* Content that is not packed must have the same canonical bytes as the packed tensor. */
static void canonical_before_packing(const whit_tensor_type *type, void *user)
{
    test_matrix matrix;
    size_t bytes;
    matrix_random(&matrix, type, user, whit_rng_next(user) & 1);
    uint8_t *packed = canonical(&matrix.tensor, &bytes), *content = malloc(bytes);
    whit_codec_canonical_content(type, type->n_rows, &matrix.rows, content);
    if (memcmp(packed, content, bytes) != 0) fail_msg("%s: canonical bytes differ", describe(type));
    free(packed);
    free(content);
    matrix_free(&matrix);
}

static void every_combination_has_canonical_content(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    static const uint32_t shapes[][2] = {{16, 256}, {1, 1}, {8, 20}, {33, 129}, {17, 300}, {48, 512}, {5, 1400}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for_each_type(shapes[i][0], shapes[i][1], canonical_before_packing, &rng);
}

/* The same content in two layouts must have the same canonical bytes. */
static void assert_same_canonical(whit_tensor_type a, whit_codec other)
{
    whit_error error;
    whit_rng rng = {test_seed()};
    whit_tensor_type b = a;
    b.codec = (uint8_t)other;
    test_matrix first, second;
    matrix_random(&first, &a, &rng, false);
    matrix_alloc(&second, &b);
    assert_ok(whit_codec_pack(&b, 0, b.n_rows, &first.rows, second.part, &error), error);
    size_t bytes, other_bytes;
    uint8_t *one = canonical(&first.tensor, &bytes), *two = canonical(&second.tensor, &other_bytes);
    assert_int_equal(bytes, other_bytes);
    assert_memory_equal(one, two, bytes);
    whit_tensor_type canonical_a = whit_codec_canonical_type(&a), canonical_b = whit_codec_canonical_type(&b);
    assert_memory_equal(&canonical_a, &canonical_b, sizeof canonical_a);
    free(one);
    free(two);
    matrix_free(&first);
    matrix_free(&second);
}

static void canonical_forgets_the_layout(void **state)
{
    (void)state;
    for (uint16_t group = 128; group <= 256; group *= 2)
        assert_same_canonical(type_of(WHIT_CODEC_T5, WHIT_SCALE_GROUP, WHIT_SCALE_F16, group, false, 20, 700),
                              WHIT_CODEC_T2);
    assert_same_canonical(type_of(WHIT_CODEC_T5, WHIT_SCALE_TENSOR, 0, 0, false, 20, 1300), WHIT_CODEC_T2);
    assert_same_canonical(type_of(WHIT_CODEC_I8S, WHIT_SCALE_ROW, WHIT_SCALE_F16, 0, false, 20, 130), WHIT_CODEC_I8);
}

/* Canonical bytes written out by hand: five ternary codes with an f16 scale per row. */
static void canonical_bytes_by_hand(void **state)
{
    (void)state;
    whit_error error;
    whit_tensor_type type = type_of(WHIT_CODEC_T2, WHIT_SCALE_ROW, WHIT_SCALE_F16, 0, false, 2, 5);
    int8_t codes[10] = {-1, 0, 1, 1, 0, 0, 0, 0, 0, -1};
    float scales[2] = {1.0f, -0.5f};
    whit_rows rows = {.elems = codes, .fields = scales};
    test_matrix matrix;
    matrix_alloc(&matrix, &type);
    assert_ok(whit_codec_pack(&type, 0, 2, &rows, matrix.part, &error), error);
    static const uint8_t expected[8] = {0xA4, 0x01, 0x00, 0x3C, 0x55, 0x00, 0x00, 0xB8};
    size_t bytes;
    uint8_t *found = canonical(&matrix.tensor, &bytes);
    assert_int_equal(bytes, sizeof expected);
    assert_memory_equal(found, expected, bytes);
    free(found);
    matrix_free(&matrix);
}

/* Streaming rows one by one must give the same canonical bytes as all rows at once. */
static void canonical_rows_stream(const whit_tensor_type *type, void *user)
{
    test_matrix matrix;
    matrix_random(&matrix, type, user, false);
    size_t bytes, row_bytes = whit_codec_canonical_row_bytes(type);
    uint8_t *whole = canonical(&matrix.tensor, &bytes), *row = malloc(row_bytes);
    for (uint32_t i = 0; i < type->n_rows; i++) {
        whit_codec_canonical_rows(&matrix.tensor, i, 1, row);
        if (memcmp(row, whole + i * row_bytes, row_bytes)) fail_msg("row %u of %s", i, describe(type));
    }
    free(row);
    free(whole);
    matrix_free(&matrix);
}

static void canonical_streams(void **state)
{
    (void)state;
    whit_rng rng = {test_seed()};
    for_each_type(18, 270, canonical_rows_stream, &rng);
}

/* ---- half floats ---------------------------------------------------------------------------- */

/* Compares with an exhaustive search for the nearest half, at and around every boundary. */
static void halves_round_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7C00; h++) {
        double low = whit_f32_from_f16((uint16_t)h),
               high = h == 0x7BFF ? 65536.0 : whit_f32_from_f16((uint16_t)(h + 1));
        float middle = (float)((low + high) / 2);
        assert_int_equal(whit_f16_from_f32((float)low), h);
        assert_int_equal(whit_f16_from_f32(middle), h + (h & 1));
        assert_int_equal(whit_f16_from_f32(nextafterf(middle, 0)), h);
        assert_int_equal(whit_f16_from_f32(nextafterf(middle, 1e9f)), h + 1);
        assert_int_equal(whit_f16_from_f32(-middle), (h + (h & 1)) | 0x8000);
    }
    assert_int_equal(whit_f16_from_f32(INFINITY), 0x7C00);
    assert_int_equal(whit_f16_from_f32(1e30f), 0x7C00);
    for (uint32_t h = 0x7C01; h < 0x8000; h++) {
        assert_true(isnan(whit_f32_from_f16((uint16_t)h)));
        assert_int_equal(whit_f16_from_f32(whit_f32_from_f16((uint16_t)h)), h | 0x200);
    }
    for (uint32_t b = 0; b < 0x7F80; b++) {
        float low = whit_f32_from_bf16((uint16_t)b);
        assert_int_equal(whit_bf16_from_f32(low), b);
        float middle = whit_f32_from_bits(b << 16 | 0x8000);
        assert_int_equal(whit_bf16_from_f32(middle), b + (b & 1));
        assert_int_equal(whit_bf16_from_f32(whit_f32_from_bits(b << 16 | 0x8001)), b + 1);
    }
    assert_int_equal(whit_bf16_from_f32(NAN) & 0x7FC0, 0x7FC0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_combination_round_trips),
        cmocka_unit_test(every_combination_has_canonical_content),
        cmocka_unit_test(tiles_pack_alone),
        cmocka_unit_test(any_bytes_have_a_value),
        cmocka_unit_test(lines_are_as_drawn),
        cmocka_unit_test(levels_of_a_group_are_as_drawn),
        cmocka_unit_test(levels_round_to_the_nearest),
        cmocka_unit_test(t5_bytes_beyond_242),
        cmocka_unit_test(sizes_are_as_documented),
        cmocka_unit_test(plain_layout),
        cmocka_unit_test(impossible_types_are_refused),
        cmocka_unit_test(wrong_parts_are_refused),
        cmocka_unit_test(codes_out_of_range_are_refused),
        cmocka_unit_test(canonical_forgets_the_layout),
        cmocka_unit_test(canonical_bytes_by_hand),
        cmocka_unit_test(canonical_streams),
        cmocka_unit_test(halves_round_to_nearest_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
