/* SPDX-License-Identifier: MIT
 * Compresses one matrix with one Hessian: its corrected target, its codes and scales, its corrections (targets.h,
 * solve.h, correct.h). */
#ifndef WHIT_COMPRESS_MATRIX_H
#define WHIT_COMPRESS_MATRIX_H

#include "compress/correct.h"
#include "compress/targets.h"
#include "compress/within.h"

typedef struct whit_matrix_solve {
    const whit_tensor_type *type;
    const float *w;              /* (m, n) the original's values */
    float *values;               /* (m, n) out: values as stored; without the corrections' rounding */
    whit_hessian_pair *hessians; /* statistics of the matrix's inputs */
    const whit_factor *factor;   /* factor of hessians->text */
    bool moved;                  /* the target is corrected for the inputs' errors */
    uint32_t n_sweeps;           /* sweeps of descent after GPTQ, at most; not used with `descends` */
    bool descends;               /* does the full method's number of sweeps; held-out windows may end them early */
    bool anneals;                /* with descends: the codes are drawn at a falling temperature first */
    whit_within within;          /* receives the share of the matrix that is solved */
    bool only;                   /* no other matrix needs the Hessians' shift, which is freed early */
    whit_correction_sizes sizes;
    /* Results, to be freed by whit_matrix_free: */
    int8_t *codes;
    float *fields;
    uint8_t *fields_u8;
    whit_corrected corrected;
    double error_gptq, error; /* relative errors before and after descent */
    uint32_t sweeps;
} whit_matrix_solve;

/* Solves the matrix. The caller frees the results, on failure, too. */
whit_status whit_matrix_run(whit_matrix_solve *matrix, const whit_blas *blas, whit_pool *pool,
                            const whit_allocator *allocator, whit_error *error);
void whit_matrix_free(whit_matrix_solve *matrix, const whit_allocator *allocator);

#endif
