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

/* As n_draft_tokens of whit_generate_options: every step that serves this generation alone guesses as many tokens (7 at
 * most) as pay, by the guesses that were right so far and the measured times of the session's steps. */
#define WHIT_DRAFT_BY_COST UINT32_MAX

/* Returns whether a model has a block that predicts one more token (multi-token prediction), so that it can be its own
 * draft model. */
WHIT_API bool whit_model_has_draft_block(const whit_model *model);

/* Opens a session whose generations guess tokens with a draft model (docs/use/performance.md), which outlives it:
 * `model` itself for its own block. The error is WHIT_ERROR_UNSUPPORTED if it does not fit the model; NULL: no draft
 * model. */
WHIT_API WHIT_CHECKED whit_status whit_session_open_drafting(const whit_model *model,
                                                             const whit_session_options *options,
                                                             const whit_model *drafter, whit_session **session,
                                                             whit_error *error);
/* Predicts the bytes that the draft model adds to such a session. */
WHIT_API WHIT_CHECKED whit_status whit_session_predict_drafter_bytes(const whit_model *model,
                                                                     const whit_session_options *options,
                                                                     const whit_model *drafter, size_t *bytes,
                                                                     whit_error *error);

/* Holds the counts and times of one step of many generations. */
typedef struct whit_step_report {
    size_t struct_bytes;
    uint32_t n_columns;         /* tokens of generating sequences, guesses included */
    uint32_t n_prompt_tokens;   /* tokens of prompts */
    uint32_t n_prompts_waiting; /* prompts that have tokens left after the step */
    uint64_t taken_ns;
    uint64_t predicted_ns;               /* time of this step that earlier steps predicted; 0: no prediction */
    uint32_t n_guessed, n_guessed_right; /* guessed tokens, correctly guessed tokens */
} whit_step_report;
static inline whit_step_report whit_step_report_default(void)
{
    whit_step_report report;
    memset(&report, 0, sizeof report);
    report.struct_bytes = sizeof report;
    return report;
}

WHIT_API size_t whit_step_report_init(void *to, size_t size_bytes); /* as in bindings.h */

/* As whit_generations_step, but while sequences generate it takes only as many prompt tokens as keep the predicted
 * time of the step within budget_ns (0: no budget), one of each prompt at least. Times of earlier steps of the session
 * give the prediction. If the generating sequences alone take longer than the budget, prompts get a fifth of the
 * step's time. Of several prompts each gets an even part of a quarter of these tokens, and the first in the array takes
 * the rest. Outputs do not depend on the budget. `report` may be NULL. */
WHIT_API WHIT_CHECKED whit_status whit_generations_step_within(whit_session *session,
                                                               whit_generation *const *generations, size_t n,
                                                               uint64_t budget_ns, whit_step_report *report,
                                                               size_t *n_open, whit_error *error);

#ifdef __cplusplus
}
#endif
#endif
