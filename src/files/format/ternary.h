/* SPDX-License-Identifier: MIT
 * Reads ternary matrices in other representations: packed into U8 by Hugging Face's BitNet integration, stored as
 * floats, or made ternary by rounding. Nothing is allocated; matrices are read in place. */
#ifndef WHIT_FORMAT_TERNARY_H
#define WHIT_FORMAT_TERNARY_H

#include "format/ggml_types.h"

/* Describes a matrix packed as U8 (n_rows / 4, n_cols): bits 2i, 2i + 1 of byte (r, c) hold W[r + i * n_rows / 4, c] +
 * 1 (shared reference formats.md 3.1). n_rows is a multiple of 4. */
typedef struct whit_packed_ternary {
    const uint8_t *data;
    uint64_t n_rows, n_cols; /* shape of the unpacked matrix */
} whit_packed_ternary;

/* Unpacks the codes (n_cols) of one row: -1, 0, 1. The result is false if the row holds the invalid code 3 (which
 * becomes 2). */
bool whit_packed_ternary_row(const whit_packed_ternary *packed, uint64_t row, int8_t *codes);

/* Returns whether a float matrix holds only -s, 0 and s (s > 0, one for the whole matrix). *scale is s, or 0 for a
 * matrix of zeros. The view is F32, F16 or BF16. */
bool whit_float_is_ternary(const whit_ggml_view *view, float *scale);

/* Returns the mean of |w| over a float matrix, summed in double; NaN if an element is not finite. `row` (n_cols) is
 * scratch memory. */
double whit_float_absmean(const whit_ggml_view *view, float *row);

/* Rounds a row by BitNet's weight rule (transformers, integrations/bitnet.py): t = clamp(round(w * inverse), -1, 1),
 * ties to even, in float32. For a matrix from whit_float_is_ternary use inverse = 1 / s. */
void whit_round_ternary(const float *row, uint64_t n_cols, float inverse, int8_t *codes);
/* Rounds one row of an F32, F16 or BF16 matrix by the same rule as whit_round_ternary. */
void whit_round_ternary_row(const whit_ggml_view *view, uint64_t row, float inverse, int8_t *codes);

#endif
