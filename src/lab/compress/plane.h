/* SPDX-License-Identifier: MIT
 * Finds a second sign plane of a matrix, for the columns with the largest weighted errors.
 *
 * With D = W* - Q, the plane P is a matrix of scaled signs on the columns S. The error is smallest where tr(P H_SS P^T
 * - 2 P (D H)_S^T) is smallest: P is the matrix nearest to T = (D H)_S H_SS^-1 under H_SS. The plane is therefore
 * solved like any matrix of signs (solve.h). Codes and plane are then refined alternately. */
#ifndef WHIT_COMPRESS_PLANE_H
#define WHIT_COMPRESS_PLANE_H

#include "compress/solve.h"
#include "kernels/corrections.h"

typedef struct whit_plane_search {
    const whit_tensor_type *type;
    const float *target; /* (m, n) W*, the target of codes and corrections together */
    const float *h;      /* (n, n), damped */
    uint32_t n_columns;  /* number of columns of the plane */
    bool goes_on;        /* the given columns and signs are refined, instead of choosing new ones */
    const float *codes;  /* (m, n) Q, the values of the codes */
    uint16_t *columns;   /* (n_columns) input with goes_on, and output */
    int8_t *signs;       /* (m, n_columns) input with goes_on, and output */
    float *scales;       /* (m) input with goes_on, and output */
    float *values;       /* (m, n_columns) output */
} whit_plane_search;

whit_status whit_plane_find(whit_plane_search *search, const whit_blas *blas, whit_pool *pool,
                            const whit_allocator *allocator, whit_error *error);

#endif
