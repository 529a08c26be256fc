/* SPDX-License-Identifier: MIT
 * Memory that requests take, counted before it is taken: one bound for a request, one for all of them together.
 *
 * Claims are estimates: whoever is about to allocate by a request's say-so claims as many bytes as that
 * takes at most. A claim belongs to one thread; the budget is shared. */
#ifndef WHIT_SERVER_BUDGET_H
#define WHIT_SERVER_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct whit_budget {
    size_t all_bytes, each_bytes; /* bounds for all requests and for one; 0: no bound */
    atomic_size_t taken_bytes;
} whit_budget;

typedef struct whit_claim {
    whit_budget *budget; /* NULL: memory is not limited */
    size_t bytes;
} whit_claim;

typedef enum whit_claim_result {
    WHIT_CLAIM_TAKEN,
    WHIT_CLAIM_LARGE, /* more than the limit of one request */
    WHIT_CLAIM_FULL,  /* the other requests leave too little memory */
} whit_claim_result;

/* Adds n_bytes to a claim; no effect unless the claim was granted. */
whit_claim_result whit_claim_take(whit_claim *claim, size_t n_bytes);
void whit_claim_release(whit_claim *claim); /* releases the whole claim */

#endif
