/* SPDX-License-Identifier: MIT
 * Solves the matrices of a layer's experts. Each expert is solved on its own, with the Hessian of the tokens that the
 * compressed model routes to it. A token counts with the square of its weight in the sum over experts. The Hessian is
 * shrunk towards the mean over all (token, expert) pairs of the layer, as if the expert had received n_cols / 8 more
 * average tokens (the shrinkage of Ledoit, Wolf 2004, with a fixed number of tokens), which matters if it received few.
 * An expert without tokens is rounded to the nearest levels. */
#ifndef WHIT_COMPRESS_EXPERTS_H
#define WHIT_COMPRESS_EXPERTS_H

#include "compress/finished.h"
#include "compress/hessian.h"

typedef struct whit_expert_matrix {
    int32_t param;            /* the tensor with the matrices of all experts, one below the other */
    whit_tensor_type type;    /* type of the whole tensor; the solver must support it */
    whit_finished *finished;  /* output */
    double error_gptq, error; /* output: means over the experts that received tokens, weighted by the number of
                               * tokens */
    uint32_t sweeps;          /* output: largest number of sweeps of an expert */
} whit_expert_matrix;

typedef struct whit_expert_stage {
    whit_stream *stream;
    const whit_blas *blas;
    unsigned stages; /* bits of whit_compress_stage that are used */
    whit_ref input;  /* the value that the matrices multiply */
    /* The residual stream that the sum over a token's experts is added to. The solution then also compensates the error
     * that this stream has already; 0: it does not. */
    whit_ref residual;
    uint32_t n_experts, group;
    uint32_t n;
    whit_expert_matrix matrices[8];
    whit_within within; /* receives the progress, as a share of the experts */
    uint32_t n_unseen;  /* output: number of experts that received no token */
} whit_expert_stage;

/* Solves all experts, in groups whose Hessians fit into 1 GiB together; the text is run once for each group. On failure
 * no matrix is finished. */
whit_status whit_experts_solve(whit_expert_stage *stage, whit_error *error);

#endif
