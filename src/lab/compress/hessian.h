/* SPDX-License-Identifier: MIT
 * Collects statistics of one input of a layer's matrices over the calibration text.
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
    uint32_t n, n_out; /* number of inputs; rows of lost, 0: lost is not computed */
    float *h, *shift;  /* (n, n) */
    float *lost;       /* (n_out, n) */
} whit_hessian;

typedef struct whit_hessian_pair {
    whit_hessian text, held; /* the text to fit to and the held-out text; held.h is NULL if nothing is held out */
    const whit_allocator *allocator;
} whit_hessian_pair;

/* Runs the text up to `value`, and further to `residual` if the layer computes that later. `residual` (0: not used) is
 * the value that the outputs, n_out elements each, are added to. row_weights (n_batches, n_rows); NULL: all tokens have
 * the same weight. With `moved` shift is computed, too. WHIT_ERROR_NUMERIC names a value for which a sum is not
 * finite. */
whit_status whit_hessian_gather(whit_hessian_pair *pair, whit_stream *stream, const whit_blas *blas, whit_ref value,
                                bool moved, whit_ref residual, uint32_t n_out, const float *row_weights,
                                whit_error *error);
/* Holds statistics of the inputs of experts [first, first + n) of a layer. */
typedef struct whit_hessian_experts {
    uint32_t first, n;
    whit_ref residual;     /* the value that the sum over a token's experts is added to; 0: without lost */
    uint32_t n_out;        /* elements of `residual` */
    whit_hessian_pair *of; /* (n) */
    uint64_t *n_pairs;     /* (n) pairs of the text, without held-out ones */
    uint64_t n_all;        /* number of pairs of all experts of the layer */
    const whit_allocator *allocator;
} whit_hessian_experts;

/* Runs the text up to `value`, a value of (token, expert) pairs. The caller sets first, n and residual. A pair's row
 * counts by the square of its weight. Its x' is the original's row for the same token and expert; if the original
 * routes the token to other experts, the pair adds nothing to shift. The pairs of a token divide the token's residual
 * loss by the squares of their weights. Then each h is shrunk towards the mean (experts.h). The caller frees the
 * result, on failure too. */
whit_status whit_hessian_gather_experts(whit_hessian_experts *experts, whit_stream *stream, const whit_blas *blas,
                                        whit_ref value, bool moved, whit_error *error);
void whit_hessian_free_experts(whit_hessian_experts *experts); /* accepts zero-initialised experts */
/* Frees shift and lost, which are no longer needed. */
void whit_hessian_drop_shift(whit_hessian *hessian, const whit_allocator *allocator);
void whit_hessian_free(whit_hessian_pair *pair); /* accepts a zero-initialised pair */

#endif
