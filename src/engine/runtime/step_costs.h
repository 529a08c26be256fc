/* SPDX-License-Identifier: MIT
 * Stores measured times of a session's steps, and predicts from them how many prompt tokens fit into a time budget and
 * how much time more columns take.
 *
 * A step consists of columns, which are tokens whose logits are wanted (tokens of generating sequences, with their
 * guesses), and of prompt tokens. Each prediction is the median of a few recent times, so that one disturbed step
 * changes nothing. A prompt token takes longer at a larger depth (position), because attention reads all keys and
 * values before it; this growth is measured while prompts become longer. Predictions decide how tokens are split into
 * steps, and never change results. */
#ifndef WHIT_RUNTIME_STEP_COSTS_H
#define WHIT_RUNTIME_STEP_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WHIT_COST_SAMPLES = 5,
    WHIT_COST_COLUMNS = 33, /* steps of 1 to 32 columns are measured, steps with more are extrapolated */
    WHIT_COST_CLASSES = 21, /* class k is for prompt pieces (prompt tokens of one step) of 2^k to 2^(k+1) - 1 tokens */
};

/* Last times of one kind of step, in a ring buffer. */
typedef struct whit_cost_samples {
    uint64_t ns[WHIT_COST_SAMPLES];
    uint32_t depth[WHIT_COST_SAMPLES]; /* mean position of the step's prompt tokens; 0 for samples without prompt
                                        * tokens */
    uint32_t n, next;
} whit_cost_samples;

/* Time of a prompt token near the beginning of a prompt, with which later tokens of the same class are compared. */
typedef struct whit_cost_mark {
    uint64_t ns; /* time of a prompt token at `depth`; 0: not set */
    uint32_t depth;
    uint32_t last; /* depth of the last sample of the class */
} whit_cost_mark;

/* All measurements of a session; all zero before the first one. */
typedef struct whit_step_costs {
    whit_cost_samples columns[WHIT_COST_COLUMNS]; /* time of a step without prompt tokens, by its number of columns */
    whit_cost_samples prompts[WHIT_COST_CLASSES]; /* time that one prompt token adds to a step, by the class of the
                                                   * piece */
    whit_cost_mark marks[WHIT_COST_CLASSES];
    whit_cost_samples growth;  /* additional ns per prompt token for each 1,024 positions before it */
    whit_cost_samples guesses; /* time of one guess by the draft model */
    /* For tests: returns the time of a step in ns in place of the clock, or, if n_columns and n_prompt are 0, of one
     * guess by the draft model; NULL: the clock is used. */
    uint64_t (*measure)(void *user, uint32_t n_columns, uint32_t n_prompt, uint32_t depth);
    void *measure_user;
} whit_step_costs;

/* Records the time of a step with n_columns columns and n_prompt prompt tokens. depth, here and below: mean position of
 * the prompt tokens. */
void whit_step_costs_add(whit_step_costs *costs, uint32_t n_columns, uint32_t n_prompt, uint32_t depth, uint64_t ns);
/* _add_guesses records that n_guesses guesses of the draft model took `ns` together; _guess returns the predicted time
 * of one guess in ns, 0: unknown. */
void whit_step_costs_add_guesses(whit_step_costs *costs, uint32_t n_guesses, uint64_t ns);
uint64_t whit_step_costs_guess(const whit_step_costs *costs);
/* Returns the predicted time in ns of a step with n_columns columns and no prompt tokens; 0: unknown. Between measured
 * numbers of columns the time is interpolated; below the smallest one it is the time of that number. Above the largest
 * one, each further column costs as much as two prompt tokens, but at most the mean time of a column. */
uint64_t whit_step_costs_columns(const whit_step_costs *costs, uint32_t n_columns);
/* Returns the predicted time in ns that n_prompt prompt tokens add to a step; 0: unknown. */
uint64_t whit_step_costs_prompt(const whit_step_costs *costs, uint32_t n_prompt, uint32_t depth);
/* Returns the largest number of prompt tokens, 1 to n_max, with which a step of n_columns columns takes at most
 * budget_ns. Prompt tokens always get at least a fifth of the step's time, because prompts would otherwise wait as long
 * as the columns use up the budget. As long as the cost of prompt tokens is unknown, the number is 16 (at most
 * n_max). */
uint32_t whit_step_costs_fit(const whit_step_costs *costs, uint32_t n_columns, uint32_t depth, uint64_t budget_ns,
                             uint32_t n_max);

#endif
