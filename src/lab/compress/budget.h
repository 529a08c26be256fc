/* SPDX-License-Identifier: MIT
 * Chooses the codec, the group size and the corrections of each matrix under a budget of bits per weight, by measured
 * loss.
 *
 * Each matrix is rounded to each candidate with error feedback under the Hessian of the original's inputs, which
 * results in the candidate's relative error; only the error of i8 is estimated. For one candidate of each matrix, the
 * divergence that it causes is measured on held-out windows while all other matrices are unrounded. For the other
 * candidates it is estimated in proportion to the error. A knapsack picks the candidates with the smallest sum. Then,
 * in two rounds, a few exchanges, which give one matrix more bits and another fewer and should cost least, are measured
 * on the held-out windows with all matrices rounded; the best of a round is kept if the divergence falls.
 *
 * A run that is resumed with the same options makes the same choice. */
#ifndef WHIT_COMPRESS_BUDGET_H
#define WHIT_COMPRESS_BUDGET_H

#include "compress/correct.h"
#include "compress/stream.h"

/* The choice for one tensor of the source. */
typedef struct whit_budget_choice {
    const char *name; /* name of the chosen candidate, such as "q2 group 64"; NULL: there was no choice for this
                       * tensor */
    whit_tensor_type type;
    whit_correction_sizes sizes;
} whit_budget_choice;

typedef struct whit_budget {
    const whit_source *source;
    double bits; /* bits per weight of the layers' matrices, including corrections and padding */
    const int32_t *ids;
    size_t n_ids;
    uint32_t n_tokens; /* tokens per window */
    int32_t bos;
    const whit_tensor_type *embed;
    const char *folder; /* folder for unnamed files (spool.h) */
    const whit_blas *blas;
    whit_pool *pool;
    const whit_allocator *allocator;
    _Atomic uint64_t *multiply_adds;
    whit_progress_fn *progress; /* NULL: not called */
    void *user;
    whit_budget_choice *choices; /* output: (n_tensors) choices */
    whit_buf text;               /* output: a summary, then one line per matrix; the caller frees it */
} whit_budget;

/* Smallest budget, in bits per weight. */
#define WHIT_BUDGET_BITS_MIN 1.2

/* Chooses a candidate for every matrix. The error is WHIT_ERROR_ARGUMENT if even the smallest candidates need more bits
 * than the budget allows, and WHIT_ERROR_UNSUPPORTED for a model with experts. */
whit_status whit_budget_choose(whit_budget *budget, whit_error *error);

#endif
