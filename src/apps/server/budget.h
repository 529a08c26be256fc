/* SPDX-License-Identifier: MIT
 * Limits the memory of requests, which is counted before it is allocated: one limit is for each request, one for all of
 * them together.
 *
 * Claims are estimates: code that is about to allocate memory whose size a request determines first claims the largest
 * number of bytes that this may take. A claim belongs to one thread; the budget is shared. */
#ifndef WHIT_SERVER_BUDGET_H
#define WHIT_SERVER_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct whit_budget {
    size_t all_bytes, each_bytes; /* all_bytes: limit of all requests together; each_bytes: limit of each request; 0: no
                                   * limit */
    atomic_size_t taken_bytes;
} whit_budget;

typedef struct whit_claim {
    whit_budget *budget; /* NULL: the claim is not limited */
    size_t bytes;
} whit_claim;

typedef enum whit_claim_result {
    WHIT_CLAIM_TAKEN,
    WHIT_CLAIM_LARGE, /* refused: this request would claim more than each_bytes */
    WHIT_CLAIM_FULL,  /* refused: all requests together would claim more than all_bytes */
} whit_claim_result;

/* Adds n_bytes to a claim. If a limit refuses them, the claim stays unchanged. */
whit_claim_result whit_claim_take(whit_claim *claim, size_t n_bytes);
void whit_claim_release(whit_claim *claim); /* gives back the whole claim */

#endif
