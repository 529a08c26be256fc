/* SPDX-License-Identifier: MIT
 * Canonical bytes of rows before packing: a converter has the rows in memory and need not read them
 * back from tiles. codec_rows.c computes the same bytes from a tensor. */
#include "kernels/codec_lines.h"

#include "base/half.h"
#include "base/mem.h"

/* Digits of `bits` bits, lowest first: codes plus bias. Bits after the end of the row are zero. */
static void put_codes(const int8_t *codes, uint32_t n, unsigned bits, int bias, uint8_t *out)
{
    uint32_t k = 0;
    if (bits == 2 && bias == 1) {
        for (; k + 4 <= n; k += 4) {
            uint32_t four = whit_load_u32(codes + k);
            four = ((four & 0x7F7F7F7Fu) + 0x01010101u) ^ (four & 0x80808080u); /* each byte plus 1 */
            *out++ = (uint8_t)(four | four >> 6 | four >> 12 | four >> 18);
        }
    }
    unsigned per_byte = 8 / bits;
    for (; k < n; k += per_byte, out++) {
        unsigned byte = 0;
        for (unsigned j = 0; j < per_byte && k + j < n; j++) byte |= (unsigned)(codes[k + j] + bias) << bits * j;
        *out = (uint8_t)byte;
    }
}

static void put_signs(const int8_t *codes, uint32_t n, uint8_t *out)
{
    for (uint32_t k = 0; k < n; k += 8, out++) {
        unsigned byte = 0;
        for (unsigned j = 0; j < 8 && k + j < n; j++) byte |= (unsigned)(codes[k + j] > 0) << j;
        *out = (uint8_t)byte;
    }
}

static uint8_t *put_field(unsigned scale_type, float value, uint8_t *out)
{
    uint16_t half = whit_f16_from_f32(value);
    if (scale_type == WHIT_SCALE_F32)
        memcpy(out, &value, 4);
    else
        memcpy(out, &half, 2);
    return out + (scale_type == WHIT_SCALE_F32 ? 4 : 2);
}

void whit_codec_canonical_content(const whit_tensor_type *type, uint32_t n, const whit_rows *rows, uint8_t *out)
{
    const whit_codec_info *codec = whit_codec_find(type->codec);
    if (codec->is_float) {
        memcpy(out, rows->elems, (size_t)n * type->n_cols * codec->elem_bytes);
        return;
    }
    whit_geometry g = whit_codec_geometry(type);
    bool in_bytes = whit_scale_in_bytes(type->scale_type);
    size_t code_bytes = ((size_t)type->n_cols * codec->canonical_bits + 7) / 8,
           n_fields = in_bytes && !whit_scale_has_factors(type->scale_type) ? 0 : g.row_fields;
    unsigned field_type = in_bytes ? WHIT_SCALE_F16 : type->scale_type;
    int bias = whit_codec_code_bias(type->codec);
    for (uint32_t row = 0; row < n; row++) {
        const int8_t *codes = (const int8_t *)rows->elems + (size_t)row * type->n_cols;
        if (type->codec == WHIT_CODEC_B1)
            put_signs(codes, type->n_cols, out);
        else if (codec->grid)
            whit_grid_canonical((whit_codec)type->codec, codes, type->n_cols, out);
        else
            put_codes(codes, type->n_cols, codec->canonical_bits, bias, out);
        out += code_bytes;
        if (type->scale_kind < WHIT_SCALE_ROW) continue;
        if (in_bytes) {
            memcpy(out, rows->fields_u8 + (size_t)row * g.row_bytes, g.row_bytes);
            out += g.row_bytes;
        }
        for (size_t i = 0; i < n_fields; i++) out = put_field(field_type, rows->fields[row * n_fields + i], out);
    }
}
