/* SPDX-License-Identifier: MIT */
#include "runtime/step_costs.h"

enum {
    SAMPLES_ENOUGH = 3,
    FIRST_TOKENS = 16, /* number of prompt tokens per step before the cost of prompt tokens is known */
    /* prompt tokens may always take 1 / PROMPT_SHARE of the time of the columns, even if the columns alone exceed the
     * budget */
    PROMPT_SHARE = 4,
    GROWTH_POSITIONS = 1024, /* growth is stored in ns per this number of positions */
    MARK_DISTANCE = 256,     /* smallest difference of depths, in positions, from which growth is computed */
};

/* ---- samples ------------------------------------------------------------------------------------- */

static void add_sample(whit_cost_samples *samples, uint32_t depth, uint64_t ns)
{
    samples->ns[samples->next] = ns ? ns : 1;
    samples->depth[samples->next] = depth;
    samples->next = (samples->next + 1) % WHIT_COST_SAMPLES;
    if (samples->n < WHIT_COST_SAMPLES) samples->n++;
}

/* Returns the lower median of n times; 0 if n is 0. */
static uint64_t median_of(const uint64_t *ns, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t n_below = 0, n_equal = 0;
        for (uint32_t k = 0; k < n; k++) {
            n_below += ns[k] < ns[i];
            n_equal += ns[k] == ns[i];
        }
        uint32_t middle = (n - 1) / 2;
        if (n_below <= middle && middle < n_below + n_equal) return ns[i];
    }
    return 0;
}

static uint64_t median_sample(const whit_cost_samples *samples)
{
    return median_of(samples->ns, samples->n);
}

/* Returns the lower median of the times that the samples would have at `depth`: ns + growth * (depth - depth of the
 * sample) / GROWTH_POSITIONS, at least a quarter of the sample's time and at most four times its time. */
static uint64_t median_at(const whit_step_costs *costs, const whit_cost_samples *samples, uint32_t depth)
{
    const int64_t growth = (int64_t)median_sample(&costs->growth);
    uint64_t moved[WHIT_COST_SAMPLES];
    for (uint32_t i = 0; i < samples->n; i++) {
        const int64_t ns = (int64_t)samples->ns[i], least = (ns + 3) / 4, most = 4 * ns;
        int64_t at = ns + growth * ((int64_t)depth - samples->depth[i]) / GROWTH_POSITIONS;
        if (at < least) at = least;
        moved[i] = (uint64_t)(at < most ? at : most);
    }
    return median_of(moved, samples->n);
}

static uint32_t class_of(uint32_t n_tokens)
{
    uint32_t class = 0;
    while (n_tokens >>= 1) class ++;
    return class < WHIT_COST_CLASSES ? class : WHIT_COST_CLASSES - 1;
}

/* ---- predictions ----------------------------------------------------------------------------------- */

/* Returns the predicted time per prompt token in ns, at `depth` in a piece of a class; 0: unknown. With fewer than
 * SAMPLES_ENOUGH samples of the class, the least time of this class and of smaller ones is used, because smaller pieces
 * take longer per token. Without any of these, the time of the next larger class is used, plus a quarter for each
 * halving of the size (at most twice the time), because smaller pieces reuse a tile of weights less often. */
static uint64_t prompt_rate(const whit_step_costs *costs, uint32_t class, uint32_t depth)
{
    if (costs->prompts[class].n >= SAMPLES_ENOUGH) return median_at(costs, &costs->prompts[class], depth);
    uint64_t least = 0;
    for (uint32_t c = 0; c <= class; c++) {
        uint64_t rate = median_at(costs, &costs->prompts[c], depth);
        if (rate && (!least || rate < least)) least = rate;
    }
    if (least) return least;
    for (uint32_t c = class + 1; c < WHIT_COST_CLASSES; c++)
        if (costs->prompts[c].n) {
            uint64_t rate = median_at(costs, &costs->prompts[c], depth), n_quarters = 4 + c - class;
            return rate * (n_quarters < 8 ? n_quarters : 8) / 4;
        }
    return 0;
}

uint64_t whit_step_costs_prompt(const whit_step_costs *costs, uint32_t n_prompt, uint32_t depth)
{
    return n_prompt * prompt_rate(costs, class_of(n_prompt), depth);
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
        if (!below) return most; /* a step with fewer columns takes at most as long */
        return most <= least ? least : least + (most - least) * (n_columns - below) / (above - below);
    }
    if (!below) return 0;
    uint64_t each = least / below, rate = 2 * prompt_rate(costs, class_of(n_columns), 0);
    return least + (rate && rate < each ? rate : each) * (n_columns - below);
}

uint32_t whit_step_costs_fit(const whit_step_costs *costs, uint32_t n_columns, uint32_t depth, uint64_t budget_ns,
                             uint32_t n_max)
{
    uint64_t columns_ns = whit_step_costs_columns(costs, n_columns);
    uint64_t left_ns = budget_ns > columns_ns ? budget_ns - columns_ns : 0;
    if (left_ns < columns_ns / PROMPT_SHARE) left_ns = columns_ns / PROMPT_SHARE;
    uint64_t fitting = prompt_rate(costs, 0, depth) ? 1 : FIRST_TOKENS;
    for (uint32_t class = WHIT_COST_CLASSES; class -- > 0;) {
        uint64_t rate = prompt_rate(costs, class, depth), n = rate ? left_ns / rate : 0;
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
    if (n_guesses) add_sample(&costs->guesses, 0, ns / n_guesses);
}

uint64_t whit_step_costs_guess(const whit_step_costs *costs)
{
    return median_sample(&costs->guesses);
}

/* Adds a sample of growth, by how much longer a prompt token takes at larger depth, computed from the last samples of a
 * class and the mark of the class, if they are at least MARK_DISTANCE apart. Sets the mark if it is not set. */
static void learn_growth(whit_step_costs *costs, uint32_t class)
{
    const whit_cost_samples *samples = &costs->prompts[class];
    whit_cost_mark *mark = &costs->marks[class];
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t i = 0; i < samples->n; i++) {
        if (samples->depth[i] < least) least = samples->depth[i];
        if (samples->depth[i] > most) most = samples->depth[i];
    }
    const uint32_t depth = least + (most - least) / 2;
    /* the depths differ too much: the samples are from different prompts */
    if (samples->n < SAMPLES_ENOUGH || (most - least) >> class >= 2 * WHIT_COST_SAMPLES) return;
    const uint64_t ns = median_sample(samples);
    if (!mark->ns)
        mark->ns = ns, mark->depth = depth;
    else if (depth >= mark->depth + MARK_DISTANCE)
        add_sample(&costs->growth, 0, (ns > mark->ns ? ns - mark->ns : 0) * GROWTH_POSITIONS / (depth - mark->depth));
}

void whit_step_costs_add(whit_step_costs *costs, uint32_t n_columns, uint32_t n_prompt, uint32_t depth, uint64_t ns)
{
    if (!n_prompt) {
        if (n_columns && n_columns < WHIT_COST_COLUMNS) add_sample(&costs->columns[n_columns], 0, ns);
        return;
    }
    /* The time of the step minus the predicted time of the columns is divided among the prompt tokens; each gets at
     * least a quarter of the mean time per token. */
    uint64_t columns_ns = whit_step_costs_columns(costs, n_columns), each_ns = ns / ((uint64_t)n_columns + n_prompt);
    if (!columns_ns) columns_ns = each_ns * n_columns;
    uint64_t rest_ns = ns > columns_ns ? (ns - columns_ns) / n_prompt : 0;
    const uint32_t class = class_of(n_prompt);
    if (depth < costs->marks[class].last) costs->marks[class].ns = 0; /* another prompt began */
    costs->marks[class].last = depth;
    add_sample(&costs->prompts[class], depth, rest_ns > each_ns / 4 ? rest_ns : each_ns / 4);
    learn_growth(costs, class);
}
