/* SPDX-License-Identifier: MIT
 * Finds the corrections of a solved matrix: its second sign plane, then its low-rank pair, then its outliers. Each is
 * computed for the error that the earlier ones leave. After each, the codes are refined against the target minus the
 * corrections (solve.h). */
#ifndef WHIT_COMPRESS_CORRECT_H
#define WHIT_COMPRESS_CORRECT_H

#include "compress/solve.h"
#include "kernels/corrections.h"

typedef struct whit_correction_sizes {
    uint32_t n_columns; /* number of columns of the sign plane; 0: no plane */
    size_t n_outliers;  /* largest number of outliers; 0: no outliers */
    uint32_t rank;      /* rank of the low-rank pair; 0: no pair */
} whit_correction_sizes;

typedef struct whit_corrected {
    whit_buf parts[WHIT_PART_COUNT]; /* the caller sets their allocators and frees them */
    size_t n_outliers;
} whit_corrected;

/* Adds corrections to `solve`, which was solved before, and updates its codes and scales. Its values become the sum of
 * codes and corrections, and its error the error of this sum. */
whit_status whit_correct(whit_solve *solve, const whit_correction_sizes *sizes, const whit_blas *blas, whit_pool *pool,
                         const whit_allocator *allocator, whit_corrected *corrected, whit_error *error);

#endif
