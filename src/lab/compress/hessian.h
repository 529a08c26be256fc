/* SPDX-License-Identifier: MIT
 * Statistics of one input of a layer's matrices over the calibration text.
 *
 * Let x be the input after the compressed blocks, x' the original model's input, and r the residual stream's loss at
 * the place where the output is added to it:
 *
 *   h = sum of x x^T     shift = sum of (x' - x) x^T     lost = sum of r x^T
 *
 * so that W* = W + (W shift + lost) h^-1 is the matrix that gives the original's outputs from the inputs that
 * it will see (QEP, Arai, Ichikawa 2025), the stream's own error included. */
#ifndef WHIT_COMPRESS_HESSIAN_H
#define WHIT_COMPRESS_HESSIAN_H

#include "compress/stream.h"

typedef struct whit_hessian {
    uint32_t n, n_out; /* inputs; rows of lost, 0: it is not wanted */
    float *h, *shift;  /* (n, n) */
    float *lost;       /* (n_out, n) */
} whit_hessian;

typedef struct whit_hessian_pair {
    whit_hessian text, held; /* the text to fit to and the held-out text; held.h is NULL if nothing is held out */
    const whit_allocator *allocator;
} whit_hessian_pair;

/* Runs the text up to `value`, and further to `residual` if the layer computes that later. `residual` (0: not used) is
 * the value that the outputs, n_out elements each, are added to. row_weights (n_batches, n_rows); NULL: all tokens have
 * the same weight. `moved` asks for shift. WHIT_ERROR_NUMERIC names a value for which a sum is not finite. */
whit_status whit_hessian_gather(whit_hessian_pair *pair, whit_stream *stream, const whit_blas *blas, whit_ref value,
                                bool moved, whit_ref residual, uint32_t n_out, const float *row_weights,
                                whit_error *error);
/* Frees shift and lost, which are no longer needed. */
void whit_hessian_drop_shift(whit_hessian *hessian, const whit_allocator *allocator);
void whit_hessian_free(whit_hessian_pair *pair); /* zero-initialised is freed */

#endif
