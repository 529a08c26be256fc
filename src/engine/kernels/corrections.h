/* SPDX-License-Identifier: MIT
 * Defines corrections, which are parts of a tensor that add to the values of its codes (docs/dev/format.md, section 4).
 *
 * Outliers: single weights, an int8 times a scale of their tile. The part is
 *
 *   u32 start[n_tiles + 1]        where each tile's record begins, in units of two bytes after the first record's start
 *   zeros to a multiple of 64
 *   records, tile by tile:        u16 scale (f16), u8 count[16] of each row's outliers, then row by row, rising in a
 *                                 row, their columns, then their values (i8), zero to a multiple of two
 *
 * Columns are u8 if the tensor has at most 256 columns, else u16. A tile without outliers has no record. A pass over
 * consecutive tiles therefore reads one contiguous run of bytes.
 *
 * A second sign plane: signs times a scale of their row, on the columns of a list. The part is
 *
 *   u32 n, zeros to 64            columns of the plane, 1 to n_cols
 *   u16 column[n], rising         zeros to a multiple of 64
 *   codes, then row scales        of a b1 matrix (n_rows, n) in tiles of 16 rows with f16 scales per row
 *
 * The plane is multiplied as a separate matrix, by the activations gathered at its columns.
 *
 * A low-rank pair: B (n_rows, rank) times A (rank, n_cols), both i8 in tiles with f32 scales per row, like the factors
 * of an adapter. Part A is u32 rank, zeros to 64, codes, row scales; part B is codes, row scales.
 *
 * Corrupt bytes are safe: an activation of a column outside the tensor reads as 0; a record that is shorter than its
 * counts require, or extends past the end of the part, is ignored. */
#ifndef WHIT_KERNELS_CORRECTIONS_H
#define WHIT_KERNELS_CORRECTIONS_H

#include "base/half.h"
#include "base/hash.h"
#include "base/mem.h"
#include "kernels/acts.h"
#include "kernels/codec.h"

#define WHIT_OUTLIERS_HEAD_UNITS 9 /* size of a record's scale and counts, in units of two bytes */

/* Outliers of one tile. */
typedef struct whit_outlier_tile {
    float scale;
    uint16_t scale_bits; /* bits of the scale as f16 */
    uint32_t n;
    const uint8_t *counts;  /* (16) number of outliers per row; their sum is n */
    const uint8_t *columns; /* (n) columns, whit_outlier_column_bytes each */
    const int8_t *values;   /* (n) values of the outliers */
} whit_outlier_tile;

static inline uint32_t whit_outlier_column_bytes(uint32_t n_cols)
{
    return n_cols <= 256 ? 1 : 2;
}
/* Returns the column of outlier i; corrupt data may give a column that is not below n_cols. */
static inline uint32_t whit_outlier_column(const whit_outlier_tile *tile, uint32_t n_cols, uint32_t i)
{
    return n_cols <= 256 ? tile->columns[i] : whit_load_u16(tile->columns + 2 * (size_t)i);
}

/* Returns the number of bytes before the first record. */
static inline uint64_t whit_outliers_head_bytes(uint32_t n_tiles)
{
    return ((uint64_t)n_tiles * 4 + 4 + 63) / 64 * 64;
}

/* Finds the outliers of a tile of a tensor with the part WHIT_PART_OUTLIERS. Returns false if the tile has no valid
 * record. */
static inline bool whit_outliers_of_tile(const whit_tensor *w, uint32_t tile, whit_outlier_tile *out)
{
    const uint8_t *part = w->part[WHIT_PART_OUTLIERS];
    uint64_t head = whit_outliers_head_bytes((w->type.n_rows + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS);
    uint64_t n_units = (w->part_bytes[WHIT_PART_OUTLIERS] - head) / 2;
    uint32_t begin = whit_load_u32(part + 4 * (uint64_t)tile), end = whit_load_u32(part + 4 * (uint64_t)tile + 4);
    if (end > n_units || begin > end || end - begin <= WHIT_OUTLIERS_HEAD_UNITS) return false;
    const uint8_t *record = part + head + 2 * (uint64_t)begin, *columns = record + 2 * WHIT_OUTLIERS_HEAD_UNITS;
    uint32_t n = 0, column_bytes = whit_outlier_column_bytes(w->type.n_cols);
    /* adds eight counts: first in pairs to four 16-bit sums, then to one sum in the highest 16 bits */
    for (uint32_t half = 0; half < 2; half++) {
        uint64_t counts, even = 0x00FF00FF00FF00FF;
        memcpy(&counts, record + 2 + 8 * half, sizeof counts);
        n += (uint32_t)(((counts & even) + (counts >> 8 & even)) * 0x0001000100010001 >> 48);
    }
    if ((uint64_t)n * (column_bytes + 1) > 2 * (uint64_t)(end - begin - WHIT_OUTLIERS_HEAD_UNITS)) return false;
    *out = (whit_outlier_tile){.scale = whit_f32_from_f16(whit_load_u16(record)),
                               .scale_bits = whit_load_u16(record),
                               .n = n,
                               .counts = record + 2,
                               .columns = columns,
                               .values = (const int8_t *)columns + (size_t)n * column_bytes};
    return true;
}

typedef struct whit_plane {
    uint32_t n;
    const uint8_t *columns; /* (n) columns of x, u16 */
    whit_tensor signs;      /* (n_rows, n): the signs as a matrix of b1 */
} whit_plane;

typedef struct whit_low_rank_pair {
    uint32_t rank;
    whit_tensor a, b; /* a (rank, n_cols), b (n_rows, rank) */
} whit_low_rank_pair;

#define WHIT_LOW_RANK_MAX 256

/* Return the type of the matrix of a sign plane with n columns, and the type of a low-rank factor. */
whit_tensor_type whit_plane_type(const whit_tensor_type *type, uint32_t n);
whit_tensor_type whit_factor_type(uint32_t n_rows, uint32_t n_cols);
/* Find the sign plane, or the low-rank pair, of a tensor that passed whit_tensor_check; false if it is absent. */
bool whit_plane_of(const whit_tensor *w, whit_plane *plane);
bool whit_low_rank_of(const whit_tensor *w, whit_low_rank_pair *pair);

/* Returns whether a tensor has any corrections. */
static inline bool whit_is_corrected(const whit_tensor *w)
{
    return w->part_bytes[WHIT_PART_OUTLIERS] || w->part_bytes[WHIT_PART_PLANE] || w->part_bytes[WHIT_PART_FACTOR_A];
}

/* Writes to out (n_tokens, stride) the activations of the plane's columns: out[t, j] is column columns[j] of token t of
 * x, as f32 (integers times their scale). A column that x does not have gives 0. */
void whit_plane_gather(const whit_plane *plane, const whit_acts *x, float *out, size_t stride);

/* Append the part of a sign plane, or the two parts of a low-rank pair, to empty buffers. `signs`, `a` and `b` are
 * content as whit_codec_pack reads it. columns (n) are ascending. */
whit_status whit_plane_build(const whit_tensor_type *type, const uint16_t *columns, uint32_t n, const whit_rows *signs,
                             const whit_allocator *allocator, whit_buf *out, whit_error *error);
whit_status whit_low_rank_build(const whit_tensor_type *type, uint32_t rank, const whit_rows *a, const whit_rows *b,
                                const whit_allocator *allocator, whit_buf *out_a, whit_buf *out_b, whit_error *error);

/* Returns the tensor without its corrections. */
static inline whit_tensor whit_without_corrections(const whit_tensor *w)
{
    whit_tensor codes = *w;
    for (int part = WHIT_PART_PLANE; part < WHIT_PART_COUNT; part++) {
        codes.part[part] = NULL;
        codes.part_bytes[part] = 0;
    }
    return codes;
}

/* Returns whether a type may have corrections: tiled matrices of t2, t5, b1, q2 and l2 without
 * WHIT_TENSOR_ACT_FIXED. */
bool whit_may_be_corrected(const whit_tensor_type *type);
/* Checks that the type may have the tensor's corrections, and the lengths of their parts against the type and the
 * parts' heads. Returns NULL if they are valid or absent, else an error text. */
const char *whit_corrections_fault(const whit_tensor *w);

/* Adds the corrections of row `row` to its values (n_cols), in this order: value + sign * scale on the plane's columns;
 * fma(outlier, scale, value); value + the sum over ranks r of b[row, r] * a[r, column], where the sum starts at +0 and
 * adds rounded products in ascending order of r. */
void whit_corrections_add_row(const whit_tensor *w, uint32_t row, float *values);

/* One outlier, as input of whit_outliers_build. */
typedef struct whit_outlier {
    uint32_t row, col;
    int8_t value;
} whit_outlier;

/* Appends the part of n outliers, ordered by row and column without repetition, to an empty buffer; scales (n_tiles)
 * are values that f16 represents exactly. Returns WHIT_ERROR_LIMIT for more than 255 outliers in a row or more than
 * 65,536 columns. */
whit_status whit_outliers_build(const whit_tensor_type *type, const whit_outlier *outliers, size_t n,
                                const float *scales, whit_buf *out, whit_error *error);

/* Adds the canonical bytes of the corrections to a tensor's digest, after the bytes of its rows: for each part its
 * number (u32), its length in bytes (u64) and its bytes. Adds nothing if the tensor has no corrections. */
void whit_corrections_digest(const whit_tensor *w, whit_hash *hash);

#endif
