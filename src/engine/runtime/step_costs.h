/* SPDX-License-Identifier: MIT
 * Keeps measured times of a session's steps: how many prompt tokens fit into a time budget, and what more columns cost.
 *
 * A step consists of columns, which are tokens whose logits are wanted (those of generating sequences, with their
 * drafts), and of prompt tokens. Each prediction is the median of a few recent times, so that one disturbed step
 * changes nothing. A prompt token costs more the deeper it is, since attention reads all keys and values before it: the
 * growth is learned while prompts become longer. Predictions decide how tokens are split into steps, and never change
 * results. */
#ifndef WHIT_RUNTIME_STEP_COSTS_H
#define WHIT_RUNTIME_STEP_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WHIT_COST_SAMPLES = 5,
    WHIT_COST_COLUMNS = 33, /* steps of 1 to 32 columns are measured; larger ones are extrapolated */
    WHIT_COST_CLASSES = 21, /* class k has prompt pieces of 2^k to 2^(k+1) - 1 tokens */
};

/* Holds the last times of one kind of step, as a ring buffer. */
typedef struct whit_cost_samples {
    uint64_t ns[WHIT_COST_SAMPLES];
    uint32_t depth[WHIT_COST_SAMPLES]; /* mean position of the step's prompt tokens; 0 for other samples */
    uint32_t n, next;
} whit_cost_samples;

/* Holds the cost of a prompt token near the beginning of a prompt, to which later tokens of its class are compared. */
typedef struct whit_cost_mark {
    uint64_t ns; /* 0: not set */
    uint32_t depth;
    uint32_t last; /* depth of the last sample of the class */
} whit_cost_mark;

/* Holds all measurements of a session; all zero: nothing was measured yet. */
typedef struct whit_step_costs {
    whit_cost_samples columns[WHIT_COST_COLUMNS]; /* ns of a step without prompt tokens, by its number of columns */
    whit_cost_samples prompts[WHIT_COST_CLASSES]; /* ns that a prompt token adds to a step, by the piece's class */
    whit_cost_mark marks[WHIT_COST_CLASSES];
    whit_cost_samples growth;  /* ns by which a prompt token costs more for each 1,024 positions before it */
    whit_cost_samples guesses; /* ns that the draft model needs for a guess */
    /* Replaces the measured time of a step, for tests; NULL: the clock is used. If n_columns and n_prompt are 0, the
     * time is that of a guess by the draft model. */
    uint64_t (*measure)(void *user, uint32_t n_columns, uint32_t n_prompt, uint32_t depth);
    void *measure_user;
} whit_step_costs;

/* Records the time `ns` of a step. depth, here and below: mean position of its prompt tokens. */
void whit_step_costs_add(whit_step_costs *costs, uint32_t n_columns, uint32_t n_prompt, uint32_t depth, uint64_t ns);
/* Record n_guesses of the draft model that took `ns` together; return the predicted ns of one guess, 0 if unknown. */
void whit_step_costs_add_guesses(whit_step_costs *costs, uint32_t n_guesses, uint64_t ns);
uint64_t whit_step_costs_guess(const whit_step_costs *costs);
/* Returns the predicted ns of a step of n_columns without prompt tokens; 0: unknown. Times between measured numbers of
 * columns are interpolated; above the largest, each further column costs as much as two prompt tokens, or as a column
 * on average. */
uint64_t whit_step_costs_columns(const whit_step_costs *costs, uint32_t n_columns);
/* Returns the predicted ns that n_prompt tokens add to a step; 0: unknown. */
uint64_t whit_step_costs_prompt(const whit_step_costs *costs, uint32_t n_prompt, uint32_t depth);
/* Returns the largest number of prompt tokens, from 1 to n_max, with which a step of n_columns takes at most budget_ns.
 * Prompts always get a fifth of a step's time: a budget that the columns use up would otherwise keep them waiting. */
uint32_t whit_step_costs_fit(const whit_step_costs *costs, uint32_t n_columns, uint32_t depth, uint64_t budget_ns,
                             uint32_t n_max);

#endif
