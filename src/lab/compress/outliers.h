/* SPDX-License-Identifier: MIT
 * Finds the outliers of a matrix: single weights whose correction lowers the error of its outputs most.
 *
 * With D = Q - W* and R = D H, changing weight j of a row by -R_j / H_jj reduces the error by R_j^2 / H_jj. For each
 * row a greedy search repeatedly takes the best weight and updates R. Of the steps of all rows, the best are kept, up
 * to `most` outliers. Then the values at these positions are refitted one after the other, and rounded to int8 with one
 * scale per tile.
 *
 * Rows are independent, and the result does not depend on the number of threads. */
#ifndef WHIT_COMPRESS_OUTLIERS_H
#define WHIT_COMPRESS_OUTLIERS_H

#include "base/threads.h"
#include "kernels/corrections.h"
#include "linalg/blas.h"

typedef struct whit_outlier_search {
    const whit_tensor_type *type;
    const float *target; /* (m, n) W* */
    const float *h;      /* (n, n), damped */
    size_t most;         /* largest number of outliers */
    float *values;       /* (m, n) input: Q; output: Q with the outliers as the file stores them */
    whit_outlier *list;  /* (most) the outliers; with `refit` also an input */
    size_t n;            /* number of outliers; with `refit` also an input: the positions in the list stay, only their
                          * values are fitted */
    bool refit;
    float *scales; /* output: (n_tiles) */
} whit_outlier_search;

whit_status whit_outliers_search(whit_outlier_search *search, const whit_blas *blas, whit_pool *pool,
                                 const whit_allocator *allocator, whit_error *error);

#endif
