/* SPDX-License-Identifier: MIT
 * Rounds one scale group of latent weights (which may be a row, or a tensor) to the nearest levels of a codec.
 *
 * A codec's levels follow from a group's scales: ternary {-a, 0, a}, signs {-a, a}, q2 and l2 {a s + b e},
 * i8 rows multiples of a. Every weight is rounded to the nearest level. Scales are rounded as the file will hold them,
 * so that training sees the values of the finished model. The gradient passes straight through: it is the gradient of
 * the linear layer at the rounded weights; the gradient of a scale is the sum of its codes times the gradients of their
 * weights. The functions have no state and may be called by any thread. */
#ifndef WHIT_QUANT_QUANTISE_H
#define WHIT_QUANT_QUANTISE_H

#include "base/tensor.h"
#include "kernels/codec.h"
#include "linalg/loops.h"

/* Returns whether these functions, and so training, can round to this type. */
bool whit_quantise_knows(const whit_tensor_type *type);

/* Returns the number of scales per group: 2 for q2 and l2, else 1. */
uint32_t whit_quantise_fields(const whit_tensor_type *type);

/* Computes scales for n latent weights from the weights alone (fields: whit_quantise_fields numbers). */
void whit_quantise_fit(const whit_loops *loops, const whit_tensor_type *type, const float *w, size_t n, float *fields);
/* Improves the scales by one round of Lloyd's method: the weights get the nearest levels of the present scales, then
 * `fields` become the scales with the least squared error for these levels. i8: the scale becomes the largest magnitude
 * / 127. */
void whit_quantise_refit(const whit_loops *loops, const whit_tensor_type *type, const float *w, size_t n,
                         float *fields);
/* Rounds `fields` to the precision of the file, into `stored`; scale a becomes at least 6e-8, the smallest positive
 * f16, except in l2. */
void whit_quantise_stored(const whit_tensor_type *type, const float *fields, float stored[2]);

/* Writes the scales of one group into `rows`, in the form that whit_codec_pack reads. `index` is the number of the
 * group, counted over all rows. */
void whit_quantise_put(const whit_tensor_type *type, const float stored[2], size_t index, const whit_rows *rows);

/* Computes out = w + share * (rounded(w) - w), (n): share 0 keeps the latent weights, share 1 gives the rounded
 * weights. */
void whit_quantise_values(const whit_loops *loops, const whit_tensor_type *type, const float *w, size_t n,
                          const float stored[2], float share, float *out);
/* Rounds the weights (n) to codes, in the form that whit_codec_pack reads. */
void whit_quantise_codes(const whit_tensor_type *type, const float *w, size_t n, const float stored[2], int8_t *codes);
/* Given the gradient `dvalues` (n) of the rounded weights, adds the gradient of the scales to dfields. The codec must
 * not be i8, whose scales are not learned. */
void whit_quantise_scale_gradient(const whit_loops *loops, const whit_tensor_type *type, const float *w, size_t n,
                                  const float stored[2], const float *dvalues, float *dfields);

#endif
