/* SPDX-License-Identifier: MIT
 * Permutes the columns and rows of square matrices in place, because a Hessian of many inputs is too large to be
 * copied. */
#ifndef WHIT_COMPRESS_PERMUTE_H
#define WHIT_COMPRESS_PERMUTE_H

#include <stddef.h>
#include <stdint.h>

#define WHIT_PERMUTE_SCRATCH(n) (2 * (size_t)(n)) /* number of floats of scratch memory */

/* Permutes a matrix: element (i, j) becomes the old element (order[i], order[j]). `scratch` has WHIT_PERMUTE_SCRATCH(n)
 * floats. */
void whit_permute_square(float *square, size_t n, const uint32_t *order, float *scratch);
/* Reverses whit_permute_square: element (order[i], order[j]) becomes the old element (i, j). */
void whit_permute_back(float *square, size_t n, const uint32_t *order, float *scratch);

#endif
