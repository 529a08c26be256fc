/* SPDX-License-Identifier: MIT */
#include "runtime/step_costs.h"

enum {
    SAMPLES_ENOUGH = 3,
    FIRST_TOKENS = 16, /* length of the first pieces of a prompt, before anything was measured */
    /* ratio of the time of columns to that of prompt tokens, if the columns alone exceed the budget */
    PROMPT_SHARE = 4,
};

/* ---- samples ------------------------------------------------------------------------------------- */

static void add_sample(whit_cost_samples *samples, uint64_t ns)
{
    samples->ns[samples->next] = ns ? ns : 1;
    samples->next = (samples->next + 1) % WHIT_COST_SAMPLES;
    if (samples->n < WHIT_COST_SAMPLES) samples->n++;
}

/* Returns the lower median; 0 without samples. */
static uint64_t median_sample(const whit_cost_samples *samples)
{
    for (uint32_t i = 0; i < samples->n; i++) {
        uint32_t n_below = 0, n_equal = 0;
        for (uint32_t k = 0; k < samples->n; k++) {
            n_below += samples->ns[k] < samples->ns[i];
            n_equal += samples->ns[k] == samples->ns[i];
        }
        uint32_t middle = (samples->n - 1) / 2;
        if (n_below <= middle && middle < n_below + n_equal) return samples->ns[i];
    }
    return 0;
}

static uint32_t class_of(uint32_t n_tokens)
{
    uint32_t class = 0;
    while (n_tokens >>= 1) class ++;
    return class < WHIT_COST_CLASSES ? class : WHIT_COST_CLASSES - 1;
}

/* ---- predictions ----------------------------------------------------------------------------------- */

/* Returns the predicted ns of a prompt token in a piece of a class; 0: unknown. Smaller classes overestimate it: the
 * least of their times is used until the class has enough samples, of which one may be disturbed. A larger class
 * underestimates it, because smaller pieces reuse a tile of weights less often: a quarter is added for each halving,
 * until the rate has doubled. */
static uint64_t prompt_rate(const whit_step_costs *costs, uint32_t class)
{
    if (costs->prompts[class].n >= SAMPLES_ENOUGH) return median_sample(&costs->prompts[class]);
    uint64_t least = 0;
    for (uint32_t c = 0; c <= class; c++) {
        uint64_t rate = median_sample(&costs->prompts[c]);
        if (rate && (!least || rate < least)) least = rate;
    }
    if (least) return least;
    for (uint32_t c = class + 1; c < WHIT_COST_CLASSES; c++)
        if (costs->prompts[c].n) {
            uint64_t rate = median_sample(&costs->prompts[c]), n_quarters = 4 + c - class;
            return rate * (n_quarters < 8 ? n_quarters : 8) / 4;
        }
    return 0;
}

uint64_t whit_step_costs_prompt(const whit_step_costs *costs, uint32_t n_prompt)
{
    return n_prompt * prompt_rate(costs, class_of(n_prompt));
}

uint64_t whit_step_costs_columns(const whit_step_costs *costs, uint32_t n_columns)
{
    uint32_t at = n_columns < WHIT_COST_COLUMNS - 1 ? n_columns : WHIT_COST_COLUMNS - 1, below = at, above = at;
    while (below && !costs->columns[below].n) below--;
    while (above < WHIT_COST_COLUMNS && !costs->columns[above].n) above++;
    uint64_t least = below ? median_sample(&costs->columns[below]) : 0;
    if (below == n_columns || !n_columns) return least;
    if (above < WHIT_COST_COLUMNS && above > below) {
        uint64_t most = median_sample(&costs->columns[above]);
        if (!below) return most; /* steps with fewer columns take no longer than this one */
        return most <= least ? least : least + (most - least) * (n_columns - below) / (above - below);
    }
    if (!below) return 0;
    uint64_t each = least / below, rate = 2 * prompt_rate(costs, class_of(n_columns));
    return least + (rate && rate < each ? rate : each) * (n_columns - below);
}

uint32_t whit_step_costs_fit(const whit_step_costs *costs, uint32_t n_columns, uint64_t budget_ns, uint32_t n_max)
{
    uint64_t columns_ns = whit_step_costs_columns(costs, n_columns);
    uint64_t left_ns = budget_ns > columns_ns ? budget_ns - columns_ns : 0;
    if (left_ns < columns_ns / PROMPT_SHARE) left_ns = columns_ns / PROMPT_SHARE;
    uint64_t fitting = prompt_rate(costs, 0) ? 1 : FIRST_TOKENS;
    for (uint32_t class = WHIT_COST_CLASSES; class -- > 0;) {
        uint64_t rate = prompt_rate(costs, class), n = rate ? left_ns / rate : 0;
        if (n < 1ull << class) continue;
        uint64_t last = (2ull << class) - 1;
        fitting = n < last ? n : last;
        break;
    }
    if (fitting > n_max) fitting = n_max;
    return fitting ? (uint32_t)fitting : 1;
}

/* ---- measurements ---------------------------------------------------------------------------------- */

void whit_step_costs_add_guesses(whit_step_costs *costs, uint32_t n_guesses, uint64_t ns)
{
    if (n_guesses) add_sample(&costs->guesses, ns / n_guesses);
}

uint64_t whit_step_costs_guess(const whit_step_costs *costs)
{
    return median_sample(&costs->guesses);
}

void whit_step_costs_add(whit_step_costs *costs, uint32_t n_columns, uint32_t n_prompt, uint64_t ns)
{
    if (!n_prompt) {
        if (n_columns && n_columns < WHIT_COST_COLUMNS) add_sample(&costs->columns[n_columns], ns);
        return;
    }
    /* Prompt tokens get the rest of the time after the predicted time of the columns, each at least a quarter of an
     * even share. */
    uint64_t columns_ns = whit_step_costs_columns(costs, n_columns), each_ns = ns / ((uint64_t)n_columns + n_prompt);
    if (!columns_ns) columns_ns = each_ns * n_columns;
    uint64_t rest_ns = ns > columns_ns ? (ns - columns_ns) / n_prompt : 0;
    add_sample(&costs->prompts[class_of(n_prompt)], rest_ns > each_ns / 4 ? rest_ns : each_ns / 4);
}
