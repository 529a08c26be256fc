/* SPDX-License-Identifier: MIT
 * Measured times of a session's steps: how many prompt tokens fit into a time budget, and what more columns cost.
 *
 * A step has columns, tokens whose logits are wanted (of generating sequences, with their drafts), and prompt tokens.
 * Each prediction is the median of a few recent times, so that one disturbed step changes nothing. Predictions choose
 * how tokens are split into steps, never their bits. */
#ifndef WHIT_RUNTIME_STEP_COSTS_H
#define WHIT_RUNTIME_STEP_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WHIT_COST_SAMPLES = 5,
    WHIT_COST_COLUMNS = 33, /* steps of 1 to 32 columns; larger ones are extrapolated */
    WHIT_COST_CLASSES = 21, /* prompt pieces of 2^k to 2^(k+1) - 1 tokens */
};

/* The last times of one kind of step; the oldest is replaced. */
typedef struct whit_cost_samples {
    uint64_t ns[WHIT_COST_SAMPLES];
    uint32_t n, next;
} whit_cost_samples;

/* All zero: nothing was measured yet. */
typedef struct whit_step_costs {
    whit_cost_samples columns[WHIT_COST_COLUMNS]; /* ns of a step without prompt tokens, by its columns */
    whit_cost_samples prompts[WHIT_COST_CLASSES]; /* ns that a prompt token adds to a step, by the piece's class */
    whit_cost_samples guesses;                    /* ns that the draft model takes for a guess */
    /* Replaces the measured time of a step, for tests; NULL: the clock. No columns and no prompt: a guess of the draft
     * model. */
    uint64_t (*measure)(void *user, uint32_t n_columns, uint32_t n_prompt);
    void *measure_user;
} whit_step_costs;

/* Records a step that took `ns`. */
void whit_step_costs_add(whit_step_costs *costs, uint32_t n_columns, uint32_t n_prompt, uint64_t ns);
/* Record n_guesses of the draft model that took `ns` together; return the predicted ns of one, 0 if unknown. */
void whit_step_costs_add_guesses(whit_step_costs *costs, uint32_t n_guesses, uint64_t ns);
uint64_t whit_step_costs_guess(const whit_step_costs *costs);
/* Predicted ns of a step of n_columns without prompt tokens. Between measured numbers of columns it is interpolated;
 * above the largest each further column costs as much as two prompt tokens, or as a column on average. 0: unknown. */
uint64_t whit_step_costs_columns(const whit_step_costs *costs, uint32_t n_columns);
/* Predicted ns that n_prompt tokens add to a step; 0: unknown. */
uint64_t whit_step_costs_prompt(const whit_step_costs *costs, uint32_t n_prompt);
/* Most prompt tokens, at least 1 and at most n_max, with which a step of n_columns takes at most budget_ns. Prompts
 * always get a fifth of a step's time: a budget that the columns use up would keep them waiting. */
uint32_t whit_step_costs_fit(const whit_step_costs *costs, uint32_t n_columns, uint64_t budget_ns, uint32_t n_max);

#endif
