/* SPDX-License-Identifier: MIT */
#include "compress/knapsack.h"

#include <math.h>
#include <string.h>

#define UNITS 65536

/* Solves the problem for the first item, the first two, and so on. least[b] is the smallest loss with a cost of at most
 * b units. picks (n, UNITS + 1) is the item's option in that solution, or 255 if there is no solution. */
static void fill_table(const whit_knapsack *k, double unit, double *least, double *before, uint8_t *picks)
{
    for (uint32_t b = 0; b <= UNITS; b++) least[b] = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        uint8_t *pick = picks + (size_t)i * (UNITS + 1);
        memcpy(before, least, (UNITS + 1) * sizeof *least);
        for (uint32_t b = 0; b <= UNITS; b++) least[b] = INFINITY;
        memset(pick, 255, UNITS + 1);
        for (uint32_t o = 0; o < k->counts[i]; o++) {
            const double units = ceil(k->costs[i * k->stride + o] / unit), loss = k->losses[i * k->stride + o];
            if (units > UNITS) continue;
            const uint32_t cost = (uint32_t)units;
            for (uint32_t b = cost; b <= UNITS; b++) {
                if (before[b - cost] + loss >= least[b]) continue;
                least[b] = before[b - cost] + loss;
                pick[b] = (uint8_t)o;
            }
        }
    }
}

/* Chooses the cheapest option of each item, and the one with the smallest loss of several equally cheap options.
 * Returns the total cost. */
static double choose_cheapest(const whit_knapsack *k, uint8_t *chosen)
{
    double sum = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        const double *costs = k->costs + i * k->stride, *losses = k->losses + i * k->stride;
        chosen[i] = 0;
        for (uint8_t o = 1; o < k->counts[i]; o++)
            if (costs[o] < costs[chosen[i]] || (costs[o] == costs[chosen[i]] && losses[o] < losses[chosen[i]]))
                chosen[i] = o;
        sum += costs[chosen[i]];
    }
    return sum;
}

/* Changes single options as long as the additional cost fits into `room`, each time the option that saves most loss. */
static void spend_rest(const whit_knapsack *k, double room, uint8_t *chosen)
{
    for (;;) {
        double most = 0;
        uint32_t item = 0;
        uint8_t option = 0;
        for (uint32_t i = 0; i < k->n; i++)
            for (uint8_t o = 0; o < k->counts[i]; o++) {
                const size_t now = i * k->stride + chosen[i], then = i * k->stride + o;
                const double saved = k->losses[now] - k->losses[then];
                if (saved <= most || k->costs[then] - k->costs[now] > room) continue;
                most = saved;
                item = i;
                option = o;
            }
        if (!(most > 0)) return;
        room -= k->costs[item * k->stride + option] - k->costs[item * k->stride + chosen[item]];
        chosen[item] = option;
    }
}

whit_status whit_knapsack_solve(const whit_knapsack *k, double budget, uint8_t *chosen, const whit_allocator *a,
                                whit_error *error)
{
    const double least_cost = choose_cheapest(k, chosen);
    if (least_cost > budget)
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "even the smallest types take %g bits, but the budget is %g: allow more bits", least_cost,
                         budget);
    const size_t n_units = UNITS + 1;
    double *least = whit_alloc(a, n_units * sizeof *least), *before = whit_alloc(a, n_units * sizeof *before);
    uint8_t *picks = whit_zalloc_array(a, k->n, n_units);
    whit_status status = WHIT_OK;
    if (!least || !before || !picks) {
        status = whit_fail_memory(error, "a knapsack", k->n * n_units);
    } else {
        const double unit = budget / UNITS;
        fill_table(k, unit, least, before, picks);
        /* Otherwise the cheapest options only fit without rounding up, and stay chosen. */
        if (k->n && isfinite(least[UNITS]))
            for (uint32_t i = k->n, b = UNITS; i-- > 0;) {
                chosen[i] = picks[(size_t)i * n_units + b];
                b -= (uint32_t)ceil(k->costs[i * k->stride + chosen[i]] / unit);
            }
        double sum = 0;
        for (uint32_t i = 0; i < k->n; i++) sum += k->costs[i * k->stride + chosen[i]];
        spend_rest(k, budget - sum, chosen);
    }
    whit_free(a, least, n_units * sizeof *least);
    whit_free(a, before, n_units * sizeof *before);
    whit_free(a, picks, k->n * n_units);
    return status;
}
