/* SPDX-License-Identifier: MIT
 * Solves the matrices of a layer's experts. Each expert is solved by itself against the Hessian of the tokens that the
 * compressed model routes to it, each weighted by the square of its weight in the sum over experts. An expert that saw
 * few tokens is shrunk towards the mean over all pairs of the layer, as if it had seen n_cols / 8 more of that kind
 * (the shrinkage of Ledoit, Wolf 2004, with a fixed number of tokens). An expert that saw none is rounded plainly. */
#ifndef WHIT_COMPRESS_EXPERTS_H
#define WHIT_COMPRESS_EXPERTS_H

#include "compress/finished.h"
#include "compress/hessian.h"

typedef struct whit_expert_matrix {
    int32_t param;            /* the stacked matrix */
    whit_tensor_type type;    /* type of all rows, which must be one that the solver rounds */
    whit_finished *finished;  /* out */
    double error_gptq, error; /* out: means over the experts that received tokens, weighted by their number of tokens */
    uint32_t sweeps;          /* out: the highest number of sweeps that an expert took */
} whit_expert_matrix;

typedef struct whit_expert_stage {
    whit_stream *stream;
    const whit_blas *blas;
    unsigned stages; /* whit_compress_stage bits */
    whit_ref input;  /* the value that the matrices read */
    /* The sum over a token's experts is added to this residual stream. The solution also compensates the error that
     * this stream already has; 0: it does not. */
    whit_ref residual;
    uint32_t n_experts, group;
    uint32_t n;
    whit_expert_matrix matrices[8];
    whit_within within; /* receives the share of the experts that is solved */
    uint32_t n_unseen;  /* out: experts that saw no token */
} whit_expert_stage;

/* Solves all experts, as many at a time as their Hessians fit into 1 GiB: the text is run again for the next ones. On
 * failure no matrix is finished. */
whit_status whit_experts_solve(whit_expert_stage *stage, whit_error *error);

#endif
