/* SPDX-License-Identifier: MIT
 * Defines weight codecs: the layout of a matrix in memory, and the simple functions for packing and unpacking that
 * define it.
 *
 * A matrix is (n_rows outputs, n_cols inputs). In WHIT_LAYOUT_TILE16 its rows are cut into tiles of sixteen; a tile is
 * a run of 64-byte lines along k; dword r of a line belongs to row r of the tile (docs/dev/kernels.md draws it). Its
 * *logical content* does not depend on the layout: integer codes (or float elements) row by row, and for each scale
 * group some *fields*: a scale, for q2 a second one, then an offset where the type has one.
 *
 *   value = a code                       (+ offset)   all codecs except
 *   value = a s' + b e'                  (+ offset)   q2, s' and e' in {-1, 1}
 *   value = level                                     l2, the level whose index is the code (whit_group_level)
 *
 * Every bit pattern of a part has a value, so these functions are safe on any bytes. A type must have passed
 * whit_tensor_type_check, and a tensor's parts must have the lengths of whit_codec_part_bytes. The functions have no
 * state and may be called by any thread. */
#ifndef WHIT_KERNELS_CODEC_H
#define WHIT_KERNELS_CODEC_H

#include "base/status.h"
#include "base/tensor.h"
#include "kernels/codec_table.h"

#define WHIT_TILE_ROWS  16
#define WHIT_LINE_BYTES 64
#define WHIT_MAX_COLS   65536 /* 255 * 128 * 65,536 < 2^31, so that sums of products of any codec fit int32 */
#define WHIT_MAX_FIELDS 3     /* largest number of fields of a scale group: a, b and offset */
#define WHIT_SUPER_COLS 256   /* columns that share the factors of WHIT_SCALE_K4, K8, ODD4 and K16 */
/* columns, half a superblock, over which products times the groups' integer scales are summed as integers */
#define WHIT_SUPER_ACTS 128
/* Columns that are unpacked at once; a multiple of every codec's period of lines and of every group size. */
#define WHIT_CHUNK_COLS 1280

/* Returns the codec's row of the table whit_codecs; NULL for an unknown codec. */
const whit_codec_info *whit_codec_find(unsigned codec);
/* Converts a name, such as "t2", to its codec, such as WHIT_CODEC_T2; returns false for an unknown name. */
bool whit_codec_parse(const char *name, uint8_t *codec);

/* Returns WHIT_ERROR_FORMAT with the reason unless the type's ids are known, their combination exists, sizes are within
 * bounds and unused fields are zero (so that equal types have equal bytes). */
whit_status whit_tensor_type_check(const whit_tensor_type *type, whit_error *error);
/* Checks the type, and that every part has exactly the right length and is 64-byte aligned. Errors: format. */
whit_status whit_tensor_check(const whit_tensor *tensor, whit_error *error);

/* Sizes of a matrix in memory, computed from its type. */
typedef struct whit_geometry {
    uint32_t n_tiles;
    uint32_t n_fields;     /* number of fields per scale group; 0 for float codecs */
    uint32_t field_bytes;  /* bytes of one stored field */
    uint32_t n_groups;     /* number of groups along a row: ceil(n_cols / group), or 1 without groups */
    uint32_t group_cols;   /* number of columns per scale: the group size, or n_cols without groups */
    uint32_t block_groups; /* number of groups per interleaved block of scales (t5: 2 for any group size); 0: scales
                            * are not interleaved */
    uint32_t block_lines;  /* number of lines of an interleaved block of scales */
    uint32_t row_fields;   /* number of floats per row in whit_rows.fields, from 1 to n_groups * n_fields */
    uint32_t row_bytes;    /* number of bytes per row in whit_rows.fields_u8 */
    uint64_t tile_bytes;   /* bytes of a tile in WHIT_PART_CODES */
} whit_geometry;

whit_geometry whit_codec_geometry(const whit_tensor_type *type);

/* Computes the length of a part, which is 0 for corrections and if the type does not have the part; returns false if
 * the length overflows. */
bool whit_codec_part_bytes(const whit_tensor_type *type, whit_part part, uint64_t *bytes);
/* Returns tiles [tile_begin, tile_end) of a tensor with WHIT_LAYOUT_TILE16 as a separate tensor that refers to the same
 * memory and has no corrections. */
whit_tensor whit_codec_tiles(const whit_tensor *tensor, uint32_t tile_begin, uint32_t tile_end);
/* Computes the total length of all parts except corrections, including padding and scales; returns false if the length
 * overflows. */
bool whit_codec_total_bytes(const whit_tensor_type *type, uint64_t *bytes);

/* Returns the number of bytes of all parts of a tensor, corrections included. */
static inline uint64_t whit_codec_tensor_bytes(const whit_tensor *tensor)
{
    uint64_t bytes = 0;
    for (int part = 0; part < WHIT_PART_COUNT; part++) bytes += tensor->part_bytes[part];
    return bytes;
}

/* Returns the factor of a superblock's scales: scale = factor * number. The number is an integer that a group's byte
 * encodes: 0 to 15 for K4, -128 to 127 for K8, 0 to 255 for K16, an odd number from 1 to 31 for ODD4, whose factor is d
 * / 8. K4 and K16 also have offset = -(e * minimum) with an integer minimum. Kernels sum products of numbers, codes and
 * int8 activations over 128 columns exactly. */
static inline float whit_super_factor(unsigned scale_type, float d)
{
    return scale_type == WHIT_SCALE_ODD4 ? d * 0.125f : d;
}

/* Returns whether the scale type has f16 factors that are stored before each superblock of 256 columns. */
static inline bool whit_scale_in_superblocks(unsigned scale_type)
{
    return (scale_type >= WHIT_SCALE_K4 && scale_type <= WHIT_SCALE_ODD4) || scale_type == WHIT_SCALE_K16;
}
/* Returns whether the scale type has bytes and f16 factors: per row (U8) or per superblock. */
static inline bool whit_scale_has_factors(unsigned scale_type)
{
    return scale_type == WHIT_SCALE_U8 || whit_scale_in_superblocks(scale_type);
}
/* Returns whether the scale type has a minimum per group in addition to the scale, that is an offset. */
static inline bool whit_scale_has_minima(unsigned scale_type)
{
    return scale_type == WHIT_SCALE_K4 || scale_type == WHIT_SCALE_K16;
}
/* For the two bytes u of WHIT_SCALE_L6: return the group's scale (exact), the group's low level, and the u whose levels
 * times scale are nearest to two magnitudes, which are not negative. */
float whit_level_scale(unsigned u);
static inline int whit_level_low(unsigned u)
{
    return (int)(u & 63);
}
unsigned whit_level_nearest(float high, float low);
/* Returns the integer level of an l2 code (0 to 3) in a group with the two bytes u. As in q2, bit 0 is the sign (1: +);
 * the magnitude is WHIT_LEVEL_HIGH if both bits are equal, else the low level. */
#define WHIT_LEVEL_HIGH 63
static inline int whit_group_level(unsigned u, int code)
{
    int magnitude = (code & 1) == code >> 1 ? WHIT_LEVEL_HIGH : whit_level_low(u);
    return code & 1 ? magnitude : -magnitude;
}
/* Returns whether scales of this type are in whit_rows.fields_u8. */
static inline bool whit_scale_in_bytes(unsigned scale_type)
{
    return scale_type >= WHIT_SCALE_U8;
}

/* ---- logical content ------------------------------------------------------------------------ */

/* `n` rows of content. The type determines which members are used:
 *   elems      (n, n_cols): int8 codes (q2: bit 0 is s, bit 1 is e), or the elements of a float
 *              codec in its own width
 *   fields     (n, row_fields) of the geometry: n_groups times n_fields f32; with u8 scales n_fields f16
 *              factors of the row; with superblocks the f16 factors d (K4, K16: d, e) of each. Unused with one
 *              scale per tensor, for float codecs and with E8, E4 and L6
 *   fields_u8  (n, row_bytes): scales of a byte or nibble, one per group (u8: n_groups times n_fields; L6 and K16:
 *              two bytes per group; the first is the low byte for L6, and the byte of the scale for K16) */
typedef struct whit_rows {
    void *elems;
    float *fields;
    uint8_t *fields_u8;
} whit_rows;

/* Packs n rows of content as rows [row_begin, row_begin + n) of the parts, with padding. row_begin is a multiple of 16,
 * and so is n unless the range ends with the last row. f16 fields are rounded to nearest. Returns WHIT_ERROR_ARGUMENT
 * if the range breaks these rules, or the codec cannot store a code (or, with a codebook, eight codes together). */
whit_status whit_codec_pack(const whit_tensor_type *type, uint32_t row_begin, uint32_t n, const whit_rows *rows,
                            uint8_t *const part[WHIT_PART_COUNT], whit_error *error);
/* Unpacks rows [row_begin, row_begin + n), which may be any range: the inverse of whit_codec_pack. Members of `rows`
 * that the type does not use may be NULL. */
void whit_codec_unpack(const whit_tensor *tensor, uint32_t row_begin, uint32_t n, const whit_rows *rows);
/* Converts the rows with the given ids to f32: out (n, n_cols), rows `out_stride` floats apart. Each id is below
 * n_rows. The values are code * a, rounded once (l2: level * a); with an offset fma(code, a, offset); for q2 a s' + b
 * e', rounded, and then + offset. The tensor's corrections are added last (kernels/corrections.h). */
void whit_codec_get_rows(const whit_tensor *tensor, const int32_t *ids, size_t n, float *out, size_t out_stride);
/* Converts one row of content of an integer codec to f32, without corrections. */
void whit_codec_content_values(const whit_tensor_type *type, const whit_rows *row, float *out);

/* ---- canonical bytes, for the identity of a model ------------------------------------------- */

/* Returns the type without the choices that do not change values: codec t5 becomes t2, i8s becomes i8, and the layout
 * WHIT_LAYOUT_PLAIN. */
whit_tensor_type whit_codec_canonical_type(const whit_tensor_type *type);
/* Write canonical rows: codes from the lowest bit up (float codecs: elements; i8: w + 128; i4: w + 8; ternary: w + 1 in
 * two bits; b1: one bit; q2: bits s, e; others in docs/dev/format.md), zero bits up to a whole byte, then each group's
 * fields in their stored width, then the f16 factors of scales that have them. The first function returns the number of
 * bytes of a row. */
size_t whit_codec_canonical_row_bytes(const whit_tensor_type *type);
void whit_codec_canonical_rows(const whit_tensor *tensor, uint32_t row_begin, uint32_t n, uint8_t *out);
/* Writes the same bytes, from n rows of content that need not be packed. */
void whit_codec_canonical_content(const whit_tensor_type *type, uint32_t n, const whit_rows *rows, uint8_t *out);

/* ---- tiles, as the generic kernels read them ------------------------------------------------ */

/* Unpacks the codes of columns [k_begin, k_begin + n) of a tile: codes[16 k + r] is column k_begin + k of row r.
 * k_begin is a multiple of WHIT_CHUNK_COLS, and n is at most WHIT_CHUNK_COLS. `codes` has room for 16 *
 * WHIT_CHUNK_COLS, because whole lines (for t5, half superblocks) are written. A code of q2 is s + 2 e with bits s and
 * e. */
void whit_tile_codes(const whit_tensor *tensor, uint32_t tile, uint32_t k_begin, uint32_t n, int8_t *codes);
/* Unpacks the integers that kernels multiply by activations: for l2 the levels of the codes, for other codecs the
 * codes. The arguments are those of whit_tile_codes. */
void whit_tile_integers(const whit_tensor *tensor, uint32_t tile, uint32_t k_begin, uint32_t n, int8_t *integers);
/* Converts the elements of a float codec to f32. The arguments are those of whit_tile_codes. */
void whit_tile_floats(const whit_tensor *tensor, uint32_t tile, uint32_t k_begin, uint32_t n, float *values);
/* Reads the fields of one scale group of a tile: fields[f][r] is field f of row r. */
void whit_tile_fields(const whit_tensor *tensor, uint32_t tile, uint32_t group,
                      float fields[WHIT_MAX_FIELDS][WHIT_TILE_ROWS]);
/* For scales in superblocks, reads the integers of one group of a tile's rows: numbers[0] of the scales; for K4 and
 * K16, numbers[1] of the minima. */
void whit_tile_numbers(const whit_tensor *tensor, uint32_t tile, uint32_t group, int32_t numbers[2][WHIT_TILE_ROWS]);
/* Reads the factors of the superblock with column k for a tile's rows: factors[0] of the scales, factors[1] of the
 * minima. */
void whit_tile_factors(const whit_tensor *tensor, uint32_t tile, uint32_t k, float factors[2][WHIT_TILE_ROWS]);

#endif
