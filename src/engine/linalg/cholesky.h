/* SPDX-License-Identifier: MIT
 * Computes Cholesky factors of symmetric positive definite matrices in f32, in blocks with the products of blas.h
 * (Golub, Van Loan, Matrix Computations, section 4.2). Diagonal blocks are factored in double precision. Work is cut by
 * shapes alone, so the results do not depend on the number of threads. */
#ifndef WHIT_LINALG_CHOLESKY_H
#define WHIT_LINALG_CHOLESKY_H

#include "linalg/blas.h"

enum { WHIT_CHOLESKY_BLOCK = 64 };

/* Returns the number of scratch floats that the functions below need for matrices (n, n). */
size_t whit_cholesky_scratch(size_t n);

/* Functions of this type are called on the calling thread before each block of columns that it processes, to show that
 * the work advances. */
typedef void whit_cholesky_fn(void *user);

/* Replaces a (n, n), row-major and symmetric, by L (lower, zeros above) with a = L L^T. Returns false if a is not
 * positive definite or contains NaN; a is then undefined. The precision of `blas` is f32. `tell` may be NULL. */
bool whit_cholesky(const whit_blas *blas, whit_pool *pool, float *a, size_t n, float *scratch, whit_cholesky_fn *tell,
                   void *user);

/* Replaces a by U (upper, zeros below) with inverse(a) = U^T U, the factor that GPTQ uses (Frantar et al. 2023, section
 * 4, step 3), computed by factoring a with rows and columns reversed. `other` (n, n) is scratch, too. Returns false in
 * the same cases as whit_cholesky. */
bool whit_cholesky_of_inverse(const whit_blas *blas, whit_pool *pool, float *a, float *other, size_t n, float *scratch,
                              whit_cholesky_fn *tell, void *user);

#endif
