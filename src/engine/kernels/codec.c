/* SPDX-License-Identifier: MIT
 * Computes sizes, bounds and allowed combinations from a tensor's type. */
#include "kernels/codec.h"

#include "base/half.h"
#include "base/mem.h"
#include "kernels/corrections.h"

#include <math.h>

const whit_codec_info *whit_codec_find(unsigned codec)
{
    return codec < WHIT_CODEC_COUNT ? &whit_codecs[codec] : NULL;
}

bool whit_codec_parse(const char *name, uint8_t *codec)
{
    for (unsigned i = 0; i < WHIT_CODEC_COUNT; i++)
        if (!strcmp(name, whit_codecs[i].name)) {
            *codec = (uint8_t)i;
            return true;
        }
    return false;
}

float whit_level_scale(unsigned u)
{
    return whit_f32_from_f16((uint16_t)(u >> 6 << 5)) * 0x1p-6f;
}

unsigned whit_level_nearest(float high, float low)
{
    enum { INFINITE = 31 << 5, NOT_A_NUMBER = 31 << 5 | 31 };
    if (!(high == high && low == low)) return NOT_A_NUMBER << 6;
    unsigned half = whit_f16_from_f32(high > 0 ? high * (64.0f / WHIT_LEVEL_HIGH) : 0), scale = half >> 5,
             rest = half & 31;
    scale += rest > 16 || (rest == 16 && (scale & 1)); /* rounds ties to even */
    if (scale > INFINITE)
        scale = INFINITE;
    else if (scale < 1)
        scale = 1;
    float level = low > 0 ? low / whit_level_scale(scale << 6) : 0;
    unsigned r = level < WHIT_LEVEL_HIGH ? (unsigned)(level + 0.5f) : WHIT_LEVEL_HIGH;
    return scale << 6 | r;
}

static uint64_t ceil_div(uint64_t n, uint64_t divisor)
{
    return n / divisor + (n % divisor != 0);
}

whit_geometry whit_codec_geometry(const whit_tensor_type *type)
{
    const whit_codec_info *codec = &whit_codecs[type->codec];
    whit_geometry g = {.n_tiles = (uint32_t)ceil_div(type->n_rows, WHIT_TILE_ROWS)};
    g.n_fields = codec->is_float ? 0 : codec->planes + (type->has_offset != 0);
    bool two_bytes =
        type->scale_type == WHIT_SCALE_F16 || type->scale_type == WHIT_SCALE_L6 || type->scale_type == WHIT_SCALE_K16;
    if (type->scale_type == WHIT_SCALE_F32)
        g.field_bytes = 4;
    else if (two_bytes)
        g.field_bytes = 2;
    else
        g.field_bytes = 1;
    g.n_groups = 1;
    g.group_cols = type->n_cols;
    uint64_t n_lines = ceil_div(type->n_cols, codec->line_cols) * codec->lines;
    if (type->scale_kind == WHIT_SCALE_GROUP) {
        uint32_t field_bytes = g.n_fields * g.field_bytes;
        g.group_cols = type->group;
        g.n_groups = (uint32_t)ceil_div(type->n_cols, type->group);
        if (type->codec == WHIT_CODEC_T5) { /* superblocks of 256 columns: 12 lines of t5 and one of t2, then scales */
            uint32_t rest = type->n_cols % 256;
            g.block_groups = 2;
            g.block_lines = (uint32_t)ceil_div(2 * field_bytes, 4);
            n_lines = (uint64_t)(type->n_cols / 256) * (13 + g.block_lines);
            if (rest) n_lines += (rest <= 128 ? 7 : 13) + g.block_lines;
        } else if (whit_scale_in_superblocks(type->scale_type)) {
            /* a line of factors, then lines of bytes or nibbles, then lines of high index bits of a codebook */
            g.block_groups = WHIT_SUPER_COLS / type->group;
            uint32_t nibbles = type->scale_type == WHIT_SCALE_ODD4 ? 1 : 2 * g.field_bytes;
            g.block_lines = 1 + (uint32_t)ceil_div(g.block_groups * nibbles, 8);
            g.block_lines += codec->high_bits;
            n_lines += ceil_div(g.n_groups, g.block_groups) * g.block_lines;
        } else {
            g.block_groups = field_bytes >= 4 ? 1 : 4 / field_bytes;
            g.block_lines = (uint32_t)ceil_div(g.block_groups * field_bytes, 4);
            n_lines += ceil_div(g.n_groups, g.block_groups) * g.block_lines;
        }
    }
    g.tile_bytes = n_lines * WHIT_LINE_BYTES;
    g.row_fields = g.n_groups * g.n_fields;
    if (whit_scale_in_bytes(type->scale_type)) {
        bool super = whit_scale_in_superblocks(type->scale_type);
        g.row_bytes = type->scale_type == WHIT_SCALE_U8 ? g.row_fields : g.n_groups * g.field_bytes;
        g.row_fields = super ? (uint32_t)ceil_div(type->n_cols, WHIT_SUPER_COLS) * g.n_fields : g.n_fields;
    }
    if (!g.row_fields) g.row_fields = 1;
    return g;
}

/* Returns the size of one row of low nibbles of i8s: four bytes for eight columns, rounded up to whole cache lines. */
static uint64_t low_row_bytes(const whit_tensor_type *type)
{
    return ceil_div(type->n_cols, 128) * 64;
}

bool whit_codec_part_bytes(const whit_tensor_type *type, whit_part part, uint64_t *bytes)
{
    whit_geometry g = whit_codec_geometry(type);
    uint64_t n = 0;
    bool fits = true;
    if (part == WHIT_PART_CODES && type->layout == WHIT_LAYOUT_PLAIN) {
        fits = !__builtin_mul_overflow((uint64_t)type->n_rows * type->n_cols,
                                       (uint64_t)whit_codecs[type->codec].elem_bytes, &n);
    } else if (part == WHIT_PART_CODES) {
        fits = !__builtin_mul_overflow((uint64_t)g.n_tiles, g.tile_bytes, &n);
    } else if (part == WHIT_PART_ROW_SCALES &&
               (type->scale_kind == WHIT_SCALE_ROW ||
                (type->scale_kind == WHIT_SCALE_GROUP && type->scale_type == WHIT_SCALE_U8))) {
        uint64_t elem_bytes = type->scale_type == WHIT_SCALE_F32 ? 4 : 2;
        n = (uint64_t)g.n_tiles * WHIT_TILE_ROWS * g.n_fields * elem_bytes;
    } else if (part == WHIT_PART_LOW && type->codec == WHIT_CODEC_I8S) {
        n = (uint64_t)g.n_tiles * WHIT_TILE_ROWS * low_row_bytes(type);
    }
    if (fits) *bytes = n;
    return fits;
}

whit_tensor whit_codec_tiles(const whit_tensor *tensor, uint32_t tile_begin, uint32_t tile_end)
{
    whit_tensor tiles = {.type = tensor->type};
    whit_tensor_type before = tensor->type;
    const uint64_t end = (uint64_t)tile_end * WHIT_TILE_ROWS;
    before.n_rows = tile_begin * WHIT_TILE_ROWS;
    tiles.type.n_rows = (end < tensor->type.n_rows ? (uint32_t)end : tensor->type.n_rows) - before.n_rows;
    for (int part = WHIT_PART_CODES; part <= WHIT_PART_LOW; part++) {
        uint64_t offset = 0, size_bytes = 0;
        if (!tensor->part[part] || !whit_codec_part_bytes(&before, (whit_part)part, &offset) ||
            !whit_codec_part_bytes(&tiles.type, (whit_part)part, &size_bytes))
            continue;
        tiles.part[part] = tensor->part[part] + offset;
        tiles.part_bytes[part] = size_bytes;
    }
    return tiles;
}

bool whit_codec_total_bytes(const whit_tensor_type *type, uint64_t *bytes)
{
    uint64_t total = 0, part_bytes;
    for (int part = 0; part < WHIT_PART_COUNT; part++)
        if (!whit_codec_part_bytes(type, (whit_part)part, &part_bytes) ||
            __builtin_add_overflow(total, part_bytes, &total))
            return false;
    *bytes = total;
    return true;
}

/* Returns the reason why a tensor cannot have fixed scales of inputs and outputs; NULL if it can. These scales are
 * stored in `scale` and `scale_b`, so the weights must have a scale per row instead of one per tensor. */
static const char *fixed_fault(const whit_tensor_type *type)
{
    const float scales[2] = {type->scale, type->scale_b};
    const bool is_plain = type->codec == WHIT_CODEC_I8 || type->codec == WHIT_CODEC_I4 || type->codec == WHIT_CODEC_T2;
    if (!is_plain || type->scale_kind != WHIT_SCALE_ROW || type->has_offset)
        return "fixed scales of activations need i8, i4 or t2 with a scale per row and no offset";
    for (int i = 0; i < 2; i++)
        if (!(scales[i] >= 0) || whit_f32_bits(scales[i]) >= whit_f32_bits(INFINITY))
            return "its fixed scale of activations is not a positive number";
    return scales[0] > 0 || scales[1] > 0 ? NULL : "its fixed scale of activations is missing";
}

static const char *scales_fault(const whit_tensor_type *type, const whit_codec_info *codec)
{
    if (codec->is_float) {
        if (type->scale_kind != WHIT_SCALE_NONE) return "a float codec has no scales";
        if (type->act != WHIT_TENSOR_ACT_AUTO) return "a float codec takes float activations";
    } else if (type->scale_kind == WHIT_SCALE_NONE || type->scale_kind > WHIT_SCALE_GROUP) {
        return "its kind of scales is not known for integer codes";
    }
    if (type->scale_type >= WHIT_SCALE_TYPE_COUNT) return "its type of scales is not known";
    if (!(codec->scale_types >> type->scale_type & 1)) return "its codec does not have its type of scales";
    if (type->has_offset > 1) return "the offset flag is neither 0 nor 1";
    if (type->has_offset && (codec->is_float || type->codec == WHIT_CODEC_I8S)) return "its codec has no offset";

    bool per_tensor = type->scale_kind == WHIT_SCALE_TENSOR, is_fixed = type->act == WHIT_TENSOR_ACT_FIXED;
    if (is_fixed && fixed_fault(type)) return fixed_fault(type);
    if ((codec->is_float || per_tensor) && type->scale_type != WHIT_SCALE_F32)
        return "it has a type of scales, but no stored scales";
    if (whit_scale_in_bytes(type->scale_type) && type->scale_kind != WHIT_SCALE_GROUP)
        return "scales of bytes need groups";
    if (type->scale_type > WHIT_SCALE_U8 && type->has_offset != whit_scale_has_minima(type->scale_type))
        return "its offset does not fit its type of scales";
    if (whit_scale_in_superblocks(type->scale_type) && type->n_cols % WHIT_SUPER_COLS)
        return "its columns are not a multiple of 256";
    if (type->scale_kind == WHIT_SCALE_GROUP) {
        bool power = (type->group & (type->group - 1)) == 0;
        bool few = whit_scale_in_superblocks(type->scale_type) && type->group > 32;
        if (!codec->group_min || !power || type->group < codec->group_min || type->group > 256 || few)
            return "its group size does not exist for its codec";
    } else if (type->group) {
        return "it has a group size, but no scales per group";
    }
    if (type->scale_type == WHIT_SCALE_E4 ? type->scale == 0 : !per_tensor && !is_fixed && whit_f32_bits(type->scale))
        return "its tensor scale does not fit its other scales";
    if (whit_f32_bits(type->scale_b) && !is_fixed && !(per_tensor && type->codec == WHIT_CODEC_Q2))
        return "it has a second scale, which nothing uses";
    if (whit_f32_bits(type->offset) && !(per_tensor && type->has_offset)) return "it has an offset, which nothing uses";
    return NULL;
}

whit_status whit_tensor_type_check(const whit_tensor_type *type, whit_error *error)
{
    const whit_codec_info *codec = whit_codec_find(type->codec);
    if (!codec) return whit_fail(error, WHIT_ERROR_FORMAT, "codec %u is not known", type->codec);
    if (type->layout >= WHIT_LAYOUT_COUNT)
        return whit_fail(error, WHIT_ERROR_FORMAT, "layout %u is not known", type->layout);
    if (type->act > WHIT_TENSOR_ACT_FIXED)
        return whit_fail(error, WHIT_ERROR_FORMAT, "activation rule %u is not known", type->act);
    const char *fault = scales_fault(type, codec);
    if (!fault && type->layout == WHIT_LAYOUT_PLAIN && !codec->is_float)
        fault = "the plain layout is for float elements only";
    if (!fault && type->reserved) fault = "a reserved field is not zero";
    if (!fault && (!type->n_rows || !type->n_cols)) fault = "it has no rows or no columns";
    if (!fault && type->layout == WHIT_LAYOUT_TILE16 && type->n_cols > WHIT_MAX_COLS)
        fault = "it has more than 65536 columns";
    if (!fault && (type->n_rows > INT32_MAX || type->n_cols > INT32_MAX))
        fault = "it has too many rows or columns (at most 2^31 - 1)";
    uint64_t bytes;
    if (!fault && !whit_codec_total_bytes(type, &bytes)) fault = "its size exceeds 2^64 bytes";
    if (fault)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s tensor of %u x %u: %s", codec->name, type->n_rows, type->n_cols,
                         fault);
    return WHIT_OK;
}

whit_status whit_tensor_check(const whit_tensor *tensor, whit_error *error)
{
    WHIT_TRY(whit_tensor_type_check(&tensor->type, error));
    for (int part = 0; part < WHIT_PART_COUNT; part++) {
        uint64_t expected = 0, found = tensor->part[part] ? tensor->part_bytes[part] : 0;
        whit_codec_part_bytes(&tensor->type, (whit_part)part, &expected);
        if (part >= WHIT_PART_PLANE && part <= WHIT_PART_FACTOR_B)
            expected = found; /* the headers of these parts state their lengths */
        if (found != expected)
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s tensor of %u x %u: part %d has %llu bytes and needs %llu",
                             whit_codecs[tensor->type.codec].name, tensor->type.n_rows, tensor->type.n_cols, part,
                             (unsigned long long)found, (unsigned long long)expected);
        if ((uintptr_t)tensor->part[part] % WHIT_ALIGN_BYTES)
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "%s tensor of %u x %u: part %d must be aligned to 64 bytes in memory",
                             whit_codecs[tensor->type.codec].name, tensor->type.n_rows, tensor->type.n_cols, part);
    }
    const char *fault = whit_corrections_fault(tensor);
    if (fault)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s tensor of %u x %u: %s", whit_codecs[tensor->type.codec].name,
                         tensor->type.n_rows, tensor->type.n_cols, fault);
    return WHIT_OK;
}

whit_tensor_type whit_codec_canonical_type(const whit_tensor_type *type)
{
    whit_tensor_type canonical = *type;
    canonical.layout = WHIT_LAYOUT_PLAIN;
    if (type->codec == WHIT_CODEC_T5) canonical.codec = WHIT_CODEC_T2;
    if (type->codec == WHIT_CODEC_I8S) canonical.codec = WHIT_CODEC_I8;
    return canonical;
}

size_t whit_codec_canonical_row_bytes(const whit_tensor_type *type)
{
    whit_geometry g = whit_codec_geometry(type);
    size_t bytes = (size_t)ceil_div((uint64_t)type->n_cols * whit_codecs[type->codec].canonical_bits, 8);
    if (whit_scale_in_bytes(type->scale_type))
        return bytes + g.row_bytes + (whit_scale_has_factors(type->scale_type) ? (size_t)g.row_fields * 2 : 0);
    if (type->scale_kind >= WHIT_SCALE_ROW) bytes += (size_t)g.n_groups * g.n_fields * g.field_bytes;
    return bytes;
}
