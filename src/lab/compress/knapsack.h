/* SPDX-License-Identifier: MIT
 * Solves a knapsack problem in which every item has several options, one of which is chosen: finds the options with the
 * smallest sum of losses whose costs fit into a budget. The method is dynamic programming over costs in units of a
 * 65,536th of the budget, rounded up. The unused rest of the budget is then spent on single changes that save most. */
#ifndef WHIT_COMPRESS_KNAPSACK_H
#define WHIT_COMPRESS_KNAPSACK_H

#include "base/mem.h"
#include "base/status.h"

typedef struct whit_knapsack {
    uint32_t n, stride;           /* number of items; number of options per row of the arrays, at most 255 */
    const uint8_t *counts;        /* (n) number of options of each item, at least 1 */
    const double *costs, *losses; /* (n, stride) cost and loss of each option, not negative */
} whit_knapsack;

/* Solves the problem. chosen: (n), receives the index of each item's option. The error is WHIT_ERROR_LIMIT if even the
 * cheapest options exceed the budget. */
whit_status whit_knapsack_solve(const whit_knapsack *knapsack, double budget, uint8_t *chosen,
                                const whit_allocator *allocator, whit_error *error);

#endif
