/* SPDX-License-Identifier: MIT
 * Packs rows of content into tiles, for every codec.
 *
 *   digits       four codes of a row at once to the bytes of a dword: all codecs except the following
 *   superblocks  t5 with scales of groups
 *   nibbles      i8s
 *   grids        codecs with a codebook
 *   scales       fields, bytes and factors
 *   halves       float codecs */
#include "kernels/codec_lines.h"
#include "kernels/codec_places.h"

#include "base/half.h"
#include "base/mem.h"

#define ROWS WHIT_TILE_ROWS

static const int8_t *code_row(const whit_tensor_type *type, const whit_rows *rows, uint32_t row)
{
    return (const int8_t *)rows->elems + (size_t)row * type->n_cols;
}

/* Fails if codes of a row are not levels of the codec or, for a codec with a codebook, not in the codebook. */
static whit_status check_levels(const whit_tensor_type *type, const int8_t *codes, whit_error *error)
{
    const whit_codec_info *codec = whit_codec_find(type->codec);
    for (uint32_t k = 0; codec->grid && k < type->n_cols; k += 8)
        if (whit_grid_find((whit_codec)type->codec, codes + k) < 0)
            return whit_fail(error, WHIT_ERROR_ARGUMENT,
                             "codec %s cannot store the codes of columns %u to %u together: its codebook lacks them",
                             codec->name, k, k + 7);
    for (uint32_t k = 0; !codec->grid && k < type->n_cols; k++)
        if (!memchr(codec->levels, codes[k], 16))
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "codec %s cannot store the code %d: choose another codec",
                             codec->name, codes[k]);
    return WHIT_OK;
}

static whit_status check_codes(const whit_tensor_type *type, uint32_t n, const whit_rows *rows, whit_error *error)
{
    const whit_codec_info *codec = whit_codec_find(type->codec);
    uint8_t range = (uint8_t)(codec->code_max - codec->code_min);
    bool is_b1 = type->codec == WHIT_CODEC_B1;
    for (uint32_t row = 0; row < n; row++) {
        const int8_t *codes = code_row(type, rows, row);
        uint8_t bad = 0; /* there is no early exit, so that the loop can be vectorised */
        for (uint32_t k = 0; k < type->n_cols; k++) bad |= (uint8_t)((uint8_t)(codes[k] - codec->code_min) > range);
        for (uint32_t k = 0; is_b1 && k < type->n_cols; k++) bad |= codes[k] == 0;
        for (uint32_t k = 0; bad && k < type->n_cols; k++)
            if (codes[k] < codec->code_min || codes[k] > codec->code_max || (is_b1 && codes[k] == 0))
                return whit_fail(error, WHIT_ERROR_ARGUMENT, "codec %s cannot store the code %d: choose another codec",
                                 codec->name, codes[k]);
        if (codec->levels) WHIT_TRY(check_levels(type, codes, error));
    }
    return WHIT_OK;
}

/* Describes how the codes of a period are packed into its lines as digits. Four codes of a row are processed at a time,
 * one for each byte of a dword; u is a code as an unsigned number. The first n_low lines contain the low `bits` of u
 * (for t5, u as a digit in base 3), the last n_top lines the n_top bits above. */
struct digits {
    uint32_t n_fours; /* columns of a period divided by 4 */
    uint32_t radix, bits, n_low, n_top;
    uint32_t bias, shift; /* u = (code + bias) >> shift */
    /* for codecs with levels: u of each code, indexed by the code as uint8_t; NULL: u is computed with bias and
     * shift */
    const uint8_t *fields;
};

/* Adds a bias to each of four bytes, without carries between bytes. */
static inline uint32_t add_bias(uint32_t bytes, uint32_t bias)
{
    return ((bytes & 0x7F7F7F7Fu) + 0x01010101u * bias) ^ (bytes & 0x80808080u);
}

/* Joins n digits into each of four bytes, the first digit lowest; a digit is `bits` bits of `fours` from bit `shift`
 * on. No byte overflows. */
static inline uint32_t join_digits(const uint32_t *fours, uint32_t n, uint32_t radix, unsigned shift, unsigned bits)
{
    uint32_t dword = 0, mask = 0x01010101u * ((1u << bits) - 1);
    for (uint32_t d = n; d > 0; d--) dword = dword * radix + (fours[d - 1] >> shift & mask);
    return dword;
}

/* Packs a period of one row into its dword of each line; the dwords are WHIT_LINE_BYTES apart. */
static inline __attribute__((always_inline)) void pack_period(const struct digits *digits, const int8_t *codes,
                                                              uint8_t *dword)
{
    uint32_t fours[8];
    for (uint32_t d = 0; d < digits->n_fours; d++) {
        uint8_t fields[4];
        for (uint32_t i = 0; digits->fields && i < 4; i++) fields[i] = digits->fields[(uint8_t)codes[4 * d + i]];
        if (digits->fields)
            fours[d] = whit_load_u32(fields);
        else
            fours[d] = add_bias(whit_load_u32(codes + 4 * d), digits->bias) >> digits->shift;
    }
    for (uint32_t l = 0, n = digits->n_fours / digits->n_low; l < digits->n_low; l++, dword += WHIT_LINE_BYTES) {
        uint32_t low = join_digits(fours + l * n, n, digits->radix, 0, digits->bits);
        memcpy(dword, &low, 4);
    }
    for (uint32_t l = 0; l < digits->n_top; l++, dword += WHIT_LINE_BYTES) {
        uint32_t n = digits->n_fours / digits->n_top,
                 top = join_digits(fours + l * n, n, 1u << digits->n_top, digits->bits, digits->n_top);
        memcpy(dword, &top, 4);
    }
}

/* Returns the description for a codec other than i8s and codecs with a codebook. For codecs with levels it fills
 * `fields`; of equal levels the first one is used. */
static struct digits find_digits(const whit_tensor_type *type, uint8_t fields[256])
{
    const whit_codec_info *codec = whit_codec_find(type->codec);
    struct digits digits = {.n_fours = codec->line_cols / 4u,
                            .radix = type->codec == WHIT_CODEC_T5 ? 3 : 1u << codec->bits,
                            .bits = codec->bits,
                            .n_top = codec->top_bits + codec->planes - 1u,
                            .bias = (uint32_t)whit_codec_code_bias(type->codec),
                            .shift = type->codec == WHIT_CODEC_B1};
    digits.n_low = codec->lines - digits.n_top;
    if (!codec->levels) return digits;
    memset(fields, 0, 256);
    for (int f = 15; f >= 0; f--) fields[(uint8_t)codec->levels[f]] = (uint8_t)f;
    digits.fields = fields;
    return digits;
}

/* Zero codes, for the rows of a tile that are outside the matrix. */
static const int8_t no_codes[32];

static inline __attribute__((always_inline)) void pack_digits(const whit_tensor_type *type, const whit_geometry *g,
                                                              const whit_rows *rows, uint32_t row, uint32_t n_rows,
                                                              uint8_t *tile, const struct digits digits)
{
    const uint32_t cols = 4 * digits.n_fours;
    for (uint32_t k = 0; k < type->n_cols; k += cols) {
        uint8_t *line = tile + whit_line_offset(type, g, k);
        const int8_t *codes = code_row(type, rows, row) + k;
        uint32_t n_known = whit_min_u32(cols, type->n_cols - k);
        for (uint32_t r = 0; r < ROWS; r++, codes += type->n_cols) {
            int8_t padded[32] = {0};
            const int8_t *from = r < n_rows ? codes : no_codes;
            if (r < n_rows && n_known < cols) {
                memcpy(padded, codes, n_known);
                from = padded;
            }
            pack_period(&digits, from, line + 4 * r);
        }
    }
}

/* Packs a tile. Descriptions with constants let the compiler make separate loops for periods of one line with 4 to 20
 * columns. */
static void pack_tile(const whit_tensor_type *type, const whit_geometry *g, const whit_rows *rows, uint32_t row,
                      uint32_t n_rows, uint8_t *tile)
{
    uint8_t fields[256];
    const struct digits d = find_digits(type, fields);
    if (d.n_fours == 1)
        pack_digits(type, g, rows, row, n_rows, tile, (struct digits){1, 256, 8, 1, 0, d.bias, 0, NULL});
    else if (d.n_fours == 2 && !d.fields)
        pack_digits(type, g, rows, row, n_rows, tile, (struct digits){2, 16, 4, 1, 0, d.bias, 0, NULL});
    else if (d.n_fours == 4)
        pack_digits(type, g, rows, row, n_rows, tile, (struct digits){4, 4, 2, 1, 0, d.bias, 0, NULL});
    else if (d.n_fours == 5)
        pack_digits(type, g, rows, row, n_rows, tile, (struct digits){5, 3, 2, 1, 0, d.bias, 0, NULL});
    else
        pack_digits(type, g, rows, row, n_rows, tile, d);
}

/* Packs t5 with group scales: 120 columns of each half superblock are in six lines of t5, and the other eight in
 * two-bit fields of the superblock's last line. */
static void pack_superblocks(const whit_tensor_type *type, const whit_geometry *g, const whit_rows *rows, uint32_t row,
                             uint32_t n_rows, uint8_t *tile)
{
    const struct digits digits = find_digits(type, NULL);
    for (uint32_t h = 0; 128 * h < type->n_cols; h++) {
        uint64_t lines, rest;
        uint32_t n_known = whit_min_u32(128, type->n_cols - 128 * h),
                 n_halves = type->n_cols - h / 2 * 256 <= 128 ? 1 : 2;
        whit_superblock_offsets(type, g, h, &lines, &rest);
        for (uint32_t r = 0; r < ROWS; r++) {
            int8_t codes[128] = {0};
            if (r < n_rows) memcpy(codes, code_row(type, rows, row + r) + 128 * h, n_known);
            for (uint32_t i = 0; i < 6; i++)
                pack_period(&digits, codes + 20 * i, tile + lines + i * WHIT_LINE_BYTES + 4 * r);
            uint32_t fours[2] = {add_bias(whit_load_u32(codes + 120), 1), add_bias(whit_load_u32(codes + 124), 1)},
                     both = whit_load_u32(tile + rest + 4 * r);
            both |= join_digits(fours, 2, 4, 0, 2) << 4 * (h & 1);
            if (n_halves == 1) both |= 0x50505050u; /* the fields of the missing second half get zero codes */
            memcpy(tile + rest + 4 * r, &both, 4);
        }
    }
}

/* Packs i8s: high nibbles are stored in lines, low nibbles row by row. */
static void pack_nibbles(const whit_tensor_type *type, const whit_geometry *g, const whit_rows *rows, uint32_t row,
                         uint32_t n_rows, uint8_t *tile, uint8_t *low_rows)
{
    for (uint32_t k = 0; k < type->n_cols; k += 8)
        for (uint32_t r = 0; r < ROWS; r++) {
            int8_t codes[8] = {0};
            if (r < n_rows) memcpy(codes, code_row(type, rows, row + r) + k, whit_min_u32(8, type->n_cols - k));
            uint32_t first = add_bias(whit_load_u32(codes), 128), second = add_bias(whit_load_u32(codes + 4), 128),
                     low = (first & 0x0F0F0F0Fu) | (second & 0x0F0F0F0Fu) << 4,
                     high = (first >> 4 & 0x0F0F0F0Fu) | (second & 0xF0F0F0F0u);
            memcpy(low_rows + whit_low_offset(type, r, k / 8), &low, 4);
            memcpy(tile + whit_line_offset(type, g, k) + 4 * r, &high, 4);
        }
}

static void pack_grids(const whit_tensor_type *type, const whit_geometry *g, const whit_rows *rows, uint32_t row,
                       uint32_t n_rows, uint8_t *tile)
{
    for (uint32_t k = 0; k < type->n_cols; k += 32)
        for (uint32_t r = 0; r < n_rows; r++)
            whit_grid_pack((whit_codec)type->codec, tile + whit_line_offset(type, g, k) + 4 * r,
                           tile + whit_grid_offset(type, g, k, r), k % WHIT_SUPER_COLS / 32,
                           code_row(type, rows, row + r) + k);
}

static void put_group_byte(const whit_tensor_type *type, const whit_geometry *g, uint8_t *tile, uint32_t group,
                           uint32_t row, const uint8_t *from)
{
    const uint8_t byte = *from;
    if (!whit_scale_in_superblocks(type->scale_type)) {
        memcpy(tile + whit_field_offset(type, g, group, 0, row), from, g->field_bytes);
        return;
    }
    uint8_t *bytes = tile + whit_super_offset(type, g, group * type->group, row) + WHIT_LINE_BYTES;
    uint32_t place = group % g->block_groups;
    if (type->scale_type == WHIT_SCALE_ODD4) { /* the caller has cleared the tile, so bits are only set */
        uint8_t *to = bytes + place / 8 * WHIT_LINE_BYTES + place % 8 / 2;
        *to = (uint8_t)(*to | (byte & 15) << 4 * (place & 1));
    } else if (type->scale_type == WHIT_SCALE_K16) {
        memcpy(bytes + place / 2 * WHIT_LINE_BYTES + place % 2 * 2, from, 2);
    } else {
        bytes[place / 4 * WHIT_LINE_BYTES + place % 4] = byte;
    }
}

static void store_field(unsigned scale_type, uint8_t *to, float value)
{
    if (scale_type == WHIT_SCALE_F32) {
        memcpy(to, &value, 4);
    } else {
        uint16_t half = whit_f16_from_f32(value);
        memcpy(to, &half, 2);
    }
}

/* Packs the fields of a tile's first n_rows rows, which begin at row `row` of `rows`; the other rows keep zero
 * fields. */
static void pack_fields(const whit_tensor_type *type, const whit_geometry *g, const whit_rows *rows, uint32_t row,
                        uint32_t n_rows, uint8_t *tile, uint8_t *row_scales)
{
    bool is_u8 = type->scale_type == WHIT_SCALE_U8;
    for (uint32_t f = 0; f < g->n_fields; f++)
        for (uint32_t r = 0; r < n_rows; r++) {
            const float *fields = rows->fields + (size_t)(row + r) * g->row_fields;
            if (is_u8) store_field(WHIT_SCALE_F16, row_scales + 2 * whit_row_field_index(g, r, f), fields[f]);
            if (type->scale_kind == WHIT_SCALE_ROW) {
                store_field(type->scale_type, row_scales + g->field_bytes * whit_row_field_index(g, r, f), fields[f]);
                continue;
            }
            for (uint32_t group = 0; group < g->n_groups; group++) {
                uint8_t *to = tile + whit_field_offset(type, g, group, f, r);
                size_t index = (size_t)group * g->n_fields + f;
                if (is_u8)
                    *to = rows->fields_u8[(size_t)(row + r) * g->row_bytes + index];
                else
                    store_field(type->scale_type, to, fields[index]);
            }
        }
}

/* Packs scales in bytes (other than WHIT_SCALE_U8) and their factors, which are interleaved with the codes. */
static void pack_byte_scales(const whit_tensor_type *type, const whit_geometry *g, const whit_rows *rows, uint32_t row,
                             uint32_t n_rows, uint8_t *tile)
{
    for (uint32_t r = 0; r < n_rows; r++) {
        const uint8_t *bytes = rows->fields_u8 + (size_t)(row + r) * g->row_bytes;
        for (uint32_t group = 0; group < g->n_groups; group++)
            put_group_byte(type, g, tile, group, r, bytes + (size_t)group * g->field_bytes);
        if (!whit_scale_in_superblocks(type->scale_type)) continue;
        const float *factors = rows->fields + (size_t)(row + r) * g->row_fields;
        for (uint32_t k = 0; k < type->n_cols; k += WHIT_SUPER_COLS)
            for (uint32_t f = 0; f < g->n_fields; f++)
                store_field(WHIT_SCALE_F16, tile + whit_super_offset(type, g, k, r) + 2 * f, *factors++);
    }
}

/* Copies the fields of t5 with groups of 256 to the superblocks' second halves, for kernels that read one field per
 * half. */
static void repeat_fields(const whit_tensor_type *type, const whit_geometry *g, uint8_t *tile)
{
    whit_tensor_type halves = *type;
    halves.group = 128;
    for (uint32_t group = 0; group < g->n_groups; group++) {
        if (type->n_cols - 256 * group <= 128) break;
        for (uint32_t f = 0; f < g->n_fields; f++)
            for (uint32_t r = 0; r < ROWS; r++)
                memcpy(tile + whit_field_offset(&halves, g, 2 * group + 1, f, r),
                       tile + whit_field_offset(type, g, group, f, r), g->field_bytes);
    }
}

/* Transposes four rows of four 16-bit columns: out[c] contains column c, with row 0 in the lowest bits. */
static inline void transpose_halves(const uint64_t rows[4], uint64_t out[4])
{
    const uint64_t even = 0x0000FFFF0000FFFFu, low = 0xFFFFFFFFu;
    uint64_t a = (rows[0] & even) | (rows[1] & even) << 16, b = (rows[0] >> 16 & even) | (rows[1] & ~even),
             c = (rows[2] & even) | (rows[3] & even) << 16, d = (rows[2] >> 16 & even) | (rows[3] & ~even);
    out[0] = (a & low) | c << 32;
    out[1] = (b & low) | d << 32;
    out[2] = a >> 32 | (c & ~low);
    out[3] = b >> 32 | (d & ~low);
}

/* Packs the first n columns, a multiple of 4, of a whole tile of a float codec with two bytes per element. */
static void pack_halves(const uint8_t *elems, uint32_t n_cols, uint32_t n, uint8_t *tile)
{
    for (uint32_t k = 0; k < n; k += 4)
        for (uint32_t r = 0; r < ROWS; r += 4) {
            uint64_t rows[4], out[4];
            for (uint32_t i = 0; i < 4; i++) memcpy(&rows[i], elems + ((size_t)(r + i) * n_cols + k) * 2, 8);
            transpose_halves(rows, out);
            for (uint32_t i = 0; i < 4; i++) memcpy(tile + ((size_t)(k + i) * ROWS + r) * 2, &out[i], 8);
        }
}

static void pack_float_tile(const whit_tensor_type *type, const whit_rows *rows, uint32_t row, uint32_t n_rows,
                            uint8_t *tile)
{
    const uint32_t n_cols = type->n_cols, elem_bytes = whit_codec_find(type->codec)->elem_bytes;
    const uint8_t *elems = (const uint8_t *)rows->elems + (size_t)row * n_cols * elem_bytes;
    uint32_t k = 0;
    if (elem_bytes == 2) {
        if (n_rows == ROWS) pack_halves(elems, n_cols, k = n_cols & ~3u, tile);
        for (; k < n_cols; k++) /* in the order of the tile, because scattered writes cost more than scattered reads */
            for (uint32_t r = 0; r < n_rows; r++)
                memcpy(tile + ((size_t)k * ROWS + r) * 2, elems + ((size_t)r * n_cols + k) * 2, 2);
        return;
    }
    for (; k < n_cols; k++)
        for (uint32_t r = 0; r < n_rows; r++)
            memcpy(tile + ((size_t)k * ROWS + r) * 4, elems + ((size_t)r * n_cols + k) * 4, 4);
}

whit_status whit_codec_pack(const whit_tensor_type *type, uint32_t row_begin, uint32_t n, const whit_rows *rows,
                            uint8_t *const part[WHIT_PART_COUNT], whit_error *error)
{
    const whit_codec_info *codec = whit_codec_find(type->codec);
    if (row_begin % ROWS || row_begin > type->n_rows || n > type->n_rows - row_begin ||
        (n % ROWS && row_begin + n != type->n_rows))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "whit_codec_pack: rows from %u on, %u of them, must begin and end at multiples of 16",
                         row_begin, n);
    whit_geometry g = whit_codec_geometry(type);
    if (type->layout == WHIT_LAYOUT_PLAIN) {
        size_t row_bytes = (size_t)type->n_cols * codec->elem_bytes;
        if (n) memcpy(part[WHIT_PART_CODES] + row_begin * row_bytes, rows->elems, n * row_bytes);
        return WHIT_OK;
    }
    if (!codec->is_float) WHIT_TRY(check_codes(type, n, rows, error));

    uint64_t tile_scale_bytes = 0, tile_low_bytes = 0; /* bytes of a tile in the parts WHIT_PART_ROW_SCALES and
                                                        * WHIT_PART_LOW */
    whit_codec_part_bytes(type, WHIT_PART_ROW_SCALES, &tile_scale_bytes);
    whit_codec_part_bytes(type, WHIT_PART_LOW, &tile_low_bytes);
    tile_scale_bytes /= g.n_tiles;
    tile_low_bytes /= g.n_tiles;
    for (uint32_t row = 0; row < n; row += ROWS) {
        uint32_t n_rows = whit_min_u32(ROWS, n - row), tile_index = (row_begin + row) / ROWS;
        uint8_t *tile = part[WHIT_PART_CODES] + tile_index * g.tile_bytes;
        uint8_t *row_scales = NULL, *low = NULL;
        memset(tile, 0, g.tile_bytes);
        if (codec->is_float) {
            pack_float_tile(type, rows, row, n_rows, tile);
            continue;
        }
        if (tile_scale_bytes) {
            row_scales = part[WHIT_PART_ROW_SCALES] + tile_index * tile_scale_bytes;
            memset(row_scales, 0, tile_scale_bytes);
        }
        if (tile_low_bytes) {
            low = part[WHIT_PART_LOW] + tile_index * tile_low_bytes;
            memset(low, 0, tile_low_bytes);
        }
        if (whit_has_superblocks(type))
            pack_superblocks(type, &g, rows, row, n_rows, tile);
        else if (codec->grid)
            pack_grids(type, &g, rows, row, n_rows, tile);
        else if (type->codec == WHIT_CODEC_I8S)
            pack_nibbles(type, &g, rows, row, n_rows, tile, low);
        else
            pack_tile(type, &g, rows, row, n_rows, tile);
        if (type->scale_type > WHIT_SCALE_U8)
            pack_byte_scales(type, &g, rows, row, n_rows, tile);
        else if (type->scale_kind >= WHIT_SCALE_ROW)
            pack_fields(type, &g, rows, row, n_rows, tile, row_scales);
        if (whit_has_superblocks(type) && type->group == 256) repeat_fields(type, &g, tile);
    }
    return WHIT_OK;
}
