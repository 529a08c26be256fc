/* SPDX-License-Identifier: MIT */
#include "server/budget.h"

whit_claim_result whit_claim_take(whit_claim *claim, size_t n_bytes)
{
    whit_budget *budget = claim->budget;
    if (!budget) return WHIT_CLAIM_TAKEN;
    if (budget->each_bytes && (claim->bytes > budget->each_bytes || n_bytes > budget->each_bytes - claim->bytes))
        return WHIT_CLAIM_LARGE;
    size_t taken = atomic_load(&budget->taken_bytes);
    do
        if (budget->all_bytes && (taken > budget->all_bytes || n_bytes > budget->all_bytes - taken))
            return WHIT_CLAIM_FULL;
    while (!atomic_compare_exchange_weak(&budget->taken_bytes, &taken, taken + n_bytes));
    claim->bytes += n_bytes;
    return WHIT_CLAIM_TAKEN;
}

void whit_claim_release(whit_claim *claim)
{
    if (claim->budget) atomic_fetch_sub(&claim->budget->taken_bytes, claim->bytes);
    claim->bytes = 0;
}
