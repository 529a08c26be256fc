/* SPDX-License-Identifier: MIT
 * What the calibration text says about one input of a layer's matrices.
 *
 * With x the input behind the compressed blocks, x' that of the original and r what the residual stream has
 * lost where the output is added to it:
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
    whit_hessian text, held; /* tokens to fit to, and those kept; held.h NULL: there are none */
    const whit_allocator *allocator;
} whit_hessian_pair;

/* Runs the text up to `value`, and on to `residual` where a layer makes that behind it. `residual` (0: none) is the
 * value that the outputs, of n_out elements, are added to. row_weights (n_batches, n_rows) may be NULL: all tokens
 * count alike. `moved` asks for shift. WHIT_ERROR_NUMERIC names a value of which any sum is no number. */
whit_status whit_hessian_gather(whit_hessian_pair *pair, whit_stream *stream, const whit_blas *blas, whit_ref value,
                                bool moved, whit_ref residual, uint32_t n_out, const float *row_weights,
                                whit_error *error);
/* shift and lost are not needed any more. */
void whit_hessian_drop_shift(whit_hessian *hessian, const whit_allocator *allocator);
void whit_hessian_free(whit_hessian_pair *pair); /* zero-initialised is freed */

#endif
