/* SPDX-License-Identifier: MIT
 * Solves a knapsack with one choice per item: the options of least summed loss whose summed cost is within a budget, by
 * dynamic programming over costs in units of a 65,536th of the budget, rounded up. The rest that rounding leaves is
 * spent on the single changes that save most. */
#ifndef WHIT_COMPRESS_KNAPSACK_H
#define WHIT_COMPRESS_KNAPSACK_H

#include "base/mem.h"
#include "base/status.h"

typedef struct whit_knapsack {
    uint32_t n, stride;           /* number of items; options per row of the arrays, at most 255 */
    const uint8_t *counts;        /* (n) options of each item, at least 1 */
    const double *costs, *losses; /* (n, stride), not negative */
} whit_knapsack;

/* Solves the problem; chosen: (n), out. The error is WHIT_ERROR_LIMIT if even the cheapest options cost more than the
 * budget. */
whit_status whit_knapsack_solve(const whit_knapsack *knapsack, double budget, uint8_t *chosen,
                                const whit_allocator *allocator, whit_error *error);

#endif
