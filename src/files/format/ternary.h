/* SPDX-License-Identifier: MIT
 * Reads ternary matrices in other representations: packed into U8 by Hugging Face's BitNet integration, stored as
 * floats, or floats that are rounded to ternary codes. Nothing is allocated; matrices are read in place. */
#ifndef WHIT_FORMAT_TERNARY_H
#define WHIT_FORMAT_TERNARY_H

#include "format/ggml_types.h"

/* A matrix packed as U8 (n_rows / 4, n_cols): bits 2i and 2i + 1 of byte (r, c) are W[r + i * n_rows / 4, c] + 1
 * (shared reference formats.md 3.1). n_rows is a multiple of 4. */
typedef struct whit_packed_ternary {
    const uint8_t *data;
    uint64_t n_rows, n_cols; /* shape of the unpacked matrix */
} whit_packed_ternary;

/* Unpacks one row to n_cols codes -1, 0, 1. Returns false if the row has the invalid code 3, which is unpacked as 2. */
bool whit_packed_ternary_row(const whit_packed_ternary *packed, uint64_t row, int8_t *codes);

/* Returns whether all elements of a float matrix are -s, 0 or s, with one s > 0. *scale is s, or 0 for a matrix of
 * zeros. The view is F32, F16 or BF16. */
bool whit_float_is_ternary(const whit_ggml_view *view, float *scale);

/* Returns the mean of |w| over a float matrix, summed in double precision; NaN if an element is not finite. `row`
 * (n_cols) is scratch memory. */
double whit_float_absmean(const whit_ggml_view *view, float *row);

/* Rounds a row by the weight rule of BitNet (transformers, integrations/bitnet.py): t = clamp(round(w * inverse), -1,
 * 1) in float32, with ties to even. For a matrix that whit_float_is_ternary accepts, inverse is 1 / s. */
void whit_round_ternary(const float *row, uint64_t n_cols, float inverse, int8_t *codes);
/* Like whit_round_ternary, for one row of an F32, F16 or BF16 matrix. */
void whit_round_ternary_row(const whit_ggml_view *view, uint64_t row, float inverse, int8_t *codes);

#endif
