/* SPDX-License-Identifier: MIT
 * Loops over generations: one to its end, and one step of many. */
#include "runtime/generation.h"

#include "base/options.h"

enum { STEP_TOKENS = 512 }; /* maximum per step, so that cancelling is noticed */

static whit_status step_one(whit_session *session, whit_generation *g, whit_error *error)
{
    whit_step_token tokens[STEP_TOKENS];
    whit_error reason;
    size_t n;
    WHIT_TRY(whit_generation_tokens(g, tokens, STEP_TOKENS, session->options.n_logits, &n, error));
    whit_status status = whit_session_step(session, tokens, n, &reason);
    if (status == WHIT_OK) return whit_generation_accept(g, 0, error);
    whit_generation_fail(g, status, &reason);
    if (error) *error = reason;
    return status;
}

whit_status whit_generate(whit_session *session, whit_sampler *sampler, const int32_t *ids, size_t n_ids,
                          const whit_generate_options *options, whit_generate_result *result, whit_error *error)
{
    whit_generation *g;
    whit_generate_result checked = whit_generate_result_default();
    WHIT_TRY(whit_options_read(&checked, sizeof checked, result, "whit_generate_result", error));
    WHIT_TRY(whit_generation_open(session, sampler, ids, n_ids, options, &g, error));
    whit_status status = WHIT_OK;
    while (status == WHIT_OK && !whit_generation_finished(g)) {
        size_t unread;
        status = step_one(session, g, error);
        whit_generation_text(g, &unread); /* discard the text if on_text is not set */
    }
    if (result) whit_generation_result(g, result);
    whit_generation_close(g);
    return status;
}

/* ---- many ------------------------------------------------------------------------------------ */

struct gathering {
    whit_step_token tokens[STEP_TOKENS];
    size_t capacity, n, n_logits, n_wanted;
};

/* Adds a generation's next tokens to the step, but leaves `spare` tokens and logits to the others. */
static void gather(struct gathering *step, whit_generation *g, size_t spare)
{
    size_t room = step->capacity - step->n, logits = step->n_logits - step->n_wanted;
    room = room > spare ? room - spare : room < 1 ? room : 1;
    logits = logits > spare ? logits - spare : logits < 1 ? logits : 1;
    if (whit_generation_check(g, NULL) != WHIT_OK) return;
    uint32_t n = whit_generation_want(g, room, logits);
    if (!n) return;
    g->served = true;
    g->i_wanted = step->n_wanted;
    for (uint32_t i = 0; i < n; i++) {
        step->tokens[step->n] = whit_generation_wanted(g, i);
        step->n_wanted += step->tokens[step->n++].want_logits;
    }
}

/* Whether the next token needs logits. The last token of a prompt does, and every token if the prompt's
 * log-probabilities are wanted: such a prompt must not depend on the capacity that generating sequences leave. */
static bool needs_logits(const whit_generation *g)
{
    return !whit_generation_in_prompt(g) || g->options.prompt_logprobs || g->n_fed + 1 == g->n_prompt;
}

/* Hands the step's logits to a generation that took part in it. */
static void accept_step(const whit_session *session, whit_generation *g)
{
    whit_error reason;
    if (session->is_damaged[g->options.sequence])
        whit_generation_fail(g,
                             whit_fail(&reason, WHIT_ERROR_NUMERIC,
                                       "the logits of this answer are not finite: an adapter is too strong, or the "
                                       "model's weights or scales are damaged"),
                             &reason);
    else
        (void)whit_generation_accept(g, g->i_wanted, NULL);
}

static bool is_waiting(const whit_generation *g)
{
    return !g->finished && !g->served;
}

/* One step of the session, for those whose next token needs logits and then those in their prompts, a token of each at
 * least; *n_waiting: how many did not fit. */
static whit_status step_many(whit_session *session, whit_generation *const *all, size_t n, size_t *n_waiting,
                             whit_error *error)
{
    struct gathering step = {.capacity = session->options.n_batch_tokens, .n_logits = session->options.n_logits};
    size_t n_needing = 0, n_prompts = 0;
    if (step.capacity > STEP_TOKENS) step.capacity = STEP_TOKENS;
    for (size_t i = 0; i < n; i++) {
        all[i]->n_offered = 0;
        if (!is_waiting(all[i])) continue;
        n_needing += needs_logits(all[i]);
        n_prompts += !needs_logits(all[i]);
    }
    *n_waiting = 0;
    for (size_t i = 0; i < n; i++)
        if (is_waiting(all[i]) && needs_logits(all[i])) {
            gather(&step, all[i], --n_needing);
            *n_waiting += is_waiting(all[i]);
        }
    for (size_t i = 0; i < n; i++)
        if (is_waiting(all[i]) && !needs_logits(all[i])) {
            gather(&step, all[i], --n_prompts);
            *n_waiting += is_waiting(all[i]);
        }
    if (!step.n) return WHIT_OK;
    WHIT_TRY(whit_session_step_each(session, step.tokens, step.n, error));
    for (size_t i = 0; i < n; i++)
        if (all[i]->n_offered) accept_step(session, all[i]);
    return WHIT_OK;
}

whit_status whit_generations_step(whit_session *session, whit_generation *const *generations, size_t n, size_t *n_open,
                                  whit_error *error)
{
    whit_status status = WHIT_OK;
    size_t n_waiting = 0, n_left = 0;
    WHIT_NEED(session);
    WHIT_NEED_ARRAY(generations, n);
    for (size_t i = 0; i < n; i++) {
        WHIT_NEED(generations[i]);
        if (generations[i]->session != session)
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "generation %zu belongs to another session", i);
        generations[i]->served = false;
    }
    do status = step_many(session, generations, n, &n_waiting, error);
    while (status == WHIT_OK && n_waiting);
    for (size_t i = 0; i < n; i++) n_left += !generations[i]->finished;
    if (n_open) *n_open = n_left;
    return status;
}
