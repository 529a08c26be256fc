/* SPDX-License-Identifier: MIT */
#include "quant/requantise.h"

#include "base/half.h"
#include "base/mem.h"
#include "kernels/math.h"
#include "quant/quantise.h"

#include <math.h>
#include <string.h>

whit_tensor_type whit_requantise_type(uint8_t codec, uint32_t n_rows, uint32_t n_cols)
{
    whit_tensor_type type = {.codec = codec, .layout = WHIT_LAYOUT_TILE16, .n_rows = n_rows, .n_cols = n_cols};
    if (codec == WHIT_CODEC_I4) {
        type.scale_kind = WHIT_SCALE_GROUP;
        type.scale_type = WHIT_SCALE_F16;
        type.group = 32;
    } else if (!whit_codec_find(codec)->is_float) {
        type.scale_kind = WHIT_SCALE_ROW;
        type.scale_type = WHIT_SCALE_F32;
    }
    return type;
}

void whit_requantise_values(const whit_tensor_type *type, const whit_rows *row, float *values)
{
    uint32_t n = type->n_cols;
    if (type->codec == WHIT_CODEC_F32) {
        memcpy(values, row->elems, n * sizeof *values);
        return;
    }
    if (type->codec == WHIT_CODEC_F16 || type->codec == WHIT_CODEC_BF16) {
        const uint16_t *halves = row->elems;
        for (uint32_t k = 0; k < n; k++)
            values[k] = type->codec == WHIT_CODEC_F16 ? whit_f32_from_f16(halves[k]) : whit_f32_from_bf16(halves[k]);
        return;
    }
    whit_codec_content_values(type, row, values);
}

/* For each group, fits the levels of the codec by least squares and rounds the row to them. */
static void round_levels(const whit_tensor_type *type, const float *values, const whit_rows *row)
{
    const whit_loops *loops = whit_loops_find();
    whit_geometry g = whit_codec_geometry(type);
    for (uint32_t group = 0; group < g.n_groups; group++) {
        size_t at = (size_t)group * g.group_cols, rest = type->n_cols - at,
               n = rest < g.group_cols ? rest : g.group_cols;
        float fields[2] = {0}, stored[2];
        whit_quantise_fit(loops, type, values + at, n, fields);
        whit_quantise_stored(type, fields, stored);
        whit_quantise_codes(type, values + at, n, stored, (int8_t *)row->elems + at);
        whit_quantise_put(type, stored, group, row);
    }
}

void whit_requantise_row(const whit_tensor_type *type, const float *values, const whit_rows *row)
{
    uint32_t n = type->n_cols;
    if (type->codec == WHIT_CODEC_F32) {
        memcpy(row->elems, values, n * sizeof *values);
        return;
    }
    if (type->codec == WHIT_CODEC_F16 || type->codec == WHIT_CODEC_BF16) {
        uint16_t *halves = row->elems;
        for (uint32_t k = 0; k < n; k++)
            halves[k] = type->codec == WHIT_CODEC_F16 ? whit_f16_from_f32(values[k]) : whit_bf16_from_f32(values[k]);
        return;
    }
    if (type->codec != WHIT_CODEC_I8 && whit_quantise_knows(type)) {
        round_levels(type, values, row);
        return;
    }
    int8_t *codes = row->elems;
    float largest_code = whit_codec_find(type->codec)->code_max;
    uint32_t group = whit_codec_geometry(type).group_cols;
    for (uint32_t begin = 0; begin < n; begin += group) {
        uint32_t end = begin + group < n ? begin + group : n;
        float largest = 0;
        for (uint32_t k = begin; k < end; k++) largest = fmaxf(largest, fabsf(values[k]));
        float scale = largest / largest_code;
        if (type->scale_type == WHIT_SCALE_F16) scale = whit_f32_from_f16(whit_f16_from_f32(scale));
        row->fields[begin / group] = scale;
        for (uint32_t k = begin; k < end; k++) {
            float code = scale > 0 ? (float)whit_round_i32(values[k] / scale) : 0;
            codes[k] = (int8_t)fminf(fmaxf(code, -largest_code), largest_code);
        }
    }
}

bool whit_requantise_is_finite(const whit_tensor_type *type, const whit_rows *row)
{
    whit_geometry g = whit_codec_geometry(type);
    const uint16_t *halves = row->elems;
    if (type->codec == WHIT_CODEC_F16)
        for (uint32_t k = 0; k < type->n_cols; k++)
            if ((halves[k] & 0x7C00) == 0x7C00) return false;
    for (uint32_t i = 0; type->codec == WHIT_CODEC_L2 && i < g.n_groups; i++)
        if (!isfinite(whit_level_scale(whit_load_u16(row->fields_u8 + 2 * (size_t)i)))) return false;
    for (uint32_t i = 0; type->codec != WHIT_CODEC_L2 && i < g.n_groups * g.n_fields; i++)
        if (!isfinite(row->fields[i])) return false;
    return true;
}
