/* SPDX-License-Identifier: MIT
 * Finds the outliers of a matrix: single weights whose correction lowers the error of its outputs most.
 *
 * With D = Q - W* and R = D H, changing weight j of a row by -R_j / H_jj reduces the error by R_j^2 / H_jj. Each row
 * greedily takes its best weight, updates R, and repeats; the best steps of all rows are kept, up to `most`. Then the
 * values are refitted one after the other at fixed positions and rounded to int8 with one scale per tile.
 *
 * Rows are independent; the result does not depend on the number of threads. */
#ifndef WHIT_COMPRESS_OUTLIERS_H
#define WHIT_COMPRESS_OUTLIERS_H

#include "base/threads.h"
#include "kernels/corrections.h"
#include "linalg/blas.h"

typedef struct whit_outlier_search {
    const whit_tensor_type *type;
    const float *target; /* (m, n) W* */
    const float *h;      /* (n, n), damped */
    size_t most;         /* outliers, at most */
    float *values;       /* (m, n) in: Q; out: with the outliers, as the file will have them */
    whit_outlier *list;  /* (most) in and out */
    size_t n;            /* in, if `refit`: number of outliers in the list, whose places stay; out */
    bool refit;
    float *scales; /* (n_tiles) out */
} whit_outlier_search;

whit_status whit_outliers_search(whit_outlier_search *search, const whit_blas *blas, whit_pool *pool,
                                 const whit_allocator *allocator, whit_error *error);

#endif
