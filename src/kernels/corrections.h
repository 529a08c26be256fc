/* SPDX-License-Identifier: MIT
 * Corrections: parts of a tensor that add to what its codes say (docs/format.md, section 4).
 *
 * Outliers: single weights, an int8 times a scale of their tile. The part is
 *
 *   u32 start[n_tiles + 1]        where each tile's record begins, in units of two bytes from the first one
 *   zeros to a multiple of 64
 *   records, tile by tile:        u16 scale (f16), u8 count[16] of each row's pairs, then the pairs row by row
 *   pair: u8 gap, i8 value        column = the one before in the row (0 in front of the first) + gap
 *
 * A tile without outliers has no record. A gap that a byte cannot hold is bridged by pairs of value 0. So a pass
 * over some tiles reads one run of bytes from front to back.
 *
 * Any bytes have a value: a record that is cut, or ends behind the part, is none; counts beyond the record's
 * pairs count to its end; a column that does not exist ends its row. */
#ifndef WHIT_KERNELS_CORRECTIONS_H
#define WHIT_KERNELS_CORRECTIONS_H

#include "base/half.h"
#include "base/hash.h"
#include "base/mem.h"
#include "kernels/codec.h"

#define WHIT_OUTLIERS_HEAD_UNITS 9 /* scale and counts of a record */

/* Outliers of one tile. */
typedef struct whit_outlier_tile {
    float scale;
    const uint8_t *counts; /* (16) */
    const uint8_t *pairs;  /* (n_pairs, 2) */
    uint32_t n_pairs;
} whit_outlier_tile;

/* Bytes in front of the records. */
static inline uint64_t whit_outliers_head_bytes(uint32_t n_tiles)
{
    return ((uint64_t)n_tiles * 4 + 4 + 63) / 64 * 64;
}

/* Those of a tile of a tensor that has the part; false where there are none. */
static inline bool whit_outliers_of_tile(const whit_tensor *w, uint32_t tile, whit_outlier_tile *out)
{
    const uint8_t *part = w->part[WHIT_PART_OUTLIERS];
    uint64_t head = whit_outliers_head_bytes((w->type.n_rows + WHIT_TILE_ROWS - 1) / WHIT_TILE_ROWS);
    uint64_t n_units = (w->part_bytes[WHIT_PART_OUTLIERS] - head) / 2;
    uint32_t begin = whit_load_u32(part + 4 * (uint64_t)tile), end = whit_load_u32(part + 4 * (uint64_t)tile + 4);
    if (end > n_units || begin > end || end - begin <= WHIT_OUTLIERS_HEAD_UNITS) return false;
    const uint8_t *record = part + head + 2 * (uint64_t)begin;
    *out = (whit_outlier_tile){.scale = whit_f32_from_f16(whit_load_u16(record)),
                               .counts = record + 2,
                               .pairs = record + 2 * WHIT_OUTLIERS_HEAD_UNITS,
                               .n_pairs = end - begin - WHIT_OUTLIERS_HEAD_UNITS};
    return true;
}

/* Whether a tensor has parts that correct its product. */
static inline bool whit_is_corrected(const whit_tensor *w)
{
    return w->part_bytes[WHIT_PART_OUTLIERS] != 0;
}

/* Whether a type may have them: matrices of t2, t5, b1 and q2. */
bool whit_may_be_corrected(const whit_tensor_type *type);
/* The lengths of the parts against the type and what stands in their heads. NULL, or what is wrong. */
const char *whit_corrections_fault(const whit_tensor *w);

/* Adds to row `row` (n_cols) what the parts say: value = fma(outlier, scale, value). */
void whit_corrections_add_row(const whit_tensor *w, uint32_t row, float *values);

/* One outlier, as a builder takes it. */
typedef struct whit_outlier {
    uint32_t row, col;
    int8_t value;
} whit_outlier;

/* Appends the part to an empty buffer: n outliers in the order of row and column, none twice; scales (n_tiles), f16
 * values. At most 255 pairs of a row have room: WHIT_ERROR_LIMIT. */
whit_status whit_outliers_build(const whit_tensor_type *type, const whit_outlier *outliers, size_t n,
                                const float *scales, whit_buf *out, whit_error *error);

/* Adds the canonical bytes of the corrections to a tensor's digest, behind those of its rows: per part a u32, its
 * kind, then a u64, bytes, and the bytes. Nothing where there are none. */
void whit_corrections_digest(const whit_tensor *w, whit_hash *hash);

#endif
