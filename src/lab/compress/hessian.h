/* SPDX-License-Identifier: MIT
 * Sums statistics of one input of a layer's matrices over the calibration text.
 *
 * Let x be the input that the compressed model computes, x' the original model's input, and r the residual stream's
 * loss: the original's value minus the compressed model's, where the matrix's output is added to the stream.
 *
 *   h = sum of x x^T  shift = sum of (x' - x) x^T  lost = sum of r x^T
 *
 * Then W* = W + (W shift + lost) h^-1 is the matrix that best reproduces the original's outputs from the inputs x (QEP,
 * Arai, Ichikawa 2025), and compensates the stream's loss too. */
#ifndef WHIT_COMPRESS_HESSIAN_H
#define WHIT_COMPRESS_HESSIAN_H

#include "compress/stream.h"

typedef struct whit_hessian {
    uint32_t n, n_out; /* n: number of inputs; n_out: number of rows of `lost`; 0: `lost` is not computed */
    float *h, *shift;  /* (n, n); `shift` is NULL if not computed */
    float *lost;       /* (n_out, n); NULL if not computed */
} whit_hessian;

typedef struct whit_hessian_pair {
    whit_hessian text, held; /* sums over the text to fit to, and over the held-out text; held.h is NULL if nothing is
                              * held out */
    const whit_allocator *allocator;
} whit_hessian_pair;

/* Runs the text up to `value`, or up to `residual` if the layer computes that later. `residual` is the value that the
 * matrices' outputs (n_out elements) are added to; 0: `lost` is not computed. row_weights (n_batches, n_rows) are the
 * weights of tokens; NULL: all are 1. `moved`: `shift` is computed. The error WHIT_ERROR_NUMERIC names a value for
 * which a sum is not finite. The caller frees the pair, even after a failure. */
whit_status whit_hessian_gather(whit_hessian_pair *pair, whit_stream *stream, const whit_blas *blas, whit_ref value,
                                bool moved, whit_ref residual, uint32_t n_out, const float *row_weights,
                                whit_error *error);
/* Statistics of the inputs of experts [first, first + n) of a layer. */
typedef struct whit_hessian_experts {
    uint32_t first, n;
    whit_ref residual;     /* the value that the sum over a token's experts is added to; 0: `lost` is not computed */
    uint32_t n_out;        /* number of elements of `residual` */
    whit_hessian_pair *of; /* (n) statistics of each expert */
    uint64_t *n_pairs;     /* (n) number of (token, expert) pairs of each expert, without held-out ones */
    uint64_t n_all;        /* number of pairs of all experts of the layer, without held-out ones */
    const whit_allocator *allocator;
} whit_hessian_experts;

/* Runs the text up to `value`, which has a row for each (token, expert) pair, or up to the residual if the layer
 * computes that later. The caller sets first, n and residual. A pair counts with the square of its weight. Its x' is
 * the original's row for the same token and expert; if the original routes the token to other experts, the pair adds
 * nothing to `shift`. A token's residual loss is divided among its pairs in proportion to their squared weights.
 * Finally each h is shrunk towards the mean (experts.h). The caller frees *experts, even after a failure. */
whit_status whit_hessian_gather_experts(whit_hessian_experts *experts, whit_stream *stream, const whit_blas *blas,
                                        whit_ref value, bool moved, whit_error *error);
void whit_hessian_free_experts(whit_hessian_experts *experts); /* accepts zero-initialised experts */
/* Frees `shift` and `lost` early. */
void whit_hessian_drop_shift(whit_hessian *hessian, const whit_allocator *allocator);
void whit_hessian_free(whit_hessian_pair *pair); /* accepts a zero-initialised pair */

#endif
