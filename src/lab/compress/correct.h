/* SPDX-License-Identifier: MIT
 * Finds the corrections of a matrix that is solved: its second sign plane, outliers and low-rank pair, one after the
 * other, each for the error that the earlier ones leave; after each, the codes are refined against the target minus the
 * corrections (solve.h). */
#ifndef WHIT_COMPRESS_CORRECT_H
#define WHIT_COMPRESS_CORRECT_H

#include "compress/solve.h"
#include "kernels/corrections.h"

typedef struct whit_correction_sizes {
    uint32_t n_columns; /* columns of the sign plane; 0: no plane */
    size_t n_outliers;  /* at most that many; 0: no outliers */
    uint32_t rank;      /* rank of the low-rank pair; 0: no pair */
} whit_correction_sizes;

typedef struct whit_corrected {
    whit_buf parts[WHIT_PART_COUNT]; /* the caller sets their allocators and frees them */
    size_t n_outliers;
} whit_corrected;

/* Adds corrections to `solve`, which is already solved. Updates its codes and scales; its values become the sum of
 * codes and corrections, and its error becomes the error of that sum. */
whit_status whit_correct(whit_solve *solve, const whit_correction_sizes *sizes, const whit_blas *blas, whit_pool *pool,
                         const whit_allocator *allocator, whit_corrected *corrected, whit_error *error);

#endif
