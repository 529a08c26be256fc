/* SPDX-License-Identifier: MIT
 * Rounds matrices with a diagonal Hessian, or without one. The levels of each group are fitted to its weights by
 * Lloyd's method, and each weight counts with the mean square of its input. A diagonal Hessian does not allow error
 * feedback. */
#ifndef WHIT_COMPRESS_WEIGHTED_H
#define WHIT_COMPRESS_WEIGHTED_H

#include "base/threads.h"
#include "compress/finished.h"
#include "compress/within.h"
#include "format/imatrix.h"
#include "model/source.h"

/* Rounds a tensor of the source to `type`, which levels.h must support (whit_levels_know). Rows are read one at a time.
 * weights (n_cols); NULL: all are 1. *error_share is the sum of weights (q - w)^2 divided by the sum of weights w^2. On
 * failure nothing is allocated; the error is WHIT_ERROR_CANCELLED once `within` has returned false. */
whit_status whit_weighted_round(whit_finished *finished, const whit_source *source, const whit_source_tensor *tensor,
                                const whit_tensor_type *type, const float *weights, const whit_within *within,
                                whit_pool *pool, double *error_share, whit_error *error);

/* Reads the mean squares (n_cols) of a matrix's inputs. Fails if the file lacks the matrix, or has another number of
 * columns for it. */
whit_status whit_weighted_means(const whit_imatrix *imatrix, const whit_source_tensor *tensor, float *means,
                                whit_error *error);
/* Fails if the file has layers that the source does not have. */
whit_status whit_weighted_check(const whit_imatrix *imatrix, const whit_source *source, whit_error *error);

#endif
