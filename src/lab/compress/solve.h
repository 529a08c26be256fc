/* SPDX-License-Identifier: MIT
 * Solves one matrix of a layer: finds codes and scales with a small error of its outputs over the calibration tokens.
 *
 * With Q the rounded matrix and W* its target, the error is tr((Q - W*) H (Q - W*)^T), H = sum of x x^T over the
 * inputs. GPTQ (Frantar et al. 2023) rounds column by column and compensates each error in the columns that follow,
 * using the Cholesky factor U of H's inverse. A group's scales are fitted when its first column is reached; each weight
 * counts with 1 / U_jj^2. Descent then changes one code at a time to the level that is best for the current other
 * codes, and refits the scales by least squares under H. Annealing precedes it: each code is drawn from exp(-error /
 * temperature) over its levels, given all others, while the temperature falls, so that codes can leave the local minima
 * of descent.
 *
 * Rows are independent. They are divided into blocks that do not depend on the number of threads. */
#ifndef WHIT_COMPRESS_SOLVE_H
#define WHIT_COMPRESS_SOLVE_H

#include "base/tensor.h"
#include "compress/within.h"
#include "linalg/blas.h"

typedef struct whit_solve {
    const whit_tensor_type *type; /* must be supported by levels.h (whit_levels_know) */
    const float *target;          /* (m, n) W* */
    /* (n, n) the damped Hessian: in the order of processing during the solve, in the original order afterwards */
    float *h;
    const float *u; /* (n, n) upper triangular, inverse(h) = u^T u; NULL: plain weighted rounding */
    /* For held-out tokens: their Hessian (n, n), ordered like h, and W H plus the products of the correction (m, n).
     * NULL: there are no held-out tokens. */
    float *held_h;
    const float *held_target;
    const uint32_t *order; /* (n) the columns in the order of processing, which keeps groups together, or superblocks if
                            * their scales share factors; NULL: the original order */
    /* number of annealing sweeps before descent; 0: no annealing; ignored for codebooks, with `goes_on`, and without
     * descent */
    uint32_t n_anneal;
    uint32_t n_sweeps;  /* largest number of descent sweeps; 0: no descent */
    whit_within within; /* receives the progress; once it returns false, the results must not be used */
    double begin, end;  /* shares that are reported to `within` at the beginning and at the end of this call */
    bool goes_on;       /* begin with the given codes and scales instead of rounding */
    int8_t *codes;      /* output: (m, n) */
    float *fields;      /* output: (m, row_fields) scales as stored, see whit_codec_geometry */
    uint8_t *fields_u8; /* output: (m, row_bytes); only if scales are bytes */
    float *values;      /* output: (m, n) */
    double error;       /* output: error relative to tr(W* H W*^T) */
    double error_gptq;  /* output: the same before descent */
    uint32_t sweeps;    /* output: number of sweeps that improved the result, including annealing */
} whit_solve;

whit_status whit_solve_run(whit_solve *solve, const whit_blas *blas, whit_pool *pool, const whit_allocator *allocator,
                           whit_error *error);

#endif
