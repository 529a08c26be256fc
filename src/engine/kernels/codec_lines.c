/* SPDX-License-Identifier: MIT
 * Unpacks every line format, and computes the offsets of lines and scales in a tile. */
#include "kernels/codec_lines.h"

#include "base/mem.h"

#define ROWS WHIT_TILE_ROWS

/* Unpacks a line of codes of `bits` bits: code j of byte c of a row's dword belongs to column 4 j + c of the line. */
static void unpack_bits(const uint8_t *line, unsigned bits, int bias, int8_t *codes)
{
    unsigned per_byte = 8 / bits, mask = (1u << bits) - 1;
    for (unsigned j = 0; j < per_byte; j++)
        for (unsigned c = 0; c < 4; c++)
            for (unsigned r = 0; r < ROWS; r++)
                codes[ROWS * (4 * j + c) + r] = (int8_t)((int)(line[4 * r + c] >> (bits * j) & mask) - bias);
}

/* Unpacks a line of t5: a byte has five digits in base 3, least significant first. Bytes 243 to 255 are no sum of five
 * digits: their digits 0 to 3 are those of byte mod 81, and digit 4 is 2. */
static void unpack_t5(const uint8_t *line, int8_t *codes)
{
    for (unsigned c = 0; c < 4; c++)
        for (unsigned r = 0; r < ROWS; r++) {
            unsigned byte = line[4 * r + c], rest = byte;
            for (unsigned d = 0; d < 4; d++, rest /= 3) codes[ROWS * (4 * d + c) + r] = (int8_t)((int)(rest % 3) - 1);
            codes[ROWS * (16 + c) + r] = (int8_t)((byte >= 162 ? 2 : byte >= 81) - 1);
        }
}

void whit_grid_unpack(whit_codec codec, const uint8_t *period, const uint8_t *high, unsigned unit, int8_t codes[32])
{
    const whit_codec_info *info = &whit_codecs[codec];
    uint32_t signs = whit_load_u32(period + WHIT_LINE_BYTES);
    for (unsigned w = 0; w < 4; w++) {
        unsigned index = period[w];
        for (unsigned b = 0; b < info->high_bits; b++)
            index |= (whit_load_u32(high + b * WHIT_LINE_BYTES) >> (4 * unit + w) & 1) << (8 + b);
        unsigned entry = info->grid[index];
        for (unsigned i = 0; i < 8; i++) {
            int8_t level = info->levels[entry >> 2 * i & 3];
            codes[8 * w + i] = (int8_t)(signs >> (4 * i + w) & 1 ? -level : level);
        }
    }
}

int whit_grid_find(whit_codec codec, const int8_t codes[8])
{
    const whit_codec_info *info = &whit_codecs[codec];
    unsigned entry = 0, low = 0, high = (256u << info->high_bits) - 1;
    for (int i = 0; i < 8; i++) {
        int magnitude = codes[i] < 0 ? -codes[i] : codes[i], level = 0;
        while (level < 2 && info->levels[level] != magnitude) level++;
        if (info->levels[level] != magnitude) return -1;
        entry |= (unsigned)level << 2 * i;
    }
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (info->grid[middle] < entry)
            low = middle + 1;
        else
            high = middle;
    }
    return info->grid[low] == entry ? (int)low : -1;
}

void whit_grid_pack(whit_codec codec, uint8_t *period, uint8_t *high, unsigned unit, const int8_t codes[32])
{
    uint32_t signs = 0;
    for (unsigned w = 0; w < 4; w++) {
        unsigned index = (unsigned)whit_grid_find(codec, codes + 8 * w), bit = 4 * unit + w;
        period[w] = (uint8_t)index;
        for (unsigned b = 0; b < whit_codecs[codec].high_bits; b++) {
            uint8_t *to = high + b * WHIT_LINE_BYTES + bit / 8;
            *to = (uint8_t)(*to | (index >> (8 + b) & 1) << bit % 8);
        }
        for (unsigned i = 0; i < 8; i++) signs |= (uint32_t)(codes[8 * w + i] < 0) << (4 * i + w);
    }
    memcpy(period + WHIT_LINE_BYTES, &signs, 4);
}

void whit_grid_canonical(whit_codec codec, const int8_t *codes, uint32_t n, uint8_t *out)
{
    for (uint32_t k = 0; k < n; k += 8, codes += 8, out += 3) {
        unsigned index = (unsigned)whit_grid_find(codec, codes), signs = 0;
        for (unsigned i = 0; i < 8; i++) signs |= (unsigned)(codes[i] < 0) << i;
        out[0] = (uint8_t)index;
        out[1] = (uint8_t)(index >> 8);
        out[2] = (uint8_t)signs;
    }
}

/* Replaces n four-bit indices in `codes` by their levels. */
static void fields_to_levels(const int8_t levels[16], unsigned n, int8_t *codes)
{
    for (unsigned i = 0; i < n; i++) codes[i] = levels[codes[i] & 15];
}

/* Unpacks a period of a codec with top bits: lines of the low `bits` of each code, then lines of its top_bits. */
static void unpack_period(const whit_codec_info *info, const uint8_t *line, int8_t *codes)
{
    unsigned n_low = info->lines - info->top_bits, low_cols = 32 / n_low, top_cols = 32u / info->top_bits;
    int8_t top[32 * ROWS];
    for (unsigned l = 0; l < n_low; l++, line += WHIT_LINE_BYTES)
        unpack_bits(line, info->bits, 0, codes + l * low_cols * ROWS);
    for (unsigned l = 0; l < info->top_bits; l++, line += WHIT_LINE_BYTES)
        unpack_bits(line, info->top_bits, 0, top + l * top_cols * ROWS);
    for (unsigned i = 0; i < 32 * ROWS; i++) codes[i] = (int8_t)((codes[i] | top[i] << info->bits) - info->bias);
}

void whit_line_unpack(whit_codec codec, const uint8_t *line, int8_t *codes)
{
    const whit_codec_info *info = &whit_codecs[codec];
    switch (codec) {
    case WHIT_CODEC_I8S: unpack_bits(line, 4, 0, codes); break;
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
    case WHIT_CODEC_I3:
    case WHIT_CODEC_U5:
    case WHIT_CODEC_I6: unpack_period(info, line, codes); break;
    default:
        unpack_bits(line, info->bits, info->levels ? 0 : whit_codec_code_bias(codec), codes);
        if (info->levels) fields_to_levels(info->levels, info->line_cols * ROWS, codes);
        break;
    }
}

void whit_dword_unpack(whit_codec codec, const uint8_t *dword, int8_t *codes)
{
    const whit_codec_info *info = &whit_codecs[codec];
    unsigned bits = codec == WHIT_CODEC_I8S ? 4 : info->bits;
    int bias = info->is_sign || info->levels || codec == WHIT_CODEC_I8S ? 0 : whit_codec_code_bias(codec);
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
    if (info->levels) fields_to_levels(info->levels, info->line_cols, codes);
}

void whit_dwords_unpack(whit_codec codec, const uint8_t *dword, int8_t *codes)
{
    const whit_codec_info *info = &whit_codecs[codec];
    const unsigned bits = info->bits, n_top = info->top_bits, n_low = info->lines - n_top, low_cols = 32 / n_low,
                   top_cols = 32 / n_top;
    const uint8_t *top = dword + (size_t)n_low * WHIT_LINE_BYTES;
    for (unsigned k = 0; k < 32; k++) {
        unsigned low = dword[k / low_cols * WHIT_LINE_BYTES + k % 4] >> bits * (k % low_cols / 4) & ((1u << bits) - 1);
        unsigned high = top[k / top_cols * WHIT_LINE_BYTES + k % 4] >> n_top * (k % top_cols / 4) & ((1u << n_top) - 1);
        codes[k] = (int8_t)((int)(low | high << bits) - info->bias);
    }
}

uint64_t whit_line_offset(const whit_tensor_type *type, const whit_geometry *g, uint32_t k)
{
    const whit_codec_info *codec = whit_codec_find(type->codec);
    uint64_t line = (uint64_t)(k / codec->line_cols) * codec->lines;
    if (g->block_groups) line += (uint64_t)(k / g->group_cols / g->block_groups + 1) * g->block_lines;
    return line * WHIT_LINE_BYTES;
}

/* Returns the number of lines of codes in a superblock of t5: 6 per half and a shared one. The last superblock may have
 * only one half. */
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
    uint64_t line;  /* index of the block's first line of scales in the tile */
    uint32_t index; /* index of the field among a row's fields in the block */
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

uint64_t whit_super_offset(const whit_tensor_type *type, const whit_geometry *g, uint32_t k, uint32_t row)
{
    uint64_t line = whit_line_offset(type, g, k / WHIT_SUPER_COLS * WHIT_SUPER_COLS) / WHIT_LINE_BYTES - g->block_lines;
    return line * WHIT_LINE_BYTES + 4 * row;
}

uint64_t whit_grid_offset(const whit_tensor_type *type, const whit_geometry *g, uint32_t k, uint32_t row)
{
    uint32_t before = g->block_lines - whit_codecs[type->codec].high_bits;
    return whit_super_offset(type, g, k, row) + before * WHIT_LINE_BYTES;
}

uint64_t whit_low_offset(const whit_tensor_type *type, uint32_t row, uint32_t j)
{
    uint64_t row_bytes = ((uint64_t)type->n_cols + 127) / 128 * 64;
    return row * row_bytes + 4 * (uint64_t)j;
}
