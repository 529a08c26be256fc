/* SPDX-License-Identifier: MIT
 * Solves one matrix of a layer: finds codes and scales whose output error over the calibration tokens is small.
 *
 * With Q the rounded matrix and W* its target, the error is tr((Q - W*) H (Q - W*)^T), H = sum of x x^T over the
 * inputs. GPTQ (Frantar et al. 2023) rounds column by column and adds each error to the columns that follow, along the
 * Cholesky factor of H's inverse; scales of a group are fitted when the walk comes to it, each weight by its loss 1 /
 * U_jj^2. Descent then moves one code at a time to the level that is best for the other codes as they are, and refits
 * the scales by least squares under H. Annealing before it relaxes the codes: each is drawn from exp(-error /
 * temperature) over its levels, given all others, while the temperature falls, so that codes leave the local minima of
 * descent.
 *
 * Rows are independent: they are partitioned into blocks that do not depend on the number of threads. */
#ifndef WHIT_COMPRESS_SOLVE_H
#define WHIT_COMPRESS_SOLVE_H

#include "base/tensor.h"
#include "compress/within.h"
#include "linalg/blas.h"

typedef struct whit_solve {
    const whit_tensor_type *type; /* a type for which whit_levels_know (levels.h) is true */
    const float *target;          /* (m, n) W* */
    /* The damped Hessian (n, n) is in the order of processing during the solve, then in the original order. */
    float *h;
    const float *u; /* (n, n) upper, inverse(h) = u^T u; NULL: plain weighted rounding */
    /* For held-out tokens, these are their Hessian, like h, and W H plus the correction's products, (n, n) and (m, n).
     * NULL means that they are not used. */
    float *held_h;
    const float *held_target;
    const uint32_t *order; /* (n) columns in the order of the walk, whole groups, or superblocks where scales share
                            * factors; NULL: as they are */
    uint32_t n_anneal;     /* sweeps of annealing before descent; 0: no annealing; codebooks have none */
    uint32_t n_sweeps;     /* descent sweeps, at most; 0: no descent */
    whit_within within;    /* receives the share of the sweeps; once it returns false, the results must not be used */
    double begin, end;     /* shares of `within` at the beginning and end of this call */
    bool goes_on;          /* starts from the given codes and scales instead of rounding anew */
    int8_t *codes;         /* out: (m, n) */
    float *fields;         /* out: (m, row_fields) of the geometry, as stored */
    uint8_t *fields_u8;    /* out: (m, row_bytes); only where scales are bytes */
    float *values;         /* out: (m, n) */
    double error;          /* out: relative to tr(W* H W*^T) */
    double error_gptq;     /* out: before descent */
    uint32_t sweeps;       /* out: number of sweeps that improved the result, including annealing */
} whit_solve;

whit_status whit_solve_run(whit_solve *solve, const whit_blas *blas, whit_pool *pool, const whit_allocator *allocator,
                           whit_error *error);

#endif
