/* SPDX-License-Identifier: MIT
 * Chooses codec, group and corrections of each matrix under a budget of bits per weight, by measured loss.
 *
 * Each matrix is rounded by each candidate with error feedback under the Hessian of the original's inputs; that gives
 * its relative error. The divergence that a matrix costs is measured for one candidate, on held-out windows, with every
 * other matrix as it was, and taken as proportional to the error for the other candidates. A knapsack picks the
 * candidates of least sum. Then the exchanges of bits between two matrices that should cost least are tried on the
 * held-out windows, with all matrices rounded, and kept if the divergence falls.
 *
 * The choice depends on the source, the text and the bits alone. */
#ifndef WHIT_COMPRESS_BUDGET_H
#define WHIT_COMPRESS_BUDGET_H

#include "compress/correct.h"
#include "compress/stream.h"

/* Holds the choice for one tensor of the source. */
typedef struct whit_budget_choice {
    const char *name; /* name of the candidate, "q2 group 64"; NULL: the tensor has no choice */
    whit_tensor_type type;
    whit_correction_sizes sizes;
} whit_budget_choice;

typedef struct whit_budget {
    const whit_source *source;
    double bits; /* per weight of the layers' matrices, corrections and padding counted */
    const int32_t *ids;
    size_t n_ids;
    uint32_t n_tokens; /* tokens per window */
    int32_t bos;
    const whit_tensor_type *embed;
    const char *folder; /* for unnamed files */
    const whit_blas *blas;
    whit_pool *pool;
    const whit_allocator *allocator;
    _Atomic uint64_t *multiply_adds;
    whit_progress_fn *progress; /* NULL: not told */
    void *user;
    whit_budget_choice *choices; /* (n_tensors) out */
    whit_buf text;               /* out: a line per matrix and a summary; the caller frees it */
} whit_budget;

/* The least budget is 1.2 bits per weight. */
#define WHIT_BUDGET_BITS_MIN 1.2

/* Chooses candidates for all matrices. The error is WHIT_ERROR_ARGUMENT if even the smallest candidates need more
 * bits. */
whit_status whit_budget_choose(whit_budget *budget, whit_error *error);

#endif
