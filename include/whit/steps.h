/* SPDX-License-Identifier: MIT
 * Plans the steps of many generations within a time budget, and chooses the number of guesses by cost, for servers and
 * programs that schedule. Times decide how tokens are split into steps, and never change an output. whit.h does not
 * include it. */
#ifndef WHIT_STEPS_H
#define WHIT_STEPS_H

#include "generation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A value for n_draft_tokens of whit_generate_options: while this generation is the only unfinished one in a call of
 * whit_generate or whit_generations_step, the number of guessed tokens per step (at most 7) is chosen for speed; with
 * others it is 0. It is chosen from the share of earlier guesses that were right and the measured times of the
 * session's steps. */
#define WHIT_DRAFT_BY_COST UINT32_MAX

/* Returns whether a model has a block that predicts one more token (multi-token prediction), so that it can be its own
 * draft model; false if several processes run the model. */
WHIT_API bool whit_model_has_draft_block(const whit_model *model);

/* Opens a session whose generations guess tokens with a draft model (docs/use/performance.md), which must outlive the
 * session. `drafter` is the draft model; `model` itself: the model's own draft block; NULL: no draft model. The error
 * is WHIT_ERROR_UNSUPPORTED if the draft model does not fit the model, or several processes run the model. */
WHIT_API WHIT_CHECKED whit_status whit_session_open_drafting(const whit_model *model,
                                                             const whit_session_options *options,
                                                             const whit_model *drafter, whit_session **session,
                                                             whit_error *error);
/* Predicts the bytes that the draft model adds to a session of whit_session_open_drafting. */
WHIT_API WHIT_CHECKED whit_status whit_session_predict_drafter_bytes(const whit_model *model,
                                                                     const whit_session_options *options,
                                                                     const whit_model *drafter, size_t *bytes,
                                                                     whit_error *error);

/* Holds the counts and times of one call of whit_generations_step_within, which can run several steps. */
typedef struct whit_step_report {
    size_t struct_bytes;
    uint32_t n_columns;         /* tokens of generations past their prompts, guesses included */
    uint32_t n_prompt_tokens;   /* tokens of prompts */
    uint32_t n_prompts_waiting; /* prompts that have tokens left after the call */
    uint64_t taken_ns;
    uint64_t predicted_ns;               /* predicted time of the call, from the times of earlier steps; 0: no
                                          * prediction */
    uint32_t n_guessed, n_guessed_right; /* number of guessed tokens; number of guesses that were right */
} whit_step_report;
static inline whit_step_report whit_step_report_default(void)
{
    whit_step_report report;
    memset(&report, 0, sizeof report);
    report.struct_bytes = sizeof report;
    return report;
}

/* sets the defaults, as the functions of bindings.h do */
WHIT_API size_t whit_step_report_init(void *to, size_t size_bytes);

/* Runs whit_generations_step within a budget: while any generation is past its prompt, a step contains only as many
 * prompt tokens as keep its predicted time within budget_ns (0: no budget), but at least one of each prompt. The
 * prediction is made from the times of earlier steps of the session. Prompts get at least a fifth of the step's time,
 * even if the budget is then exceeded. With several prompts, a quarter of the prompt tokens is divided evenly among
 * them, and the first in the array gets the rest. Outputs do not depend on the budget. `report` may be NULL. */
WHIT_API WHIT_CHECKED whit_status whit_generations_step_within(whit_session *session,
                                                               whit_generation *const *generations, size_t n,
                                                               uint64_t budget_ns, whit_step_report *report,
                                                               size_t *n_open, whit_error *error);

#ifdef __cplusplus
}
#endif
#endif
