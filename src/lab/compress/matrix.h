/* SPDX-License-Identifier: MIT
 * Compresses one matrix with one Hessian: computes its corrected target (targets.h), its codes and scales (solve.h),
 * and its corrections (correct.h). */
#ifndef WHIT_COMPRESS_MATRIX_H
#define WHIT_COMPRESS_MATRIX_H

#include "compress/correct.h"
#include "compress/targets.h"
#include "compress/within.h"

typedef struct whit_matrix_solve {
    const whit_tensor_type *type;
    const float *w; /* (m, n) weights of the original model */
    /* (m, n) output: values as stored; with corrections they may differ from the stored ones in the last bit */
    float *values;
    whit_hessian_pair *hessians; /* statistics of the matrix's inputs */
    const whit_factor *factor;   /* factorisation of hessians->text */
    bool moved;                  /* the target compensates the errors of the inputs */
    uint32_t n_sweeps;           /* largest number of descent sweeps after GPTQ; not used if `descends` */
    bool descends;               /* the number of sweeps is that of the full method; held-out windows may end them
                                  * earlier */
    bool anneals;                /* with `descends`: codes are drawn at a falling temperature first */
    whit_within within;          /* receives the progress, as a share of this matrix */
    bool only;                   /* no other matrix needs the Hessians' `shift` and `lost`, so they are freed early */
    whit_correction_sizes sizes;
    /* Results, which whit_matrix_free frees: */
    int8_t *codes;
    float *fields;
    uint8_t *fields_u8;
    whit_corrected corrected;
    double error_gptq, error; /* relative squared error of the outputs: before descent; at the end, with corrections */
    uint32_t sweeps;
} whit_matrix_solve;

/* Solves the matrix. The caller frees the results, even after a failure. */
whit_status whit_matrix_run(whit_matrix_solve *matrix, const whit_blas *blas, whit_pool *pool,
                            const whit_allocator *allocator, whit_error *error);
void whit_matrix_free(whit_matrix_solve *matrix, const whit_allocator *allocator);

#endif
