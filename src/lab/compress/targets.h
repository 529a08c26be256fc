/* SPDX-License-Identifier: MIT
 * Factorises the Hessian of an input, in the order in which columns are rounded, and computes targets: matrices that
 * compensate the errors of the inputs and of the residual stream (hessian.h). */
#ifndef WHIT_COMPRESS_TARGETS_H
#define WHIT_COMPRESS_TARGETS_H

#include "compress/hessian.h"
#include "compress/within.h"
#include "linalg/blas.h"

typedef struct whit_factor {
    const whit_allocator *allocator;
    uint32_t n, group;
    float *damped; /* (n, n) the Hessian with a larger diagonal */
    float *upper;  /* (n, n) upper triangular factor of its inverse, in the order of processing */
    uint32_t *order;
} whit_factor;

/* Makes the factor of a Hessian, damped by 1 % of the mean of the diagonal, and by ten times as much, up to all of it,
 * if it cannot be factored; after that WHIT_ERROR_NUMERIC names the tensor. `ordered`: whole groups are ordered by the
 * energy of their inputs, else they stay. The hessian's h becomes the factor's. `within` is told a share of 0 at every
 * block of columns; its result is ignored here. */
whit_status whit_factor_make(whit_hessian *hessian, uint32_t group, bool ordered, const char *name,
                             const whit_blas *blas, whit_pool *pool, const whit_allocator *allocator,
                             const whit_within *within, whit_factor *factor, whit_error *error);
void whit_factor_free(whit_factor *factor); /* accepts a zero-initialised factor */

/* Computes target = w + (w shift + lost) h^-1, each (m, n). `scratch` has 2 m n floats. Without `lost`, that term is
 * omitted. */
void whit_target_correct(const whit_factor *factor, const whit_hessian *hessian, bool lost, const float *w, size_t m,
                         const whit_blas *blas, whit_pool *pool, float *target, float *scratch);
/* Computes the products of the wanted outputs and the inputs of held-out tokens: w (h + shift) + lost, (m, n). */
void whit_target_held(const whit_hessian *held, bool lost, const float *w, size_t m, const whit_blas *blas,
                      whit_pool *pool, float *target);

#endif
