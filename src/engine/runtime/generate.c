/* SPDX-License-Identifier: MIT
 * Loops that run generations: whit_generate runs one to its end, whit_generations_step runs a step of many. */
#include "runtime/generation.h"

#include "base/clock.h"
#include "base/options.h"

enum { STEP_TOKENS = 512 }; /* maximum number of tokens per step; the limit makes cancellation take effect soon */

static uint32_t position_of(const whit_generation *g)
{
    return whit_session_position(g->session, g->options.sequence);
}

/* Returns the time of a step in ns, which began at start_ns, and records it in the session's costs. */
static uint64_t measure_step(whit_session *session, uint32_t n_columns, uint32_t n_prompt, uint32_t depth,
                             uint64_t start_ns)
{
    whit_step_costs *costs = &session->costs;
    uint64_t ns =
        costs->measure ? costs->measure(costs->measure_user, n_columns, n_prompt, depth) : whit_now_ns() - start_ns;
    whit_step_costs_add(costs, n_columns, n_prompt, depth, ns);
    return ns;
}

static whit_status step_one(whit_session *session, whit_generation *g, whit_error *error)
{
    whit_step_token tokens[STEP_TOKENS];
    whit_error reason;
    size_t n;
    g->is_alone = true;
    WHIT_TRY(whit_generation_tokens(g, tokens, STEP_TOKENS, session->options.n_logits, &n, error));
    bool in_prompt = whit_generation_in_prompt(g);
    const uint32_t depth = position_of(g) + (uint32_t)n / 2;
    uint64_t start_ns = whit_now_ns();
    whit_status status = whit_session_step(session, tokens, n, &reason);
    if (status == WHIT_OK) {
        if (in_prompt)
            measure_step(session, 0, (uint32_t)n, depth, start_ns);
        else
            measure_step(session, (uint32_t)n, 0, 0, start_ns);
        return whit_generation_accept(g, 0, error);
    }
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
        whit_generation_text(g, &unread); /* discards the text if on_text is not set */
    }
    if (result) whit_generation_result(g, result);
    whit_generation_close(g);
    return status;
}

/* ---- steps of many generations --------------------------------------------------------------- */

struct gathering {
    whit_step_token tokens[STEP_TOKENS];
    size_t capacity, n, n_logits, n_wanted;
    size_t n_columns;
    size_t prompt_capacity, n_prompt; /* number of prompt tokens that the steps of a call may feed together, and have
                                       * fed so far */
    uint64_t depths;                  /* approximate sum of the positions of the step's prompt tokens */
    size_t n_unfinished;
    size_t share; /* number of tokens per step that are reserved for every prompt */
};

/* Returns the room in a step minus `spare`, which is reserved for other generations; at least 1 if there is any
 * room. */
static size_t room_beside(size_t room, size_t spare)
{
    if (room > spare) return room - spare;
    return room < 1 ? room : 1;
}

/* Adds at most `room` next tokens of a generation to the step, and leaves spare_logits rows of logits to other
 * generations. */
static void gather(struct gathering *step, whit_generation *g, size_t room, size_t spare_logits)
{
    const size_t logits = room_beside(step->n_logits - step->n_wanted, spare_logits);
    if (whit_generation_check(g, NULL) != WHIT_OK) return;
    uint32_t n = whit_generation_want(g, room, logits);
    if (!n) return;
    g->served = true;
    g->i_wanted = step->n_wanted;
    *(whit_generation_in_prompt(g) ? &step->n_prompt : &step->n_columns) += n;
    if (whit_generation_in_prompt(g)) step->depths += (uint64_t)n * (position_of(g) + n / 2);
    for (uint32_t i = 0; i < n; i++) {
        step->tokens[step->n] = whit_generation_wanted(g, i);
        step->n_wanted += step->tokens[step->n++].want_logits;
    }
}

/* Returns whether the next token of a generation needs logits: generated tokens, the last token of a prompt, and all
 * tokens of a prompt whose log-probabilities are wanted. These generations get logits reserved, so that others cannot
 * use up all of them. */
static bool needs_logits(const whit_generation *g)
{
    return !whit_generation_in_prompt(g) || g->options.prompt_logprobs || g->n_fed + 1 == g->n_prompt;
}

/* Passes the step's logits to a generation that had tokens in it, or fails the generation if its logits are not
 * finite. */
static void accept_step(const whit_session *session, whit_generation *g)
{
    whit_error reason;
    if (session->is_damaged[g->options.sequence])
        whit_generation_fail(g,
                             whit_fail(&reason, WHIT_ERROR_NUMERIC,
                                       "the outputs of this answer are not finite: an adapter is too strong, or the "
                                       "model's weights are damaged"),
                             &reason);
    else
        whit_ignore(whit_generation_accept(g, g->i_wanted, NULL)); /* the generation stores the error */
}

static bool is_waiting(const whit_generation *g)
{
    return !g->finished && !g->served;
}

/* Returns the number of tokens that the step reserves for a prompt: step->share, or the rest of the prompt if that is
 * less. */
static size_t reserve_of(const struct gathering *step, const whit_generation *g)
{
    size_t n_left = g->n_prompt - g->n_fed;
    return n_left < step->share ? n_left : step->share;
}

/* Adds tokens of the waiting prompts whose next token needs logits (`needing`), or of the other waiting prompts.
 * *n_needing: number of waiting generations that need logits; *reserved: number of tokens reserved for the prompts that
 * are not yet in the step. */
static void gather_prompts(struct gathering *step, whit_generation *const *all, size_t n, bool needing,
                           size_t *n_needing, size_t *reserved)
{
    for (size_t i = 0; i < n; i++) {
        whit_generation *g = all[i];
        if (!is_waiting(g) || !whit_generation_in_prompt(g) || needs_logits(g) != needing) continue;
        *reserved -= reserve_of(step, g);
        *n_needing -= needing;
        size_t n_left = step->prompt_capacity > step->n_prompt ? step->prompt_capacity - step->n_prompt : 1;
        size_t n_free = step->capacity - step->n;
        gather(step, g, room_beside(n_left < n_free ? n_left : n_free, *reserved), *n_needing);
    }
}

/* Runs one step of the session. Tokens are added first from the generating sequences, then from the prompts whose next
 * token needs logits, then from the other prompts; each gets at least one token while there is room. *n_waiting: number
 * of generations that found no room. */
static whit_status step_many(whit_session *session, whit_generation *const *all, size_t n, struct gathering *step,
                             whit_step_report *report, size_t *n_waiting, whit_error *error)
{
    size_t n_needing = 0, reserved = 0, n_prompt_before = step->n_prompt;
    step->n = step->n_wanted = step->n_columns = 0;
    step->depths = 0;
    for (size_t i = 0; i < n; i++) {
        all[i]->n_offered = 0;
        all[i]->is_alone = step->n_unfinished == 1;
        if (!is_waiting(all[i])) continue;
        n_needing += needs_logits(all[i]);
        if (whit_generation_in_prompt(all[i])) reserved += reserve_of(step, all[i]);
    }
    for (size_t i = 0; i < n; i++)
        if (is_waiting(all[i]) && !whit_generation_in_prompt(all[i])) {
            n_needing--;
            gather(step, all[i], room_beside(step->capacity - step->n, n_needing), n_needing);
        }
    gather_prompts(step, all, n, true, &n_needing, &reserved);
    gather_prompts(step, all, n, false, &n_needing, &reserved);
    *n_waiting = 0;
    for (size_t i = 0; i < n; i++) *n_waiting += is_waiting(all[i]);
    if (!step->n) {
        *n_waiting = 0;
        return WHIT_OK;
    }
    uint32_t n_columns = (uint32_t)step->n_columns, n_prompt = (uint32_t)(step->n_prompt - n_prompt_before);
    const uint32_t depth = n_prompt ? (uint32_t)(step->depths / n_prompt) : 0;
    report->predicted_ns +=
        whit_step_costs_columns(&session->costs, n_columns) + whit_step_costs_prompt(&session->costs, n_prompt, depth);
    uint64_t start_ns = whit_now_ns();
    WHIT_TRY(whit_session_step_each(session, step->tokens, step->n, error));
    report->taken_ns += measure_step(session, n_columns, n_prompt, depth, start_ns);
    report->n_columns += n_columns;
    report->n_prompt_tokens += n_prompt;
    for (size_t i = 0; i < n; i++) {
        if (!all[i]->n_offered) continue;
        bool in_prompt = whit_generation_in_prompt(all[i]);
        all[i]->n_right = 0;
        accept_step(session, all[i]);
        report->n_guessed += in_prompt ? 0 : all[i]->n_guessed;
        report->n_guessed_right += all[i]->n_right;
    }
    return WHIT_OK;
}

/* Chooses how many prompt tokens the steps of a call feed, in all and per prompt. */
static void limit_prompts(const whit_session *session, whit_generation *const *all, size_t n, uint64_t budget_ns,
                          struct gathering *step)
{
    size_t n_generating = 0, n_prompts = 0;
    uint64_t depths = 0, first_depth = 0;
    for (size_t i = 0; i < n; i++) {
        if (all[i]->finished) continue;
        if (whit_generation_in_prompt(all[i])) {
            depths += position_of(all[i]);
            if (!n_prompts) first_depth = position_of(all[i]);
        }
        n_generating += !whit_generation_in_prompt(all[i]);
        n_prompts += whit_generation_in_prompt(all[i]);
    }
    size_t capacity = step->capacity > n_generating ? step->capacity - n_generating : 1;
    if (budget_ns && n_generating) {
        /* Mean position of the prompt tokens: the first prompt gets three quarters of the tokens, and all prompts share
         * the rest. */
        const uint64_t depth = n_prompts ? (3 * first_depth + depths / n_prompts) / 4 : 0;
        capacity = whit_step_costs_fit(&session->costs, (uint32_t)n_generating, (uint32_t)depth, budget_ns,
                                       (uint32_t)capacity);
    }
    step->n_unfinished = n_generating + n_prompts;
    step->prompt_capacity = capacity > n_prompts ? capacity : n_prompts;
    step->share = n_prompts && capacity / 4 > n_prompts ? capacity / 4 / n_prompts : 1;
}

whit_status whit_generations_step_within(whit_session *session, whit_generation *const *generations, size_t n,
                                         uint64_t budget_ns, whit_step_report *report, size_t *n_open,
                                         whit_error *error)
{
    whit_status status = WHIT_OK;
    whit_step_report result = whit_step_report_default();
    size_t n_waiting = 0, n_left = 0;
    WHIT_NEED(session);
    WHIT_NEED_ARRAY(generations, n);
    WHIT_TRY(whit_options_read(&result, sizeof result, report, "whit_step_report", error));
    for (size_t i = 0; i < n; i++) {
        WHIT_NEED(generations[i]);
        if (generations[i]->session != session)
            return whit_fail(error, WHIT_ERROR_ARGUMENT,
                             "generation %zu belongs to another session: all must be of the same", i);
        generations[i]->served = false;
    }
    struct gathering step = {.capacity = session->options.n_batch_tokens, .n_logits = session->options.n_logits};
    if (step.capacity > STEP_TOKENS) step.capacity = STEP_TOKENS;
    limit_prompts(session, generations, n, budget_ns, &step);
    result = whit_step_report_default();
    do status = step_many(session, generations, n, &step, &result, &n_waiting, error);
    while (status == WHIT_OK && n_waiting);
    for (size_t i = 0; i < n; i++) {
        n_left += !generations[i]->finished;
        result.n_prompts_waiting += !generations[i]->finished && whit_generation_in_prompt(generations[i]);
    }
    if (n_open) *n_open = n_left;
    if (report) {
        size_t known = report->struct_bytes < sizeof result ? report->struct_bytes : sizeof result;
        result.struct_bytes = report->struct_bytes;
        memcpy(report, &result, known);
    }
    return status;
}

whit_status whit_generations_step(whit_session *session, whit_generation *const *generations, size_t n, size_t *n_open,
                                  whit_error *error)
{
    return whit_generations_step_within(session, generations, n, 0, NULL, n_open, error);
}

whit_status whit_generations_run(whit_session *session, whit_generation *const *generations, size_t n, uint64_t time_ns,
                                 size_t *n_open, whit_error *error)
{
    const uint64_t begin_ns = whit_now_ns();
    size_t n_left = n;
    whit_status status;
    do status = whit_generations_step(session, generations, n, &n_left, error);
    while (status == WHIT_OK && n_left && whit_now_ns() - begin_ns < time_ns);
    if (n_open) *n_open = n_left;
    return status;
}
