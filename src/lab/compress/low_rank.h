/* SPDX-License-Identifier: MIT
 * Finds a low-rank pair for the remaining error D of a matrix: B A that is nearest to D under H. The factors are
 * computed by alternating least squares: B = D H A^T (A H A^T)^-1, A = (B^T B)^-1 B^T D. Then A is rounded to int8
 * rows, B is fitted to the rounded A, and rounded too. */
#ifndef WHIT_COMPRESS_LOW_RANK_H
#define WHIT_COMPRESS_LOW_RANK_H

#include "kernels/corrections.h"
#include "linalg/blas.h"

/* Finds a pair for d (m, n) and h (n, n). `values` (m, n) receives the values of the pair's product. *found is false,
 * and there is no pair, if d has a lower rank. */
whit_status whit_low_rank_find(const whit_tensor_type *type, const float *d, const float *h, uint32_t rank,
                               float *values, whit_buf *part_a, whit_buf *part_b, bool *found, const whit_blas *blas,
                               whit_pool *pool, const whit_allocator *allocator, whit_error *error);

#endif
