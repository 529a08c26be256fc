/* SPDX-License-Identifier: MIT
 * Float matrices that are ternary in disguise: all elements are -s, 0 or s. */
#ifndef WHIT_MODEL_TERNARY_H
#define WHIT_MODEL_TERNARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialised before the first row. */
typedef struct whit_ternary {
    float scale; /* s; 0 while only zeros were seen */
} whit_ternary;

/* Looks at one more row; false as soon as an element is none of -s, 0, s. */
bool whit_ternary_row(whit_ternary *ternary, const float *row, size_t n);
/* The signs of a row that passed. */
void whit_ternary_codes(const float *row, size_t n, int8_t *codes);

#endif
