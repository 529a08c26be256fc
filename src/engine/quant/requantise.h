/* SPDX-License-Identifier: MIT
 * Lossy changes of codec by plain rounding of rows: those that a user asks for by name (embedding, head),
 * and low-bit codecs with their levels fitted to each group. */
#ifndef WHIT_QUANT_REQUANTISE_H
#define WHIT_QUANT_REQUANTISE_H

#include "kernels/codec.h"

/* The type that `codec` gets for a matrix of this shape: i8 and i8s one f32 scale per row, i4 f16
 * scales in groups of 32. */
whit_tensor_type whit_requantise_type(uint8_t codec, uint32_t n_rows, uint32_t n_cols);

/* A row's values as f32, from its content in the terms of `type`. */
void whit_requantise_values(const whit_tensor_type *type, const whit_rows *row, float *values);
/* A row of values into the terms of `type`, made by whit_requantise_type: the scale is the largest magnitude
 * over the largest code, rounded to the scale's own type first. Or another type of whit_quantise_knows with
 * scales per row or group: levels are fitted to each group by least squares. */
void whit_requantise_row(const whit_tensor_type *type, const float *values, const whit_rows *row);
/* Whether numbers are left of finite ones: f16, of weights or of scales, ends at 65,504. */
bool whit_requantise_is_finite(const whit_tensor_type *type, const whit_rows *row);

#endif
