/* SPDX-License-Identifier: MIT
 * Changes codecs with loss by plain rounding of rows: conversions that a user requests by name (embedding, head), and
 * low-bit codecs whose levels are fitted to each group. */
#ifndef WHIT_QUANT_REQUANTISE_H
#define WHIT_QUANT_REQUANTISE_H

#include "kernels/codec.h"

/* Returns the type of a matrix of this shape with codec `codec`. Codecs of codes have one f32 scale per row, except i4,
 * which has f16 scales of groups of 32. */
whit_tensor_type whit_requantise_type(uint8_t codec, uint32_t n_rows, uint32_t n_cols);

/* Converts a row of type `type` to f32 values. */
void whit_requantise_values(const whit_tensor_type *type, const whit_rows *row, float *values);
/* Converts a row of values to `type`. Floats are rounded. t2, t5, b1, q2 and l2 types that whit_quantise_knows: levels
 * are fitted to each group by least squares. All others (i8, i8s, i4): the scale of a group or row is the largest
 * magnitude divided by the largest code, rounded to the type of scales, before the codes are computed. */
void whit_requantise_row(const whit_tensor_type *type, const float *values, const whit_rows *row);
/* Returns whether all f16 weights, or all scales, of a row are finite after rounding; the largest f16 is 65,504. f32
 * and bf16 weights are not checked. */
bool whit_requantise_is_finite(const whit_tensor_type *type, const whit_rows *row);

#endif
