/* SPDX-License-Identifier: MIT
 * Rounds matrices under a diagonal Hessian, or without one: the levels of each group are fitted to its weights by
 * Lloyd's method, each weight counting by the mean square of its input. Without off-diagonal elements no error can be
 * fed back. */
#ifndef WHIT_COMPRESS_WEIGHTED_H
#define WHIT_COMPRESS_WEIGHTED_H

#include "base/threads.h"
#include "compress/finished.h"
#include "compress/within.h"
#include "format/imatrix.h"
#include "model/source.h"

/* Rounds the source's tensor to `type`, for which whit_levels_know (levels.h) must be true; rows are read one at a
 * time. weights (n_cols), NULL: all alike. *error_share is the sum of weights (q - w)^2 over the sum of weights w^2. On
 * failure nothing is allocated; WHIT_ERROR_CANCELLED once `within` answers false. */
whit_status whit_weighted_round(whit_finished *finished, const whit_source *source, const whit_source_tensor *tensor,
                                const whit_tensor_type *type, const float *weights, const whit_within *within,
                                whit_pool *pool, double *error_share, whit_error *error);

/* Reads the mean squares of the inputs of a matrix, (n_cols). Refuses a file that lacks the matrix or has another
 * length for it. */
whit_status whit_weighted_means(const whit_imatrix *imatrix, const whit_source_tensor *tensor, float *means,
                                whit_error *error);
/* Refuses a file with layers that the source does not have. */
whit_status whit_weighted_check(const whit_imatrix *imatrix, const whit_source *source, whit_error *error);

#endif
