/* SPDX-License-Identifier: MIT
 * Declares small functions that packing and unpacking of rows share (codec_pack.c, codec_rows.c). */
#ifndef WHIT_KERNELS_CODEC_PLACES_H
#define WHIT_KERNELS_CODEC_PLACES_H

#include "kernels/codec.h"

static inline uint32_t whit_min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Returns whether a type is t5 with group scales, whose lines are arranged in superblocks of 256 columns. */
static inline bool whit_has_superblocks(const whit_tensor_type *type)
{
    return type->codec == WHIT_CODEC_T5 && type->scale_kind == WHIT_SCALE_GROUP;
}

/* Returns the index of a row's field in the array of per-row fields, which has the shape (n_tiles, n_fields, 16). */
static inline uint64_t whit_row_field_index(const whit_geometry *g, uint32_t row, uint32_t field)
{
    return ((uint64_t)(row / WHIT_TILE_ROWS) * g->n_fields + field) * WHIT_TILE_ROWS + row % WHIT_TILE_ROWS;
}

#endif
