/* SPDX-License-Identifier: MIT
 * A low-rank pair for what a matrix leaves: B A nearest to D under H, by least squares for one factor and the other in
 * turn: B = D H A^T (A H A^T)^-1, A = (B^T B)^-1 B^T D. Both are rounded to int8 rows, A first, and B fitted to it. */
#ifndef WHIT_COMPRESS_LOW_RANK_H
#define WHIT_COMPRESS_LOW_RANK_H

#include "kernels/corrections.h"
#include "linalg/blas.h"

/* d (m, n), h (n, n); values (m, n) gets the pair's. *found: false where d is of lower rank, nothing is there then. */
whit_status whit_low_rank_find(const whit_tensor_type *type, const float *d, const float *h, uint32_t rank,
                               float *values, whit_buf *part_a, whit_buf *part_b, bool *found, const whit_blas *blas,
                               whit_pool *pool, const whit_allocator *allocator, whit_error *error);

#endif
