/* SPDX-License-Identifier: MIT
 * Computes the canonical bytes of rows before packing, so that a converter, which has the rows in memory, need not read
 * them back from tiles. codec_rows.c computes the same bytes from a tensor. */
#include "kernels/codec_lines.h"

#include "base/half.h"
#include "base/mem.h"

/* Adds a bias to each of eight bytes, without carries between bytes. */
static uint64_t eight_codes(const int8_t *codes, unsigned bias)
{
    uint64_t bytes;
    memcpy(&bytes, codes, 8);
    return ((bytes & 0x7F7F7F7F7F7F7F7Fu) + 0x0101010101010101u * bias) ^ (bytes & 0x8080808080808080u);
}

/* Returns the low `bits` bits of each of eight bytes, joined without gaps, the first byte lowest. */
static uint64_t join_eight(uint64_t bytes, unsigned bits)
{
    if (bits == 8) return bytes;
    bytes &= 0x0101010101010101u * ((1u << bits) - 1);
    bytes = (bytes | bytes >> (8 - bits)) & 0x0001000100010001u * ((1u << 2 * bits) - 1);
    bytes = (bytes | bytes >> (16 - 2 * bits)) & 0x0000000100000001u * ((1u << 4 * bits) - 1);
    return bytes | bytes >> (32 - 4 * bits);
}

/* Writes n codes as digits of `bits` bits, from the lowest bit up. A digit is (code + bias) >> shift. The bits after
 * the last digit are zero. */
static void put_codes(const int8_t *codes, uint32_t n, unsigned bits, unsigned bias, unsigned shift, uint8_t *out)
{
    uint32_t k = 0;
    for (; k + 8 <= n; k += 8, out += bits) {
        uint64_t joined = join_eight(eight_codes(codes + k, bias) >> shift, bits);
        memcpy(out, &joined, bits);
    }
    if (k == n) return;
    int8_t last[8] = {0};
    memcpy(last, codes + k, n - k);
    const uint64_t mask = ((uint64_t)1 << bits * (n - k)) - 1;
    uint64_t joined = join_eight(eight_codes(last, bias) >> shift, bits) & mask;
    memcpy(out, &joined, (bits * (n - k) + 7) / 8);
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
    unsigned bias = (unsigned)whit_codec_code_bias(type->codec);
    for (uint32_t row = 0; row < n; row++) {
        const int8_t *codes = (const int8_t *)rows->elems + (size_t)row * type->n_cols;
        if (codec->grid)
            whit_grid_canonical((whit_codec)type->codec, codes, type->n_cols, out);
        else
            put_codes(codes, type->n_cols, codec->canonical_bits, bias, type->codec == WHIT_CODEC_B1, out);
        out += code_bytes;
        if (type->scale_kind < WHIT_SCALE_ROW) continue;
        if (in_bytes) {
            memcpy(out, rows->fields_u8 + (size_t)row * g.row_bytes, g.row_bytes);
            out += g.row_bytes;
        }
        for (size_t i = 0; i < n_fields; i++) out = put_field(field_type, rows->fields[row * n_fields + i], out);
    }
}
