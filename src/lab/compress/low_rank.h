/* SPDX-License-Identifier: MIT
 * Finds a low-rank pair for a matrix's remaining error: the B A that is nearest to D under H, by alternating least
 * squares for the factors: B = D H A^T (A H A^T)^-1, A = (B^T B)^-1 B^T D. Both are rounded to int8 rows, A first, and
 * B is fitted to the rounded A. */
#ifndef WHIT_COMPRESS_LOW_RANK_H
#define WHIT_COMPRESS_LOW_RANK_H

#include "kernels/corrections.h"
#include "linalg/blas.h"

/* Finds a pair for d (m, n) and h (n, n); values (m, n) receives the pair's values. *found: false if d has a lower
 * rank; then there is no pair. */
whit_status whit_low_rank_find(const whit_tensor_type *type, const float *d, const float *h, uint32_t rank,
                               float *values, whit_buf *part_a, whit_buf *part_b, bool *found, const whit_blas *blas,
                               whit_pool *pool, const whit_allocator *allocator, whit_error *error);

#endif
