/* SPDX-License-Identifier: MIT
 * Computes the canonical rows of tensors. Each element is looked up separately, at the place that docs/dev/kernels.md
 * defines; this is slow, but easy to compare with that page. */
#include "ndf-digest.h"

#include <stdlib.h>
#include <string.h>

enum { F32, F16, BF16, I8, I4, T2, T5, B1, Q2, I8S, U2, I3, F4, N4, X8, X9, X10, L2, U4, U5, I6 };
enum { U8_SCALES = 2, K4, K8, ODD4, E8, E4, L6, K16 };
enum { NONE, PER_TENSOR, PER_ROW, PER_GROUP };
enum { CODES, ROW_SCALES, LOW, LINE = 64, ROWS = 16 };

/* Fields of Tensor_Type (docs/dev/format.md, section 5), and sizes that follow from them. */
typedef struct {
    const stored_tensor *of;
    uint32_t codec, kind, scales, group, rows, columns;
    uint32_t n_fields, field_bytes, n_groups; /* n_fields: scale, b of q2 and offset, as far as the type has them;
                                               * n_groups: scale groups per row */
    uint32_t line_columns, line_planes;       /* line_columns columns of a tile are stored in line_planes lines */
    uint32_t block_groups, block_lines;       /* a block of block_lines lines has the fields of block_groups groups */
    uint64_t tile_lines;
    bool is_plain;
} tensor;

static uint64_t ceil_div(uint64_t n, uint64_t by)
{
    return (n + by - 1) / by;
}

static uint32_t u32_at(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static bool in_superblocks(const tensor *t)
{
    return (t->scales >= K4 && t->scales <= ODD4) || t->scales == K16;
}

/* Returns the number of lines in a superblock that contain bits 8 and up of codebook indices. */
static uint32_t high_bits(const tensor *t)
{
    return t->codec < X8 || t->codec > X10 ? 0 : t->codec - X8;
}

static bool has_codebook(const tensor *t)
{
    return t->codec >= X8 && t->codec <= X10;
}

static bool read_type(const stored_tensor *from, tensor *t)
{
    static const uint8_t columns[] = {1, 2, 2, 4, 8, 16, 20, 32, 32, 8, 16, 32, 8, 8, 32, 32, 32, 16, 8, 32, 32},
                         planes[] = {1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 1, 3, 1, 1, 2, 2, 2, 1, 1, 5, 6},
                         scale_bytes[] = {4, 2, 1, 1, 1, 1, 1, 1, 2, 2};
    const uint8_t *type = from->type;
    *t = (tensor){.of = from, .codec = type[0], .kind = type[2], .scales = type[3], .is_plain = type[1] == 0};
    t->group = (uint32_t)(type[6] | type[7] << 8);
    t->rows = u32_at(type + 8), t->columns = u32_at(type + 12);
    if (t->codec > I6 || type[1] > 1 || t->kind > PER_GROUP || t->scales > K16 || type[4] > 1) return false;
    if ((t->codec == L2) != (t->scales == L6)) return false;
    if (t->scales > U8_SCALES && (t->kind != PER_GROUP || t->codec == T5)) return false;
    if (!t->rows || !t->columns || t->columns > INT32_MAX || (t->is_plain && t->codec > BF16)) return false;
    bool grouped = t->kind == PER_GROUP;
    if ((t->codec <= BF16) != (t->kind == NONE)) return false;
    if (grouped != (t->group != 0) || (t->group & (t->group - 1)) || t->group > 256) return false;
    t->line_columns = columns[t->codec], t->line_planes = planes[t->codec];
    if (grouped && t->group < (t->codec == T5 ? 128 : t->codec < U2 ? t->line_columns : t->codec == L2 ? 32 : 16))
        return false;
    if (t->codec > BF16) t->n_fields = 1 + (t->codec == Q2) + type[4];
    t->field_bytes = scale_bytes[type[3]];
    t->n_groups = grouped ? (uint32_t)ceil_div(t->columns, t->group) : 1;
    t->tile_lines = ceil_div(t->columns, t->line_columns) * t->line_planes;
    if (grouped && t->codec == T5) { /* superblocks of 256 columns; the last one is a half if it has at most 128 */
        uint32_t rest = t->columns % 256;
        t->block_lines = (uint32_t)ceil_div((uint64_t)2 * t->n_fields * t->field_bytes, 4);
        t->tile_lines = (uint64_t)(t->columns / 256) * (13 + t->block_lines);
        if (rest) t->tile_lines += (rest <= 128 ? 7 : 13) + t->block_lines;
    } else if (in_superblocks(t)) { /* a line of factors, lines of scales, lines of high bits of indices */
        if (t->group > 32 || t->columns % 256) return false;
        t->block_groups = 256 / t->group;
        uint32_t in_dword = t->scales == ODD4 ? 8 : 4 / t->field_bytes;
        t->block_lines = 1 + (uint32_t)ceil_div(t->block_groups, in_dword) + high_bits(t);
        t->tile_lines += ceil_div(t->n_groups, t->block_groups) * t->block_lines;
    } else if (grouped) {
        uint32_t bytes = t->n_fields * t->field_bytes;
        t->block_groups = bytes >= 4 ? 1 : 4 / bytes;
        t->block_lines = (uint32_t)ceil_div((uint64_t)t->block_groups * bytes, 4);
        t->tile_lines += ceil_div(t->n_groups, t->block_groups) * t->block_lines;
    }
    return true;
}

static bool parts_fit(const tensor *t)
{
    uint64_t n_tiles = ceil_div(t->rows, ROWS), want[3] = {n_tiles * t->tile_lines * LINE, 0, 0};
    if (t->is_plain) want[CODES] = (uint64_t)t->rows * t->columns * (t->codec == F32 ? 4 : 2);
    if (t->kind == PER_ROW) want[ROW_SCALES] = n_tiles * t->n_fields * ROWS * t->field_bytes;
    if (t->kind == PER_GROUP && t->scales == U8_SCALES) want[ROW_SCALES] = n_tiles * t->n_fields * ROWS * 2;
    if (t->codec == I8S) want[LOW] = n_tiles * ROWS * ceil_div(t->columns, 128) * LINE;
    return memcmp(want, t->of->part_bytes, sizeof want) == 0;
}

/* ---- places in a tile ---- */

static const uint8_t *tile_of(const tensor *t, uint32_t row)
{
    return t->of->part[CODES] + row / ROWS * t->tile_lines * LINE;
}

/* Returns the t5 superblock that contains column k of a row. *is_half: the superblock has at most 128 columns. */
static const uint8_t *superblock(const tensor *t, uint32_t row, uint32_t k, bool *is_half)
{
    *is_half = t->columns - k / 256 * 256 <= 128;
    return tile_of(t, row) + (uint64_t)(k / 256) * (13 + t->block_lines) * LINE;
}

/* Returns the first line of the scale block of a group. *codes: the first line of the block's codes. */
static const uint8_t *scale_block(const tensor *t, uint32_t row, uint32_t group, const uint8_t **codes)
{
    uint32_t block = group / t->block_groups, block_columns = t->block_groups * t->group;
    uint64_t lines = t->block_lines + (uint64_t)block_columns / t->line_columns * t->line_planes;
    const uint8_t *at = tile_of(t, row) + block * lines * LINE;
    *codes = at + (uint64_t)t->block_lines * LINE;
    return at;
}

/* Returns byte b of a row's fields in a block. A row has four bytes in each line; the fields continue in the next
 * line. */
static uint8_t field_byte(const uint8_t *block, uint32_t row, uint32_t b)
{
    return block[b / 4 * LINE + row % ROWS * 4 + b % 4];
}

/* ---- canonical codes ---- */

/* Returns digit d of a t5 byte, which has five digits in base 3; d = 0 is the lowest. A byte from 243 has 2 as digit 4,
 * and its other digits are those of the byte mod 81. */
static unsigned digit(unsigned byte, uint32_t d)
{
    if (d == 4) return byte >= 162 ? 2 : byte >= 81;
    for (; d; d--) byte /= 3;
    return byte % 3;
}

/* Returns the code of column k in a line with `bits` bits per code. A row has four bytes in a line; column k is in byte
 * k % 4, from bit k / 4 * bits. */
static unsigned bits_of_line(const uint8_t *line, uint32_t row, uint32_t k, uint32_t bits)
{
    return (unsigned)line[row % ROWS * 4 + k % 4] >> k / 4 * bits & ((1u << bits) - 1);
}

static unsigned code_at(const tensor *t, uint32_t row, uint32_t k)
{
    if (t->codec == T5 && t->kind == PER_GROUP) {
        bool is_half;
        const uint8_t *block = superblock(t, row, k, &is_half);
        uint32_t half = k % 256 / 128, at = k % 128;
        if (at >= 120) return bits_of_line(block + (is_half ? 6 : 12) * LINE, row, at - 120 + 8 * half, 2);
        const uint8_t *line = block + (6 * half + at / 20) * LINE;
        return digit(line[row % ROWS * 4 + at % 4], at % 20 / 4);
    }
    const uint8_t *lines = tile_of(t, row);
    uint32_t in_block = k;
    if (t->kind == PER_GROUP) {
        scale_block(t, row, k / t->group, &lines);
        in_block = k % (t->block_groups * t->group);
    }
    const uint8_t *line = lines + (uint64_t)(in_block / t->line_columns) * t->line_planes * LINE;
    uint32_t at = in_block % t->line_columns;
    static const int8_t floats[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12},
                        levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    switch (t->codec) {
    case U2:
    case L2: return bits_of_line(line, row, at, 2);
    case I3:
        return bits_of_line(line + at / 16 * LINE, row, at % 16, 2) | bits_of_line(line + 2 * LINE, row, at, 1) << 2;
    case U4: return bits_of_line(line, row, at, 4);
    case U5: return bits_of_line(line + at / 8 * LINE, row, at % 8, 4) | bits_of_line(line + 4 * LINE, row, at, 1) << 4;
    case I6:
        return bits_of_line(line + at / 8 * LINE, row, at % 8, 4) |
            bits_of_line(line + (4 + at / 16) * LINE, row, at % 16, 2) << 4;
    case F4: return (unsigned)(floats[bits_of_line(line, row, at, 4)] + 128);
    case N4: return (unsigned)(levels[bits_of_line(line, row, at, 4)] + 128);
    case I8: return line[row % ROWS * 4 + at];
    case I4: return bits_of_line(line, row, at, 4);
    case T2: return bits_of_line(line, row, at, 2);
    case T5: return digit(line[row % ROWS * 4 + at % 4], at / 4);
    case B1: return bits_of_line(line, row, at, 1);
    case Q2: return bits_of_line(line, row, at, 1) | bits_of_line(line + LINE, row, at, 1) << 1;
    default: { /* i8s */
        const uint8_t *low = t->of->part[LOW] + row * ceil_div(t->columns, 128) * LINE;
        unsigned nibbles = low[k / 8 * 4 + k % 4];
        return bits_of_line(line, row, at, 4) << 4 | (k % 8 < 4 ? nibbles & 15 : nibbles >> 4);
    }
    }
}

/* Writes eight columns from column k of a codec with a codebook: two bytes of index, lowest first, and a byte of
 * signs. */
static void put_eight(const tensor *t, uint32_t row, uint32_t k, uint8_t out[3])
{
    const uint8_t *codes, *block = scale_block(t, row, k / t->group, &codes);
    uint32_t in_block = k % 256, w = in_block % 32 / 8, dword = row % ROWS * 4;
    const uint8_t *line = codes + in_block / 32 * 2 * LINE;
    unsigned index = line[dword + w];
    for (uint32_t b = 0; b < high_bits(t); b++) {
        const uint8_t *high = block + (t->block_lines - high_bits(t) + b) * LINE;
        index |= (u32_at(high + dword) >> in_block / 8 & 1) << (8 + b);
    }
    out[0] = (uint8_t)index, out[1] = (uint8_t)(index >> 8), out[2] = 0;
    for (uint32_t i = 0; i < 8; i++) out[2] |= (uint8_t)((u32_at(line + LINE + dword) >> (4 * i + w) & 1) << i);
}

/* Writes a row's scales of the kinds after U8_SCALES: the scales of all groups, then, with superblocks, the factors of
 * all superblocks. Returns the end of the written bytes. */
static uint8_t *put_byte_scales(const tensor *t, uint32_t row, uint8_t *out)
{
    const uint8_t *codes;
    for (uint32_t group = 0; group < t->n_groups; group++) {
        const uint8_t *block = scale_block(t, row, group, &codes);
        uint32_t place = group % t->block_groups;
        if (!in_superblocks(t))
            for (uint32_t b = 0; b < t->field_bytes; b++) *out++ = field_byte(block, row, place * t->field_bytes + b);
        else if (t->scales == ODD4)
            *out++ = field_byte(block + LINE, row, place / 2) >> place % 2 * 4 & 15;
        else
            for (uint32_t b = 0; b < t->field_bytes; b++)
                *out++ = field_byte(block + LINE, row, place * t->field_bytes + b);
    }
    for (uint32_t group = 0; in_superblocks(t) && group < t->n_groups; group += t->block_groups)
        for (uint32_t b = 0; b < 2 * t->n_fields; b++) *out++ = field_byte(scale_block(t, row, group, &codes), row, b);
    return out;
}

static const uint8_t *element_at(const tensor *t, uint32_t row, uint32_t k, uint32_t size)
{
    if (t->is_plain) return t->of->part[CODES] + ((uint64_t)row * t->columns + k) * size;
    return tile_of(t, row) + ((uint64_t)k * ROWS + row % ROWS) * size;
}

/* Writes a row in canonical form: the codes, packed from the lowest bit up, then the fields as they are stored. Returns
 * the end of the written bytes. */
static uint8_t *canonical_row(const tensor *t, uint32_t row, uint8_t *out)
{
    static const uint8_t bits[] = {0, 0, 0, 8, 4, 2, 2, 1, 2, 8, 2, 4, 8, 8, 3, 3, 3, 2, 4, 8, 8};
    if (t->codec <= BF16) {
        uint32_t size = t->codec == F32 ? 4 : 2;
        for (uint32_t k = 0; k < t->columns; k++, out += size) memcpy(out, element_at(t, row, k, size), size);
        return out;
    }
    uint64_t n_bits = (uint64_t)t->columns * bits[t->codec];
    memset(out, 0, ceil_div(n_bits, 8));
    for (uint32_t k = 0; has_codebook(t) && k < t->columns; k += 8) put_eight(t, row, k, out + k / 8 * 3);
    for (uint64_t at = 0; !has_codebook(t) && at < n_bits; at += bits[t->codec])
        out[at / 8] = (uint8_t)(out[at / 8] | code_at(t, row, (uint32_t)(at / bits[t->codec])) << at % 8);
    out += ceil_div(n_bits, 8);
    if (t->scales > U8_SCALES) return put_byte_scales(t, row, out);
    for (uint32_t group = 0; t->kind == PER_GROUP && group < t->n_groups; group++) {
        const uint8_t *block, *codes;
        uint32_t size = t->n_fields * t->field_bytes, first = 0;
        if (t->codec == T5) {
            bool is_half;
            uint32_t k = group * t->group;
            block = superblock(t, row, k, &is_half) + (is_half ? 7 : 13) * LINE;
            first = k % 256 / 128 * size;
        } else {
            block = scale_block(t, row, group, &codes);
            first = group % t->block_groups * size;
        }
        for (uint32_t b = 0; b < size; b++) *out++ = field_byte(block, row, first + b);
    }
    bool has_factors = t->kind == PER_GROUP && t->field_bytes == 1;
    uint32_t size = has_factors ? 2 : t->field_bytes;
    for (uint32_t f = 0; (t->kind == PER_ROW || has_factors) && f < t->n_fields; f++, out += size)
        memcpy(out, t->of->part[ROW_SCALES] + ((row / ROWS * t->n_fields + f) * (uint64_t)ROWS + row % ROWS) * size,
               size);
    return out;
}

bool canonical_tensor(const stored_tensor *from, void (*add)(void *hash, const void *bytes, uint64_t size), void *hash)
{
    tensor t;
    if (!read_type(from, &t) || !parts_fit(&t)) return false;
    uint64_t most = (uint64_t)t.columns * 4 + (uint64_t)t.n_groups * t.n_fields * 4 + 16;
    uint8_t *row = malloc(most), type[32];
    if (!row) return false;
    memcpy(type, from->type, sizeof type);
    type[1] = 0;
    if (t.codec == T5) type[0] = T2;
    if (t.codec == I8S) type[0] = I8;
    add(hash, type, sizeof type);
    for (uint32_t r = 0; r < t.rows; r++) add(hash, row, (uint64_t)(canonical_row(&t, r, row) - row));
    free(row);
    return true;
}
