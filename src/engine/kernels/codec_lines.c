/* SPDX-License-Identifier: MIT
 * The specification of every line format, and the arithmetic of where lines and scales lie. */
#include "kernels/codec_lines.h"

#define ROWS WHIT_TILE_ROWS

/* The bits of code `j` of a byte in lane c belong to column k(j, c) of the line: 4 j + c. */
static void unpack_bits(const uint8_t *line, unsigned bits, int bias, int8_t *codes)
{
    unsigned per_byte = 8 / bits, mask = (1u << bits) - 1;
    for (unsigned j = 0; j < per_byte; j++)
        for (unsigned c = 0; c < 4; c++)
            for (unsigned r = 0; r < ROWS; r++)
                codes[ROWS * (4 * j + c) + r] = (int8_t)((int)(line[4 * r + c] >> (bits * j) & mask) - bias);
}

static void pack_bits(uint8_t *line, unsigned bits, int bias, const int8_t *codes)
{
    unsigned per_byte = 8 / bits, mask = (1u << bits) - 1;
    for (unsigned c = 0; c < 4; c++)
        for (unsigned r = 0; r < ROWS; r++) {
            unsigned byte = 0;
            for (unsigned j = 0; j < per_byte; j++)
                byte |= ((unsigned)(codes[ROWS * (4 * j + c) + r] + bias) & mask) << (bits * j);
            line[4 * r + c] = (uint8_t)byte;
        }
}

/* Digits of a byte in base 3, least significant first. 243 to 255 have no fifth digit of their own:
 * digits 0 to 3 are those of byte mod 81, digit 4 is 2. */
static void unpack_t5(const uint8_t *line, int8_t *codes)
{
    for (unsigned c = 0; c < 4; c++)
        for (unsigned r = 0; r < ROWS; r++) {
            unsigned byte = line[4 * r + c], rest = byte;
            for (unsigned d = 0; d < 4; d++, rest /= 3) codes[ROWS * (4 * d + c) + r] = (int8_t)((int)(rest % 3) - 1);
            codes[ROWS * (16 + c) + r] = (int8_t)((byte >= 162 ? 2 : byte >= 81) - 1);
        }
}

static void pack_t5(uint8_t *line, const int8_t *codes)
{
    for (unsigned c = 0; c < 4; c++)
        for (unsigned r = 0; r < ROWS; r++) {
            int byte = 0;
            for (int d = 4; d >= 0; d--) byte = 3 * byte + codes[ROWS * (4 * (unsigned)d + c) + r] + 1;
            line[4 * r + c] = (uint8_t)byte;
        }
}

void whit_line_unpack(whit_codec codec, const uint8_t *line, int8_t *codes)
{
    switch (codec) {
    case WHIT_CODEC_I8: unpack_bits(line, 8, 128, codes); break;
    case WHIT_CODEC_I4: unpack_bits(line, 4, 8, codes); break;
    case WHIT_CODEC_I8S: unpack_bits(line, 4, 0, codes); break;
    case WHIT_CODEC_T2: unpack_bits(line, 2, 1, codes); break;
    case WHIT_CODEC_T5: unpack_t5(line, codes); break;
    case WHIT_CODEC_B1:
        unpack_bits(line, 1, 0, codes);
        for (unsigned i = 0; i < 32 * ROWS; i++) codes[i] = (int8_t)(2 * codes[i] - 1);
        break;
    case WHIT_CODEC_Q2: {
        int8_t extra[32 * ROWS];
        unpack_bits(line, 1, 0, codes);
        unpack_bits(line + WHIT_LINE_BYTES, 1, 0, extra);
        for (unsigned i = 0; i < 32 * ROWS; i++) codes[i] = (int8_t)(codes[i] | extra[i] << 1);
        break;
    }
    default: break;
    }
}

void whit_dword_unpack(whit_codec codec, const uint8_t *dword, int8_t *codes)
{
    unsigned bits = 1;
    int bias = 0;
    if (codec == WHIT_CODEC_I8) bits = 8, bias = 128;
    if (codec == WHIT_CODEC_I4) bits = 4, bias = 8;
    if (codec == WHIT_CODEC_I8S) bits = 4;
    if (codec == WHIT_CODEC_T2) bits = 2, bias = 1;
    for (unsigned c = 0; c < 4; c++) {
        unsigned rest = dword[c];
        if (codec == WHIT_CODEC_T5) {
            for (unsigned d = 0; d < 4; d++, rest /= 3) codes[4 * d + c] = (int8_t)((int)(rest % 3) - 1);
            codes[16 + c] = (int8_t)((rest > 2 ? 2 : (int)rest) - 1);
            continue;
        }
        for (unsigned j = 0; j < 8 / bits; j++, rest >>= bits)
            codes[4 * j + c] = (int8_t)((int)(rest & ((1u << bits) - 1)) - bias);
    }
}

void whit_line_pack(whit_codec codec, uint8_t *line, const int8_t *codes)
{
    switch (codec) {
    case WHIT_CODEC_I8: pack_bits(line, 8, 128, codes); break;
    case WHIT_CODEC_I4: pack_bits(line, 4, 8, codes); break;
    case WHIT_CODEC_I8S: pack_bits(line, 4, 0, codes); break;
    case WHIT_CODEC_T2: pack_bits(line, 2, 1, codes); break;
    case WHIT_CODEC_T5: pack_t5(line, codes); break;
    case WHIT_CODEC_B1:
    case WHIT_CODEC_Q2: {
        int8_t sign[32 * ROWS], extra[32 * ROWS];
        for (unsigned i = 0; i < 32 * ROWS; i++) {
            sign[i] = codec == WHIT_CODEC_B1 ? codes[i] > 0 : codes[i] & 1;
            extra[i] = codes[i] >> 1 & 1;
        }
        pack_bits(line, 1, 0, sign);
        if (codec == WHIT_CODEC_Q2) pack_bits(line + WHIT_LINE_BYTES, 1, 0, extra);
        break;
    }
    default: break;
    }
}

uint64_t whit_line_offset(const whit_tensor_type *type, const whit_geometry *g, uint32_t k)
{
    const whit_codec_info *codec = whit_codec_find(type->codec);
    uint64_t line = (uint64_t)(k / codec->line_cols) * codec->lines;
    if (g->block_groups) line += (uint64_t)(k / g->group_cols / g->block_groups + 1) * g->block_lines;
    return line * WHIT_LINE_BYTES;
}

/* Lines of the last superblock are fewer where it is a half. */
static uint32_t superblock_code_lines(const whit_tensor_type *type, uint32_t superblock)
{
    uint32_t cols = type->n_cols - 256 * superblock;
    return cols <= 128 ? 7 : 13;
}

void whit_superblock_offsets(const whit_tensor_type *type, const whit_geometry *g, uint32_t half, uint64_t *lines,
                             uint64_t *rest)
{
    uint64_t first = (uint64_t)(half / 2) * (13 + g->block_lines);
    *lines = (first + 6 * (half & 1)) * WHIT_LINE_BYTES;
    *rest = (first + superblock_code_lines(type, half / 2) - 1) * WHIT_LINE_BYTES;
}

uint64_t whit_field_offset(const whit_tensor_type *type, const whit_geometry *g, uint32_t group, uint32_t field,
                           uint32_t row)
{
    uint64_t line;  /* where the block of scales begins */
    uint32_t index; /* of the field among the fields of this row in the block */
    if (type->codec == WHIT_CODEC_T5) {
        uint32_t half = type->group == 128 ? group & 1 : 0;
        uint32_t superblock = type->group == 128 ? group / 2 : group;
        line = (uint64_t)superblock * (13 + g->block_lines) + superblock_code_lines(type, superblock);
        index = half * g->n_fields + field;
    } else {
        uint32_t block = group / g->block_groups;
        uint64_t k = (uint64_t)block * g->block_groups * g->group_cols;
        line = whit_line_offset(type, g, (uint32_t)k) / WHIT_LINE_BYTES - g->block_lines;
        index = group % g->block_groups * g->n_fields + field;
    }
    uint32_t byte = index * g->field_bytes;
    return (line + byte / 4) * WHIT_LINE_BYTES + 4 * row + byte % 4;
}

uint64_t whit_low_offset(const whit_tensor_type *type, uint32_t row, uint32_t j)
{
    uint64_t row_bytes = ((uint64_t)type->n_cols + 127) / 128 * 64;
    return row * row_bytes + 4 * (uint64_t)j;
}
