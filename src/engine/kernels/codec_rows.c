/* SPDX-License-Identifier: MIT
 * Unpacks tiles and rows, looks up rows, and computes canonical bytes, for every codec by way of its lines. The code is
 * meant to be readable rather than fast; the matrix kernels read parts with code of their own. */
#include "kernels/codec_lines.h"
#include "kernels/codec_places.h"

#include "base/fp8.h"
#include "base/mem.h"
#include "kernels/corrections.h"

#include <math.h>

#define ROWS  WHIT_TILE_ROWS
#define CHUNK WHIT_CHUNK_COLS

/* ---- reading tiles -------------------------------------------------------------------------- */

static const uint8_t *tile_start(const whit_tensor *tensor, const whit_geometry *g, uint32_t tile)
{
    return tensor->part[WHIT_PART_CODES] + tile * g->tile_bytes;
}

static void superblock_codes(const whit_tensor *tensor, const whit_geometry *g, uint32_t tile, uint32_t k_begin,
                             uint32_t n, int8_t *codes)
{
    const uint8_t *start = tile_start(tensor, g, tile);
    for (uint32_t k = 0; k < n; k += 128, codes += 128 * ROWS) {
        uint64_t lines, rest;
        uint32_t half = (k_begin + k) / 128;
        whit_superblock_offsets(&tensor->type, g, half, &lines, &rest);
        for (unsigned i = 0; i < 6; i++)
            whit_line_unpack(WHIT_CODEC_T5, start + lines + i * WHIT_LINE_BYTES, codes + 20 * ROWS * i);
        int8_t both_halves[16 * ROWS];
        whit_line_unpack(WHIT_CODEC_T2, start + rest, both_halves);
        memcpy(codes + 120 * ROWS, both_halves + 8 * ROWS * (half & 1), 8 * ROWS);
    }
}

/* Unpacks a codec with a codebook, row by row. */
static void grid_codes(const whit_tensor *tensor, const whit_geometry *g, uint32_t tile, uint32_t k_begin, uint32_t n,
                       int8_t *codes)
{
    const whit_tensor_type *type = &tensor->type;
    const uint8_t *start = tile_start(tensor, g, tile);
    for (uint32_t k = 0; k < n; k += 32)
        for (uint32_t r = 0; r < ROWS; r++) {
            int8_t row[32];
            whit_grid_unpack((whit_codec)type->codec, start + whit_line_offset(type, g, k_begin + k) + 4 * r,
                             start + whit_grid_offset(type, g, k_begin + k, r), (k_begin + k) % WHIT_SUPER_COLS / 32,
                             row);
            for (uint32_t j = 0; j < 32; j++) codes[(k + j) * ROWS + r] = row[j];
        }
}

void whit_tile_codes(const whit_tensor *tensor, uint32_t tile, uint32_t k_begin, uint32_t n, int8_t *codes)
{
    const whit_tensor_type *type = &tensor->type;
    whit_geometry g = whit_codec_geometry(type);
    if (whit_has_superblocks(type)) {
        superblock_codes(tensor, &g, tile, k_begin, n, codes);
        return;
    }
    if (whit_codec_find(type->codec)->grid) {
        grid_codes(tensor, &g, tile, k_begin, n, codes);
        return;
    }
    const uint8_t *start = tile_start(tensor, &g, tile);
    uint32_t line_cols = whit_codec_find(type->codec)->line_cols;
    for (uint32_t k = 0; k < n; k += line_cols) {
        int8_t *line = codes + k * ROWS;
        whit_line_unpack((whit_codec)type->codec, start + whit_line_offset(type, &g, k_begin + k), line);
        if (type->codec != WHIT_CODEC_I8S) continue;
        for (unsigned r = 0; r < ROWS; r++) {
            const uint8_t *low =
                tensor->part[WHIT_PART_LOW] + whit_low_offset(type, tile * ROWS + r, (k_begin + k) / 8);
            for (unsigned c = 0; c < 8; c++) {
                int nibble = low[c % 4] >> (c / 4 * 4) & 15;
                line[c * ROWS + r] = (int8_t)(16 * line[c * ROWS + r] + nibble - 128);
            }
        }
    }
}

static float float_from(whit_codec codec, const uint8_t *elem)
{
    if (codec == WHIT_CODEC_F32) return whit_load_f32(elem);
    uint16_t half = whit_load_u16(elem);
    return codec == WHIT_CODEC_F16 ? whit_f32_from_f16(half) : whit_f32_from_bf16(half);
}

void whit_tile_floats(const whit_tensor *tensor, uint32_t tile, uint32_t k_begin, uint32_t n, float *values)
{
    whit_geometry g = whit_codec_geometry(&tensor->type);
    whit_codec codec = (whit_codec)tensor->type.codec;
    uint32_t elem_bytes = whit_codec_find(codec)->elem_bytes;
    const uint8_t *elem = tile_start(tensor, &g, tile) + (uint64_t)k_begin * ROWS * elem_bytes;
    for (uint32_t i = 0; i < n * ROWS; i++, elem += elem_bytes) values[i] = float_from(codec, elem);
}

/* ---- scales in bytes ------------------------------------------------------------------------ */

/* Returns the byte or nibble of a row's group; for L6 and K16, its two bytes. */
static unsigned group_byte(const whit_tensor_type *type, const whit_geometry *g, const uint8_t *tile, uint32_t group,
                           uint32_t row)
{
    if (!whit_scale_in_superblocks(type->scale_type)) {
        const uint8_t *field = tile + whit_field_offset(type, g, group, 0, row);
        return type->scale_type == WHIT_SCALE_L6 ? whit_load_u16(field) : *field;
    }
    const uint8_t *bytes = tile + whit_super_offset(type, g, group * type->group, row) + WHIT_LINE_BYTES;
    uint32_t place = group % g->block_groups;
    if (type->scale_type == WHIT_SCALE_ODD4)
        return bytes[place / 8 * WHIT_LINE_BYTES + place % 8 / 2] >> 4 * (place & 1) & 15u;
    if (type->scale_type == WHIT_SCALE_K16) return whit_load_u16(bytes + place / 2 * WHIT_LINE_BYTES + place % 2 * 2);
    return bytes[place / 4 * WHIT_LINE_BYTES + place % 4];
}

/* Returns the value of field f (0: scale, 1: offset, for L6 the low level) that a group's byte (for L6 and K16, its two
 * bytes) encodes. `factors` are d and, for K4 and K16, e. */
static float byte_field(const whit_tensor_type *type, unsigned byte, const float factors[2], uint32_t f)
{
    switch (type->scale_type) {
    case WHIT_SCALE_K4: return f ? -(factors[1] * (float)(byte >> 4)) : factors[0] * (float)(byte & 15);
    case WHIT_SCALE_K16: return f ? -(factors[1] * (float)(byte >> 8)) : factors[0] * (float)(byte & 255);
    case WHIT_SCALE_K8: return factors[0] * (float)((int)byte - 128);
    case WHIT_SCALE_ODD4: return factors[0] * (float)(2 * byte + 1) * 0.125f;
    case WHIT_SCALE_E8: return whit_f32_from_e8m0((uint8_t)byte) * 0.5f;
    case WHIT_SCALE_L6: return f ? (float)whit_level_low(byte) : whit_level_scale(byte);
    default: return whit_f32_from_ue4m3((uint8_t)byte) * 0.5f * type->scale;
    }
}

/* Reads a row's f16 factors of the superblock with column k. */
static void super_factors(const whit_tensor_type *type, const whit_geometry *g, const uint8_t *tile, uint32_t k,
                          uint32_t row, float factors[2])
{
    const uint8_t *halves = tile + whit_super_offset(type, g, k, row);
    factors[0] = whit_f32_from_f16(whit_load_u16(halves));
    factors[1] = whit_f32_from_f16(whit_load_u16(halves + 2));
}

static float field_from(unsigned scale_type, const uint8_t *field)
{
    if (scale_type == WHIT_SCALE_F32) return whit_load_f32(field);
    if (scale_type == WHIT_SCALE_F16) return whit_f32_from_f16(whit_load_u16(field));
    return *field;
}

/* Returns the f16 factor of a row's field, for scales of type WHIT_SCALE_U8. */
static float row_factor(const whit_tensor *tensor, const whit_geometry *g, uint32_t row, uint32_t field)
{
    const uint8_t *halves = tensor->part[WHIT_PART_ROW_SCALES];
    return whit_f32_from_f16(whit_load_u16(halves + 2 * whit_row_field_index(g, row, field)));
}

static float tensor_field(const whit_tensor_type *type, uint32_t field)
{
    if (field == 0) return type->scale;
    return field == 1 && type->codec == WHIT_CODEC_Q2 ? type->scale_b : type->offset;
}

/* Returns the value of a field of a row's group; scales of type WHIT_SCALE_U8 are not multiplied by their factor. */
static float stored_field(const whit_tensor *tensor, const whit_geometry *g, uint32_t row, uint32_t group,
                          uint32_t field)
{
    const whit_tensor_type *type = &tensor->type;
    if (type->scale_kind == WHIT_SCALE_TENSOR) return tensor_field(type, field);
    if (type->scale_kind == WHIT_SCALE_ROW)
        return field_from(type->scale_type,
                          tensor->part[WHIT_PART_ROW_SCALES] + g->field_bytes * whit_row_field_index(g, row, field));
    const uint8_t *tile = tile_start(tensor, g, row / ROWS);
    if (type->scale_type <= WHIT_SCALE_U8)
        return field_from(type->scale_type, tile + whit_field_offset(type, g, group, field, row % ROWS));
    float factors[2] = {0};
    if (whit_scale_in_superblocks(type->scale_type))
        super_factors(type, g, tile, group * type->group, row % ROWS, factors);
    return byte_field(type, group_byte(type, g, tile, group, row % ROWS), factors, field);
}

void whit_tile_fields(const whit_tensor *tensor, uint32_t tile, uint32_t group,
                      float fields[WHIT_MAX_FIELDS][WHIT_TILE_ROWS])
{
    whit_geometry g = whit_codec_geometry(&tensor->type);
    for (uint32_t f = 0; f < g.n_fields; f++)
        for (uint32_t r = 0; r < ROWS; r++) {
            uint32_t row = tile * ROWS + r;
            fields[f][r] = stored_field(tensor, &g, row, group, f);
            if (tensor->type.scale_type == WHIT_SCALE_U8) fields[f][r] *= row_factor(tensor, &g, row, f);
        }
}

void whit_tile_numbers(const whit_tensor *tensor, uint32_t tile, uint32_t group, int32_t numbers[2][WHIT_TILE_ROWS])
{
    const whit_tensor_type *type = &tensor->type;
    whit_geometry g = whit_codec_geometry(type);
    for (uint32_t r = 0; r < ROWS; r++) {
        int byte = (int)group_byte(type, &g, tile_start(tensor, &g, tile), group, r);
        switch (type->scale_type) {
        case WHIT_SCALE_K4: numbers[0][r] = byte & 15; break;
        case WHIT_SCALE_K8: numbers[0][r] = byte - 128; break;
        case WHIT_SCALE_K16: numbers[0][r] = byte & 255; break;
        default: numbers[0][r] = 2 * byte + 1; break;
        }
        if (type->scale_type == WHIT_SCALE_K4)
            numbers[1][r] = byte >> 4;
        else if (type->scale_type == WHIT_SCALE_K16)
            numbers[1][r] = byte >> 8;
        else
            numbers[1][r] = 0;
    }
}

void whit_tile_factors(const whit_tensor *tensor, uint32_t tile, uint32_t k, float factors[2][WHIT_TILE_ROWS])
{
    const whit_tensor_type *type = &tensor->type;
    whit_geometry g = whit_codec_geometry(type);
    for (uint32_t r = 0; r < ROWS; r++) {
        float both[2];
        super_factors(type, &g, tile_start(tensor, &g, tile), k, r, both);
        factors[0][r] = whit_super_factor(type->scale_type, both[0]);
        factors[1][r] = both[1];
    }
}

void whit_tile_integers(const whit_tensor *tensor, uint32_t tile, uint32_t k_begin, uint32_t n, int8_t *integers)
{
    const whit_tensor_type *type = &tensor->type;
    whit_tile_codes(tensor, tile, k_begin, n, integers);
    if (!whit_codec_find(type->codec)->group_levels) return;
    whit_geometry g = whit_codec_geometry(type);
    const uint8_t *start = tile_start(tensor, &g, tile);
    for (uint32_t k = 0; k < n; k += type->group)
        for (uint32_t r = 0; r < ROWS; r++) {
            unsigned u = group_byte(type, &g, start, (k_begin + k) / type->group, r);
            for (uint32_t j = k; j < whit_min_u32(k + type->group, n); j++)
                integers[j * ROWS + r] = (int8_t)whit_group_level(u, integers[j * ROWS + r]);
        }
}

/* ---- unpack --------------------------------------------------------------------------------- */

/* Unpacks rows of codes or elements tile by tile, so that each line is unpacked once. */
static void unpack_elems(const whit_tensor *tensor, uint32_t row_begin, uint32_t n, uint8_t *elems)
{
    const whit_tensor_type *type = &tensor->type;
    const whit_codec_info *codec = whit_codec_find(type->codec);
    whit_geometry g = whit_codec_geometry(type);
    if (codec->is_float) {
        uint32_t elem_bytes = codec->elem_bytes;
        bool plain = type->layout == WHIT_LAYOUT_PLAIN;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t row = row_begin + i;
            uint8_t *to = elems + (size_t)i * type->n_cols * elem_bytes;
            const uint8_t *from = plain ? tensor->part[WHIT_PART_CODES] + (size_t)row * type->n_cols * elem_bytes
                                        : tile_start(tensor, &g, row / ROWS) + row % ROWS * elem_bytes;
            size_t step = (plain ? 1 : ROWS) * elem_bytes;
            for (uint32_t k = 0; k < type->n_cols; k++)
                memcpy(to + (size_t)k * elem_bytes, from + k * step, elem_bytes);
        }
        return;
    }
    for (uint32_t row = row_begin; row < row_begin + n;) {
        uint32_t r = row % ROWS, n_rows = whit_min_u32(ROWS - r, row_begin + n - row);
        for (uint32_t k = 0; k < type->n_cols; k += CHUNK) {
            int8_t codes[CHUNK * ROWS];
            uint32_t n_cols = whit_min_u32(CHUNK, type->n_cols - k);
            whit_tile_codes(tensor, row / ROWS, k, n_cols, codes);
            for (uint32_t i = 0; i < n_rows; i++) {
                uint8_t *to = elems + (size_t)(row - row_begin + i) * type->n_cols + k;
                for (uint32_t j = 0; j < n_cols; j++) to[j] = (uint8_t)codes[j * ROWS + r + i];
            }
        }
        row += n_rows;
    }
}

/* Copies the scale bytes of one row's groups to `out`; returns the end of the copy. */
static uint8_t *copy_group_bytes(const whit_tensor_type *type, const whit_geometry *g, const uint8_t *tile,
                                 uint32_t row, uint8_t *out)
{
    for (uint32_t group = 0; group < g->n_groups; group++) {
        unsigned bits = group_byte(type, g, tile, group, row);
        *out++ = (uint8_t)bits;
        if (g->field_bytes == 2) *out++ = (uint8_t)(bits >> 8);
    }
    return out;
}

/* Unpacks the scale bytes of one row and, for scales in superblocks, their factors. */
static void unpack_byte_scales(const whit_tensor *tensor, const whit_geometry *g, uint32_t row, uint8_t *bytes,
                               float *fields)
{
    const whit_tensor_type *type = &tensor->type;
    const uint8_t *tile = tile_start(tensor, g, row / ROWS);
    copy_group_bytes(type, g, tile, row % ROWS, bytes);
    for (uint32_t k = 0; whit_scale_in_superblocks(type->scale_type) && k < type->n_cols; k += WHIT_SUPER_COLS) {
        float factors[2];
        super_factors(type, g, tile, k, row % ROWS, factors);
        for (uint32_t f = 0; f < g->n_fields; f++) *fields++ = factors[f];
    }
}

void whit_codec_unpack(const whit_tensor *tensor, uint32_t row_begin, uint32_t n, const whit_rows *rows)
{
    const whit_tensor_type *type = &tensor->type;
    whit_geometry g = whit_codec_geometry(type);
    unpack_elems(tensor, row_begin, n, rows->elems);
    if (type->scale_kind < WHIT_SCALE_ROW) return;
    bool is_u8 = type->scale_type == WHIT_SCALE_U8;
    for (uint32_t i = 0; type->scale_type > WHIT_SCALE_U8 && i < n; i++)
        unpack_byte_scales(tensor, &g, row_begin + i, rows->fields_u8 + (size_t)i * g.row_bytes,
                           rows->fields + (size_t)i * g.row_fields);
    for (uint32_t i = 0; type->scale_type <= WHIT_SCALE_U8 && i < n; i++) {
        uint32_t row = row_begin + i;
        size_t index = (size_t)i * g.n_groups * g.n_fields;
        for (uint32_t group = 0; group < g.n_groups; group++)
            for (uint32_t f = 0; f < g.n_fields; f++, index++) {
                float stored = stored_field(tensor, &g, row, group, f);
                if (is_u8)
                    rows->fields_u8[index] = (uint8_t)stored;
                else
                    rows->fields[index] = stored;
            }
        for (uint32_t f = 0; is_u8 && f < g.n_fields; f++)
            rows->fields[(size_t)i * g.n_fields + f] = row_factor(tensor, &g, row, f);
    }
}

/* Returns the number of a group's values that values_of needs: its fields, and for L6 also the low level. */
static uint32_t n_value_fields(const whit_tensor_type *type, const whit_geometry *g)
{
    return g->n_fields + (type->scale_type == WHIT_SCALE_L6);
}

/* Computes the values of n codes of one group. */
static void values_of(const whit_tensor_type *type, const int8_t *codes, uint32_t n,
                      const float fields[WHIT_MAX_FIELDS], float *out)
{
    if (type->codec == WHIT_CODEC_Q2) {
        for (uint32_t i = 0; i < n; i++) {
            float a = codes[i] & 1 ? fields[0] : -fields[0];
            float b = codes[i] & 2 ? fields[1] : -fields[1];
            out[i] = type->has_offset ? (a + b) + fields[2] : a + b;
        }
    } else if (type->scale_type == WHIT_SCALE_L6) {
        for (uint32_t i = 0; i < n; i++) out[i] = (float)whit_group_level((unsigned)fields[1], codes[i]) * fields[0];
    } else if (type->has_offset) {
        for (uint32_t i = 0; i < n; i++) out[i] = fmaf((float)codes[i], fields[0], fields[1]);
    } else {
        for (uint32_t i = 0; i < n; i++) out[i] = (float)codes[i] * fields[0];
    }
}

/* Returns field f of a group from content whose scales are bytes, except WHIT_SCALE_U8. */
static float content_field(const whit_tensor_type *type, const whit_geometry *g, const whit_rows *row, uint32_t group,
                           uint32_t f)
{
    float factors[2] = {0};
    const float *from = row->fields + group / (g->block_groups ? g->block_groups : 1) * g->n_fields;
    for (uint32_t i = 0; whit_scale_in_superblocks(type->scale_type) && i < g->n_fields; i++) factors[i] = from[i];
    const uint8_t *bytes = row->fields_u8 + (size_t)group * g->field_bytes;
    return byte_field(type, g->field_bytes == 2 ? whit_load_u16(bytes) : *bytes, factors, f);
}

void whit_codec_content_values(const whit_tensor_type *type, const whit_rows *row, float *out)
{
    const int8_t *codes = row->elems;
    whit_geometry g = whit_codec_geometry(type);
    for (uint32_t group = 0, begin = 0; begin < type->n_cols; group++, begin += g.group_cols) {
        uint32_t rest = type->n_cols - begin;
        size_t at = (size_t)group * g.n_fields;
        float fields[WHIT_MAX_FIELDS];
        for (uint32_t f = 0; f < n_value_fields(type, &g); f++)
            if (type->scale_kind == WHIT_SCALE_TENSOR)
                fields[f] = tensor_field(type, f);
            else if (type->scale_type == WHIT_SCALE_U8)
                fields[f] = (float)row->fields_u8[at + f] * row->fields[f];
            else if (type->scale_type > WHIT_SCALE_U8)
                fields[f] = content_field(type, &g, row, group, f);
            else
                fields[f] = row->fields[at + f];
        values_of(type, codes + begin, rest < g.group_cols ? rest : g.group_cols, fields, out + begin);
    }
}

/* Joins the nibbles of eight codes of i8s: code = 16 high + low - 128. Codes 0 to 3 are in the low nibbles of the bytes
 * of `high` and `low`, codes 4 to 7 in the high nibbles. */
static void join_nibbles(uint32_t high, uint32_t low, int8_t codes[8])
{
    const uint32_t mask = 0x0F0F0F0F, sign = 0x80808080;
    uint32_t first = ((high & mask) << 4 | (low & mask)) ^ sign;
    uint32_t second = ((high & ~mask) | (low >> 4 & mask)) ^ sign;
    memcpy(codes, &first, 4);
    memcpy(codes + 4, &second, 4);
}

/* Unpacks columns [k_begin, k_begin + n) of one row, in whole lines as whit_tile_codes does. Reading a row this way
 * touches one dword of each line instead of unpacking sixteen rows. */
static void row_codes(const whit_tensor *tensor, const whit_geometry *g, uint32_t row, uint32_t k_begin, uint32_t n,
                      int8_t *codes)
{
    const whit_tensor_type *type = &tensor->type;
    whit_codec codec = (whit_codec)type->codec;
    const uint8_t *start = tile_start(tensor, g, row / ROWS) + 4 * (row % ROWS);
    if (whit_has_superblocks(type)) {
        for (uint32_t k = 0; k < n; k += 128, codes += 128) {
            uint64_t lines, rest;
            uint32_t half = (k_begin + k) / 128;
            int8_t both_halves[16];
            whit_superblock_offsets(type, g, half, &lines, &rest);
            for (unsigned i = 0; i < 6; i++)
                whit_dword_unpack(codec, start + lines + i * WHIT_LINE_BYTES, codes + 20 * i);
            whit_dword_unpack(WHIT_CODEC_T2, start + rest, both_halves);
            memcpy(codes + 120, both_halves + 8 * (half & 1), 8);
        }
        return;
    }
    if (codec == WHIT_CODEC_I8S) {
        const uint8_t *low = tensor->part[WHIT_PART_LOW] + whit_low_offset(type, row, k_begin / 8);
        const uint8_t *high = start + whit_line_offset(type, g, k_begin);
        for (uint32_t k = 0; k < n; k += 8, high += WHIT_LINE_BYTES, low += 4)
            join_nibbles(whit_load_u32(high), whit_load_u32(low), codes + k);
        return;
    }
    uint32_t line_cols = whit_codec_find(codec)->line_cols;
    for (uint32_t k = 0; k < n; k += line_cols, codes += line_cols) {
        const uint8_t *dword = start + whit_line_offset(type, g, k_begin + k);
        if (whit_codecs[codec].top_bits) {
            whit_dwords_unpack(codec, dword, codes);
            continue;
        }
        if (whit_codecs[codec].grid) {
            const uint8_t *high =
                tile_start(tensor, g, row / ROWS) + whit_grid_offset(type, g, k_begin + k, row % ROWS);
            whit_grid_unpack(codec, dword, high, (k_begin + k) % WHIT_SUPER_COLS / 32, codes);
            continue;
        }
        whit_dword_unpack(codec, dword, codes);
        if (codec == WHIT_CODEC_B1) {
            for (unsigned i = 0; i < 32; i++) codes[i] = (int8_t)(2 * codes[i] - 1);
        } else if (codec == WHIT_CODEC_Q2) {
            int8_t extras[32];
            whit_dword_unpack(codec, dword + WHIT_LINE_BYTES, extras);
            for (unsigned i = 0; i < 32; i++) codes[i] = (int8_t)(codes[i] | extras[i] << 1);
        }
    }
}

static void get_row(const whit_tensor *tensor, const whit_geometry *g, uint32_t row, float *out)
{
    const whit_tensor_type *type = &tensor->type;
    whit_codec codec = (whit_codec)type->codec;
    const whit_codec_info *info = whit_codec_find(codec);
    if (info->is_float) {
        bool plain = type->layout == WHIT_LAYOUT_PLAIN;
        size_t step = (plain ? 1 : ROWS) * info->elem_bytes;
        const uint8_t *from = plain ? tensor->part[WHIT_PART_CODES] + (size_t)row * type->n_cols * info->elem_bytes
                                    : tile_start(tensor, g, row / ROWS) + row % ROWS * info->elem_bytes;
        for (uint32_t k = 0; k < type->n_cols; k++) out[k] = float_from(codec, from + k * step);
        return;
    }
    int8_t codes[CHUNK];
    float fields[WHIT_MAX_FIELDS];
    for (uint32_t k = 0, n; k < type->n_cols; k += n) { /* n: columns up to the end of the chunk or of the group */
        uint32_t in_chunk = k % CHUNK, in_group = k % g->group_cols;
        n = whit_min_u32(type->n_cols - k, whit_min_u32(CHUNK - in_chunk, g->group_cols - in_group));
        if (in_chunk == 0) row_codes(tensor, g, row, k, whit_min_u32(CHUNK, type->n_cols - k), codes);
        for (uint32_t f = 0; in_group == 0 && f < n_value_fields(type, g); f++) {
            fields[f] = stored_field(tensor, g, row, k / g->group_cols, f);
            if (type->scale_type == WHIT_SCALE_U8) fields[f] *= row_factor(tensor, g, row, f);
        }
        values_of(type, codes + in_chunk, n, fields, out + k);
    }
}

void whit_codec_get_rows(const whit_tensor *tensor, const int32_t *ids, size_t n, float *out, size_t out_stride)
{
    whit_geometry g = whit_codec_geometry(&tensor->type);
    for (size_t i = 0; i < n; i++) {
        get_row(tensor, &g, (uint32_t)ids[i], out + i * out_stride);
        whit_corrections_add_row(tensor, (uint32_t)ids[i], out + i * out_stride);
    }
}

/* ---- canonical bytes ------------------------------------------------------------------------ */

/* Returns the unsigned number that represents a code in a canonical row. */
static unsigned canonical_code(whit_codec codec, int code)
{
    if (codec == WHIT_CODEC_B1) return code > 0;
    return (unsigned)(code + whit_codec_code_bias(codec));
}

/* Writes columns [k, k + n) of row r of a tile to the canonical row `out`, from the bit of column k on; k is a multiple
 * of 8. */
static void put_canonical(const whit_tensor_type *type, const int8_t *codes, uint32_t r, uint32_t k, uint32_t n,
                          uint8_t *out)
{
    unsigned bits = whit_codec_find(type->codec)->canonical_bits;
    for (uint32_t j = 0; whit_codec_find(type->codec)->grid && j < n; j += 8) {
        int8_t eight[8];
        for (uint32_t i = 0; i < 8; i++) eight[i] = codes[(j + i) * ROWS + r];
        whit_grid_canonical((whit_codec)type->codec, eight, 8, out + (k + j) / 8 * 3);
    }
    for (uint32_t j = 0; !whit_codec_find(type->codec)->grid && j < n; j++) {
        size_t bit = (size_t)(k + j) * bits;
        unsigned code = canonical_code((whit_codec)type->codec, codes[j * ROWS + r]);
        out[bit / 8] = (uint8_t)(out[bit / 8] | code << bit % 8);
    }
}

static void canonical_fields(const whit_tensor *tensor, const whit_geometry *g, uint32_t row, uint8_t *out)
{
    const whit_tensor_type *type = &tensor->type;
    const uint8_t *tile = tile_start(tensor, g, row / ROWS);
    if (type->scale_type > WHIT_SCALE_U8) {
        out = copy_group_bytes(type, g, tile, row % ROWS, out);
        for (uint32_t k = 0; whit_scale_in_superblocks(type->scale_type) && k < type->n_cols; k += WHIT_SUPER_COLS) {
            memcpy(out, tile + whit_super_offset(type, g, k, row % ROWS), (size_t)g->n_fields * 2);
            out += g->n_fields * 2;
        }
        return;
    }
    for (uint32_t group = 0; group < g->n_groups; group++)
        for (uint32_t f = 0; f < g->n_fields; f++, out += g->field_bytes) {
            const uint8_t *from = type->scale_kind == WHIT_SCALE_ROW
                ? tensor->part[WHIT_PART_ROW_SCALES] + g->field_bytes * whit_row_field_index(g, row, f)
                : tile_start(tensor, g, row / ROWS) + whit_field_offset(type, g, group, f, row % ROWS);
            memcpy(out, from, g->field_bytes);
        }
    for (uint32_t f = 0; type->scale_type == WHIT_SCALE_U8 && f < g->n_fields; f++, out += 2)
        memcpy(out, tensor->part[WHIT_PART_ROW_SCALES] + 2 * whit_row_field_index(g, row, f), 2);
}

void whit_codec_canonical_rows(const whit_tensor *tensor, uint32_t row_begin, uint32_t n, uint8_t *out)
{
    const whit_tensor_type *type = &tensor->type;
    const whit_codec_info *codec = whit_codec_find(type->codec);
    whit_geometry g = whit_codec_geometry(type);
    if (codec->is_float) {
        unpack_elems(tensor, row_begin, n, out);
        return;
    }
    size_t row_bytes = whit_codec_canonical_row_bytes(type);
    size_t code_bytes = ((size_t)type->n_cols * codec->canonical_bits + 7) / 8;
    for (uint32_t row = row_begin; row < row_begin + n;) {
        uint32_t r = row % ROWS, n_rows = whit_min_u32(ROWS - r, row_begin + n - row);
        uint8_t *row_out = out + (row - row_begin) * row_bytes;
        for (uint32_t i = 0; i < n_rows; i++) {
            memset(row_out + i * row_bytes, 0, code_bytes);
            if (type->scale_kind >= WHIT_SCALE_ROW)
                canonical_fields(tensor, &g, row + i, row_out + i * row_bytes + code_bytes);
        }
        for (uint32_t k = 0; k < type->n_cols; k += CHUNK) {
            int8_t codes[CHUNK * ROWS];
            uint32_t n_cols = whit_min_u32(CHUNK, type->n_cols - k);
            whit_tile_codes(tensor, row / ROWS, k, n_cols, codes);
            for (uint32_t i = 0; i < n_rows; i++) put_canonical(type, codes, r + i, k, n_cols, row_out + i * row_bytes);
        }
        row += n_rows;
    }
}
