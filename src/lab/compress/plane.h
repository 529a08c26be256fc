/* SPDX-License-Identifier: MIT
 * Finds a second sign plane of a matrix on the columns whose errors weigh most.
 *
 * With D = W* - Q the plane P is a matrix of signs on the columns S: of least error where P H_SS P^T - 2 P (D H)_S^T is
 * least, that is the matrix nearest to T = (D H)_S H_SS^-1 under H_SS. So the plane is solved like any matrix of signs
 * (solve.h), and then codes and plane are refined alternately. */
#ifndef WHIT_COMPRESS_PLANE_H
#define WHIT_COMPRESS_PLANE_H

#include "compress/solve.h"
#include "kernels/corrections.h"

typedef struct whit_plane_search {
    const whit_tensor_type *type;
    const float *target; /* (m, n) W*, for all corrections */
    const float *h;      /* (n, n), damped */
    uint32_t n_columns;  /* number of columns in the plane */
    bool goes_on;        /* starts from the given columns and signs instead of choosing them */
    const float *codes;  /* (m, n) Q */
    uint16_t *columns;   /* (n_columns), in and out */
    int8_t *signs;       /* (m, n_columns), in and out */
    float *scales;       /* (m), in and out */
    float *values;       /* (m, n_columns) out */
} whit_plane_search;

whit_status whit_plane_find(whit_plane_search *search, const whit_blas *blas, whit_pool *pool,
                            const whit_allocator *allocator, whit_error *error);

#endif
