/* SPDX-License-Identifier: MIT
 * Compares the knapsack solution for a budget of bits with a search of all combinations. */
#include "compress/knapsack.h"
#include "test.h"

#include "base/rng.h"

enum { N_ITEMS = 5, N_OPTIONS = 4, N_ROUNDS = 24 };

struct random_items {
    double costs[N_ITEMS * N_OPTIONS], losses[N_ITEMS * N_OPTIONS];
    uint8_t counts[N_ITEMS];
};

static whit_knapsack make_items(whit_rng *rng, struct random_items *items)
{
    for (uint32_t i = 0; i < N_ITEMS; i++) items->counts[i] = (uint8_t)(1 + whit_rng_below(rng, N_OPTIONS));
    for (uint32_t i = 0; i < N_ITEMS * N_OPTIONS; i++) {
        items->costs[i] = (double)(1 + whit_rng_below(rng, 4000));
        items->losses[i] = whit_rng_uniform(rng);
    }
    return (whit_knapsack){
        .n = N_ITEMS, .stride = N_OPTIONS, .counts = items->counts, .costs = items->costs, .losses = items->losses};
}

static void add_up(const whit_knapsack *k, const uint8_t *chosen, double *cost, double *loss)
{
    *cost = *loss = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        assert_true(chosen[i] < k->counts[i]);
        *cost += k->costs[i * k->stride + chosen[i]];
        *loss += k->losses[i * k->stride + chosen[i]];
    }
}

/* Returns the least loss within the budget by trying all combinations; negative if no combination fits. */
static double find_least(const whit_knapsack *k, double budget)
{
    double least = -1, cost, loss;
    uint8_t chosen[N_ITEMS];
    for (uint32_t code = 0; code < 1u << (2 * N_ITEMS); code++) {
        bool valid = true;
        for (uint32_t i = 0; i < N_ITEMS; i++) {
            chosen[i] = code >> (2 * i) & 3;
            valid = valid && chosen[i] < k->counts[i];
        }
        if (!valid) continue;
        add_up(k, chosen, &cost, &loss);
        if (cost <= budget && (least < 0 || loss < least)) least = loss;
    }
    return least;
}

static void test_least_loss(void **state)
{
    (void)state;
    whit_rng rng = {42};
    struct random_items items;
    uint32_t n_refused = 0, n_exact = 0, n_solved = 0;
    for (uint32_t round = 0; round < N_ROUNDS; round++) {
        const whit_knapsack k = make_items(&rng, &items);
        const double budget = (double)(1000 + whit_rng_below(&rng, 14000)), least = find_least(&k, budget);
        uint8_t chosen[N_ITEMS];
        double cost, loss;
        whit_error error;
        const whit_status status = whit_knapsack_solve(&k, budget, chosen, NULL, &error);
        if (least < 0) {
            assert_int_equal(status, WHIT_ERROR_LIMIT);
            n_refused++;
            continue;
        }
        assert_int_equal(status, WHIT_OK);
        add_up(&k, chosen, &cost, &loss);
        assert_true(cost <= budget);
        assert_true(loss >= least - 1e-12);
        n_solved++;
        n_exact += loss <= least + 1e-12;
    }
    assert_true(n_refused > 0 && n_solved > N_ROUNDS / 2);
    assert_true(n_exact >= n_solved - 1); /* rounding costs up may lose the best combination */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_least_loss)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
