/* SPDX-License-Identifier: MIT
 * Runs one generation as a state machine: it offers the next tokens to feed, then consumes their logits.
 *
 * Once the prompt is fed, only the first offered token is certain; the others are guesses. Their logits
 * pass through the stages and the sampler in order, as long as each pick equals the guess, so that every
 * pick sees the state that it would see without guesses.
 *
 * Callbacks run in the host's floating-point environment; only steps and picks switch to the library's environment. */
#include "runtime/generation.h"

#include "base/clock.h"
#include "base/options.h"

#define TEXT_BYTES       4096 /* bytes that are reserved at opening for text that is held back */
#define MAX_TOP_LOGPROBS 1024
/* maximum number of generated tokens in the history of an endless session; at least the newest half is kept */
#define KEPT_TOKENS 65536

static whit_status read_options(const whit_session *session, const whit_generate_options *given, size_t n_ids,
                                whit_generate_options *o, whit_error *error)
{
    *o = whit_generate_options_default();
    WHIT_TRY(whit_options_read(o, sizeof *o, given, "whit_generate_options", error));
    if (n_ids == 0) return whit_fail(error, WHIT_ERROR_ARGUMENT, "the prompt is empty: give at least one token (BOS)");
    WHIT_TRY(whit_session_check_sequence(session, o->sequence, error));
    uint32_t position = whit_session_position(session, o->sequence), n_ctx = session->options.n_ctx_tokens;
    if (o->n_present && (o->n_present >= n_ids || o->n_present != position))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "of the %zu tokens, %u should be in the sequence already, but the sequence has %u", n_ids,
                         o->n_present, position);
    if (n_ids - o->n_present > whit_session_room(session, o->sequence))
        return whit_fail(error, WHIT_ERROR_LIMIT,
                         "the prompt has %zu tokens, the context of %u has room for %u: shorten it, or choose a larger "
                         "context",
                         n_ids, n_ctx, n_ctx - position + o->n_present);
    if (o->prompt_logprobs && o->n_present)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "prompt_logprobs needs n_present 0: tokens already in the sequence have no log-probabilities");
    if (o->n_top_logprobs > MAX_TOP_LOGPROBS || o->n_top_logprobs > session->model->config.n_vocab)
        return whit_fail(
            error, WHIT_ERROR_ARGUMENT,
            "log-probabilities of the %u likeliest tokens are too many: at most %u are possible", o->n_top_logprobs,
            session->model->config.n_vocab < MAX_TOP_LOGPROBS ? session->model->config.n_vocab : MAX_TOP_LOGPROBS);
    /* more tokens than fit into the context */
    if (o->n_tokens > n_ctx && !session->options.endless) o->n_tokens = n_ctx + 1;
    if (o->n_draft_tokens == WHIT_DRAFT_BY_COST) return WHIT_OK;
    if (o->n_draft_tokens > WHIT_DRAFT_MAX) o->n_draft_tokens = WHIT_DRAFT_MAX;
    /* With recurrent layers only the last WHIT_STATE_BACK_TOKENS tokens of a step can be undone. */
    if (session->kv.state.sequence_elems && o->n_draft_tokens > WHIT_STATE_BACK_TOKENS - 1)
        o->n_draft_tokens = WHIT_STATE_BACK_TOKENS - 1;
    return WHIT_OK;
}

static whit_status copy_stages(whit_generation *g, whit_error *error)
{
    size_t n = g->options.n_stages;
    if (!n) return WHIT_OK;
    if (!g->options.stages) return whit_fail(error, WHIT_ERROR_ARGUMENT, "n_stages is %zu, but stages is NULL", n);
    g->stages = whit_zalloc_array(g->allocator, n, sizeof *g->stages);
    g->edited = whit_zalloc_array(g->allocator, g->session->model->config.n_vocab, sizeof *g->edited);
    if (!g->stages || !g->edited) return whit_fail_memory(error, "the stages", n * sizeof *g->stages);
    for (size_t i = 0; i < n; i++) {
        if (!g->options.stages[i]) return whit_fail(error, WHIT_ERROR_ARGUMENT, "stages[%zu] is NULL", i);
        WHIT_TRY(whit_options_read(&g->stages[i], sizeof *g->stages, g->options.stages[i], "whit_stage", error));
    }
    return WHIT_OK;
}

static whit_status keep_logprobs(whit_generation *g, whit_error *error)
{
    if (g->options.prompt_logprobs) {
        if (!whit_mul_size(g->n_prompt, 1 + (size_t)g->options.n_top_logprobs, &g->n_prompt_logprobs))
            g->n_prompt_logprobs = SIZE_MAX;
        g->prompt_logprobs = whit_zalloc_array(g->allocator, g->n_prompt_logprobs, sizeof *g->prompt_logprobs);
        if (!g->prompt_logprobs) return whit_fail_memory(error, "log-probabilities of the prompt", 0);
    }
    if (!g->options.logprobs) return WHIT_OK;
    g->n_logprobs = (size_t)g->options.n_tokens * (1 + g->options.n_top_logprobs);
    g->logprobs = whit_zalloc_array(g->allocator, g->n_logprobs ? g->n_logprobs : 1, sizeof *g->logprobs);
    return g->logprobs ? WHIT_OK
                       : whit_fail_memory(error, "the log-probabilities", g->n_logprobs * sizeof *g->logprobs);
}

/* Feeds the prompt to the detokenizer and discards its text, so that the first generated token is detokenized as a
 * continuation: with its space, and with the bytes of a character that the prompt left incomplete. */
static whit_status prime(whit_generation *g, const int32_t *ids, size_t n_ids, whit_error *error)
{
    const char *text;
    size_t n;
    if (!whit_model_has_tokenizer(g->session->model)) return WHIT_OK;
    WHIT_TRY(whit_detokenizer_open(g->session->model, !g->options.keep_special, &g->detokenizer, error));
    for (size_t i = 0; i < n_ids; i++) WHIT_TRY(whit_detokenizer_push(g->detokenizer, ids[i], &text, &n, error));
    return WHIT_OK;
}

static whit_status prepare_prompt(whit_generation *g, const int32_t *ids, size_t n_ids, whit_error *error)
{
    const whit_generate_options *o = &g->options;
    for (size_t i = 0; i < n_ids; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= g->session->model->config.n_vocab)
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "token %d is not in the vocabulary of %u tokens", ids[i],
                             g->session->model->config.n_vocab);
    WHIT_TRY(whit_held_open(o->stop, o->n_stop, TEXT_BYTES, g->allocator, &g->held, error));
    const size_t n_kept = g->session->options.endless && o->n_tokens > KEPT_TOKENS ? KEPT_TOKENS : o->n_tokens;
    WHIT_TRY(whit_draft_open(n_ids + n_kept, g->allocator, &g->all, error));
    if (o->n_end_ids > sizeof g->end_ids / sizeof *g->end_ids || (o->n_end_ids && !o->end_ids))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "n_end_ids is %zu: at most 16 are possible, and end_ids must not be NULL", o->n_end_ids);
    if (o->n_end_ids) memcpy(g->end_ids, o->end_ids, o->n_end_ids * sizeof *g->end_ids);
    WHIT_TRY(copy_stages(g, error));
    WHIT_TRY(keep_logprobs(g, error));
    WHIT_TRY(prime(g, ids, n_ids, error));
    for (size_t i = 0; i < n_ids; i++) {
        whit_draft_push(&g->all, ids[i]);
        whit_sampler_accept(g->sampler, ids[i]);
    }
    return WHIT_OK;
}

whit_status whit_generation_open(whit_session *session, whit_sampler *sampler, const int32_t *ids, size_t n_ids,
                                 const whit_generate_options *options, whit_generation **out, whit_error *error)
{
    WHIT_NEED(out);
    *out = NULL;
    if (!session || !sampler || (n_ids && !ids))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "a generation needs a session, a sampler and a prompt");
    if (!session->plan.output)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "the session has no logits: open it without only_vectors");
    whit_generate_options own;
    WHIT_TRY(read_options(session, options, n_ids, &own, error));
    whit_generation *g = whit_zalloc(session->allocator, sizeof *g);
    if (!g) return whit_fail_memory(error, "the generation", sizeof *g);
    *g = (whit_generation){.session = session,
                           .sampler = sampler,
                           .allocator = session->allocator,
                           .options = own,
                           .n_prompt = n_ids,
                           .n_fed = own.n_present,
                           .n_settled = whit_session_position(session, own.sequence),
                           .result = whit_generate_result_default()};
    whit_status status = prepare_prompt(g, ids, n_ids, error);
    if (status != WHIT_OK) {
        whit_generation_close(g);
        return status;
    }
    *out = g;
    return WHIT_OK;
}

void whit_generation_close(whit_generation *g)
{
    if (!g) return;
    whit_detokenizer_close(g->detokenizer);
    whit_held_close(&g->held);
    whit_draft_close(&g->all);
    whit_free(g->allocator, g->stages, g->options.n_stages * sizeof *g->stages);
    whit_free(g->allocator, g->edited, g->session->model->config.n_vocab * sizeof *g->edited);
    whit_free(g->allocator, g->prompt_logprobs, g->n_prompt_logprobs * sizeof *g->prompt_logprobs);
    whit_free(g->allocator, g->logprobs, (g->n_logprobs ? g->n_logprobs : 1) * sizeof *g->logprobs);
    whit_free(g->allocator, g, sizeof *g);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Passes text that is no longer held back to on_text, if set; returns false if the host asks to stop. */
static bool give_text(whit_generation *g)
{
    if (!g->options.on_text) return true;
    size_t n;
    const char *text = whit_held_take(&g->held, &n);
    return !n || g->options.on_text(g->options.user, text, n);
}

/* Finishes the generation for the reason `how`: removes unconfirmed guesses from the sequence, and emits the text that
 * was held back, except after a stop string or if on_text asked to stop. */
static whit_status finish_generation(whit_generation *g, whit_finish how, whit_error *error)
{
    whit_status status = WHIT_OK;
    const char *text = NULL;
    size_t n = 0;
    g->finished = true;
    g->result.finish = how;
    g->result.i_stop = g->held.i_stop;
    if (whit_session_position(g->session, g->options.sequence) > g->n_settled)
        status = whit_session_truncate(g->session, g->options.sequence, g->n_settled, error);
    if (status == WHIT_OK && !whit_generation_in_prompt(g))
        whit_session_keep_mark(g->session, g->options.sequence, g->n_settled);
    g->n_offered = 0;
    if (!g->detokenizer || g->held.stopped || g->refused) return status;
    whit_status flushed = whit_detokenizer_flush(g->detokenizer, &text, &n, status == WHIT_OK ? error : NULL);
    if (flushed != WHIT_OK) n = 0;
    whit_status added = whit_held_add(&g->held, text, n, true, flushed == WHIT_OK ? error : NULL);
    give_text(g);
    WHIT_TRY(status);
    return flushed != WHIT_OK ? flushed : added;
}

/* Finishes the generation with an error, which is stored in it and copied to `error`; returns `status`. */
static whit_status fail_generation(whit_generation *g, whit_status status, const whit_error *reason, whit_error *error)
{
    g->error = *reason;
    g->error.status = status;
    finish_generation(g, status == WHIT_ERROR_CANCELLED ? WHIT_FINISH_CANCELLED : WHIT_FINISH_FAILED, NULL);
    if (error) *error = g->error;
    return status;
}

/* ---- offering tokens ------------------------------------------------------------------------- */

static uint32_t n_top_of(const whit_generation *g)
{
    return g->options.n_stages || g->options.logprobs || g->options.prompt_logprobs ? 0
                                                                                    : whit_sampler_n_top(g->sampler);
}

/* Copies at most n_most guesses of the draft model to g->guessed and returns their number. The draft model computes
 * them at the first call of a step. */
static uint32_t guess_by_model(whit_generation *g, uint32_t n_most)
{
    whit_session *s = g->session;
    if (!g->model.is_made && n_most) {
        const uint64_t start_ns = whit_now_ns();
        g->model.n = whit_drafter_guess(s->drafter, g->options.sequence, g->n_settled, g->next, n_most, g->model.ids,
                                        s->options.cancel);
        g->model.is_made = true;
        g->model.made_ns = whit_now_ns() - start_ns;
        if (s->costs.measure) g->model.made_ns = g->model.n * s->costs.measure(s->costs.measure_user, 0, 0, 0);
        whit_step_costs_add_guesses(&s->costs, g->model.n, g->model.made_ns);
    }
    const uint32_t n = g->model.n < n_most ? g->model.n : n_most;
    memcpy(g->guessed, g->model.ids, n * sizeof *g->guessed);
    return n;
}

/* Guesses tokens with the draft model and returns their number, which whit_draft_choose chooses from their odds and the
 * measured times. */
static uint32_t guess_by_cost(whit_generation *g, uint32_t n_most)
{
    const whit_session *s = g->session;
    const float odds = whit_draft_odds_of(&g->model.odds, WHIT_DRAFT_MATCH_MODEL);
    uint64_t guess_ns = whit_step_costs_guess(&s->costs);
    /* if unknown, half of a step's time is assumed */
    if (!guess_ns) guess_ns = whit_step_costs_columns(&s->costs, 1) / 2 + 1;
    const uint32_t n = guess_by_model(g, whit_draft_choose(&s->draft, &s->costs, odds, n_most, guess_ns));
    whit_draft_odds_watch(&g->model.odds, g->guessed, n, WHIT_DRAFT_MATCH_MODEL);
    return n;
}

/* Guesses the tokens after g->next, no more than can be used, and returns their number. capacity: number of tokens,
 * including g->next, that the step can contain. */
static uint32_t guess(whit_generation *g, size_t capacity)
{
    const whit_session *s = g->session;
    const bool has_model = s->drafter && !g->all.script;
    const bool by_cost = g->options.n_draft_tokens == WHIT_DRAFT_BY_COST;
    uint32_t most = by_cost ? WHIT_DRAFT_BY_COST_MAX : g->options.n_draft_tokens,
             left = g->options.n_tokens - g->result.n_generated_tokens;
    uint32_t room = whit_session_room(g->session, g->options.sequence);
    if (most > capacity - 1) most = (uint32_t)(capacity - 1);
    if (most > left - 1) most = left - 1;
    if (most > room - 1) most = room - 1;
    if (!most) return 0;
    if (!by_cost) return has_model ? guess_by_model(g, most) : whit_draft_guess(&g->all, most, g->guessed, NULL);
    uint32_t n_matched, n = whit_draft_guess(&g->all, WHIT_DRAFT_BY_COST_MAX, g->guessed, &n_matched);
    whit_draft_odds_watch(&g->odds, g->guessed, n, n_matched);
    if (!g->is_alone) return 0;
    const float odds = whit_draft_odds_of(&g->odds, n_matched);
    const uint32_t n_looked_up = whit_draft_choose(&s->draft, &s->costs, odds, n < most ? n : most, 0);
    return n_looked_up || !has_model ? n_looked_up : guess_by_cost(g, most);
}

uint32_t whit_generation_want(whit_generation *g, size_t capacity, size_t n_logits)
{
    g->n_offered = 0;
    if (g->finished || !capacity) return 0;
    if (whit_generation_in_prompt(g)) {
        size_t left = g->n_prompt - g->n_fed;
        if (left > capacity) left = capacity;
        if (g->options.prompt_logprobs && left > n_logits) left = n_logits;
        if (left == g->n_prompt - g->n_fed && !n_logits) left--;
        g->n_offered = left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
    } else if (n_logits) {
        g->n_guessed = guess(g, capacity < n_logits ? capacity : n_logits);
        g->n_offered = 1 + g->n_guessed;
    }
    return g->n_offered;
}

whit_step_token whit_generation_wanted(const whit_generation *g, uint32_t i)
{
    whit_step_token token = {.sequence = g->options.sequence, .n_top = n_top_of(g)};
    if (whit_generation_in_prompt(g)) {
        token.id = g->all.history[g->n_fed + i];
        token.want_logits = g->options.prompt_logprobs || g->n_fed + i + 1 == g->n_prompt;
    } else {
        token.id = i ? g->guessed[i - 1] : g->next;
        token.want_logits = true;
    }
    return token;
}

whit_status whit_generation_check(whit_generation *g, whit_error *error)
{
    whit_error reason;
    if (g->finished) return WHIT_OK;
    if (!g->start_ns) g->start_ns = whit_now_ns();
    uint32_t position = whit_session_position(g->session, g->options.sequence);
    if (position != g->n_settled)
        return fail_generation(
            g,
            whit_fail(&reason, WHIT_ERROR_ARGUMENT,
                      "sequence %u has %u tokens, but the generation left it with %u: only its steps may change it",
                      g->options.sequence, position, g->n_settled),
            &reason, error);
    if (whit_session_room(g->session, g->options.sequence)) return WHIT_OK;
    return fail_generation(g,
                           whit_fail(&reason, WHIT_ERROR_LIMIT, "the context of %u tokens is full: choose a larger one",
                                     g->session->options.n_ctx_tokens),
                           &reason, error);
}

whit_status whit_generation_tokens_strided(whit_generation *g, void *tokens, size_t capacity, size_t stride_bytes,
                                           size_t n_logits, size_t *n_tokens, whit_error *error)
{
    WHIT_NEED(n_tokens);
    *n_tokens = 0;
    WHIT_NEED(g);
    WHIT_NEED_ARRAY(tokens, capacity);
    if (stride_bytes < WHIT_STEP_TOKEN_MIN_BYTES)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "an element of tokens has %zu bytes, fewer than a whit_step_token",
                         stride_bytes);
    WHIT_TRY(whit_generation_check(g, error));
    uint32_t n = whit_generation_want(g, capacity, n_logits);
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *element = (uint8_t *)tokens + i * stride_bytes;
        whit_step_token token = whit_generation_wanted(g, i);
        memset(element, 0, stride_bytes);
        memcpy(element, &token, stride_bytes < sizeof token ? stride_bytes : sizeof token);
    }
    *n_tokens = n;
    return WHIT_OK;
}

/* ---- consuming logits ------------------------------------------------------------------------ */

static whit_status pick(whit_generation *g, size_t i_wanted, int32_t *id, whit_error *error)
{
    const float *logits = whit_session_logits(g->session, i_wanted), *raw = logits;
    uint32_t n_vocab = g->session->model->config.n_vocab, n_top = g->options.n_top_logprobs;
    if (!logits)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "the last step kept no logits with the index %zu", i_wanted);
    if (g->options.n_stages) {
        memcpy(g->edited, logits, n_vocab * sizeof *logits);
        logits = g->edited;
        for (size_t i = 0; i < g->options.n_stages; i++)
            if (g->stages[i].apply) WHIT_TRY(g->stages[i].apply(g->stages[i].user, g->edited, n_vocab, error));
    }
    WHIT_TRY(whit_sampler_pick(g->sampler, logits, id, error));
    if (g->options.logprobs && g->result.n_generated_tokens < g->options.n_tokens)
        return whit_logprobs(raw, n_vocab, *id, n_top, g->logprobs + (size_t)g->result.n_generated_tokens * (1 + n_top),
                             error);
    return WHIT_OK;
}

static whit_status take_token(whit_generation *g, int32_t id, bool *end, whit_error *error)
{
    const char *text;
    size_t n;
    *end = false;
    g->result.n_generated_tokens++;
    whit_draft_push(&g->all, id);
    if (g->options.n_draft_tokens == WHIT_DRAFT_BY_COST) {
        whit_draft_odds_see(&g->odds, id);
        whit_draft_odds_see(&g->model.odds, id);
    }
    for (size_t i = 0; i < g->options.n_stages; i++) {
        bool last = false;
        if (g->stages[i].accept) WHIT_TRY(g->stages[i].accept(g->stages[i].user, id, &last, error));
        *end |= last;
    }
    if (!g->detokenizer) return WHIT_OK;
    WHIT_TRY(whit_detokenizer_push(g->detokenizer, id, &text, &n, error));
    WHIT_TRY(whit_held_add(&g->held, text, n, false, error));
    g->refused = !give_text(g);
    return WHIT_OK;
}

static bool is_end(const whit_generation *g, int32_t id)
{
    if (g->options.ignore_end) return false;
    for (size_t i = 0; i < g->options.n_end_ids; i++)
        if (g->end_ids[i] == id) return true;
    return whit_model_is_end(g->session->model, id);
}

/* Picks a token from row i_wanted of the step's logits into *id and emits it; finishes the generation if the token is
 * its last. */
static whit_status advance(whit_generation *g, size_t i_wanted, int32_t *id, whit_error *error)
{
    const whit_generate_options *o = &g->options;
    bool end;
    WHIT_TRY(pick(g, i_wanted, id, error));
    if (is_end(g, *id)) return finish_generation(g, WHIT_FINISH_END, error);
    if (o->on_token && !o->on_token(o->user, *id)) return finish_generation(g, WHIT_FINISH_END, error);
    WHIT_TRY(take_token(g, *id, &end, error));
    if (g->held.stopped) return finish_generation(g, WHIT_FINISH_STOP, error);
    if (g->refused) return finish_generation(g, WHIT_FINISH_CANCELLED, error);
    if (end) return finish_generation(g, WHIT_FINISH_END, error);
    if (g->result.n_generated_tokens == o->n_tokens) return finish_generation(g, WHIT_FINISH_LENGTH, error);
    return WHIT_OK;
}

/* Picks tokens from the step's logits, beginning at row i_wanted, as long as picks equal the guesses; each equal pick
 * increases n_settled by 1. The first other pick becomes g->next, and the wrong guesses are removed from the
 * sequence. */
static whit_status look(whit_generation *g, size_t i_wanted, whit_error *error)
{
    for (uint32_t row = 0;; row++) {
        int32_t id;
        WHIT_TRY(advance(g, i_wanted + row, &id, error));
        if (g->finished) return WHIT_OK;
        if (row < g->n_guessed && g->guessed[row] == id) {
            g->n_settled++;
            continue;
        }
        g->next = id;
        if (row == g->n_guessed) return WHIT_OK;
        return whit_session_truncate(g->session, g->options.sequence, g->n_settled, error);
    }
}

/* Records the log-probabilities of prompt tokens; the logits at a token give the probability of the token after it. */
static whit_status look_at_prompt(whit_generation *g, size_t i_wanted, whit_error *error)
{
    uint32_t n_top = g->options.n_top_logprobs;
    for (uint32_t i = 0; i < g->n_offered && g->n_fed + i + 1 < g->n_prompt; i++) {
        size_t at = g->n_fed + i + 1;
        WHIT_TRY(whit_logprobs(whit_session_logits(g->session, i_wanted + i), g->session->model->config.n_vocab,
                               g->all.history[at], n_top, g->prompt_logprobs + at * (1 + n_top), error));
    }
    return WHIT_OK;
}

/* Records the number of right guesses of a step, and updates the session's draft account if the number of guesses is
 * chosen by cost. */
static void count_guesses(whit_generation *g, uint32_t n_right)
{
    g->n_right = n_right;
    if (g->options.n_draft_tokens != WHIT_DRAFT_BY_COST || !g->is_alone) return;
    whit_draft_book(&g->session->draft, &g->session->costs, g->n_guessed, n_right, g->model.made_ns);
}

whit_status whit_generation_accept(whit_generation *g, size_t i_wanted, whit_error *error)
{
    whit_error reason = {.message = ""};
    WHIT_NEED(g);
    if (g->finished) return WHIT_OK;
    const uint32_t n_before = g->n_settled;
    const bool in_prompt = whit_generation_in_prompt(g);
    uint32_t position = whit_session_position(g->session, g->options.sequence);
    if (!g->n_offered || position != g->n_settled + g->n_offered)
        return fail_generation(
            g,
            whit_fail(&reason, WHIT_ERROR_ARGUMENT,
                      "sequence %u has %u tokens after a step with all %u tokens of the generation, but had %u before",
                      g->options.sequence, position, g->n_offered, g->n_settled),
            &reason, error);
    if (whit_generation_in_prompt(g)) {
        if (g->options.prompt_logprobs) {
            whit_status status = look_at_prompt(g, i_wanted, &reason);
            if (status != WHIT_OK) return fail_generation(g, status, &reason, error);
            i_wanted += g->n_offered - 1;
        }
        g->n_settled = position;
        g->n_fed += g->n_offered;
        g->n_offered = g->n_guessed = 0;
        uint64_t now = whit_now_ns();
        g->result.prompt_ns = now - g->start_ns;
        g->result.n_prompt_tokens = (uint32_t)(g->n_fed - g->options.n_present);
        if (whit_generation_in_prompt(g)) return WHIT_OK;
        whit_session_keep_mark(g->session, g->options.sequence, position);
        g->fed_ns = now;
    } else {
        g->n_settled++;
        g->n_offered = 0;
    }
    whit_status status =
        g->options.n_tokens ? look(g, i_wanted, &reason) : finish_generation(g, WHIT_FINISH_LENGTH, &reason);
    g->result.generate_ns = whit_now_ns() - g->fed_ns;
    if (!in_prompt) count_guesses(g, g->n_settled - n_before - 1);
    g->model.is_made = false;
    g->model.made_ns = 0;
    return status == WHIT_OK ? WHIT_OK : fail_generation(g, status, &reason, error);
}

void whit_generation_cancel(whit_generation *g)
{
    if (g && !g->finished) finish_generation(g, WHIT_FINISH_CANCELLED, NULL);
}

void whit_generation_fail(whit_generation *g, whit_status status, const whit_error *reason)
{
    if (!g->finished) fail_generation(g, status, reason, NULL);
}

/* ---- results --------------------------------------------------------------------------------- */

bool whit_generation_finished(const whit_generation *g)
{
    return g->finished;
}

const char *whit_generation_text(whit_generation *g, size_t *text_bytes)
{
    return whit_held_take(&g->held, text_bytes);
}

const int32_t *whit_generation_ids(const whit_generation *g, size_t *n_ids)
{
    *n_ids = g->all.n_tokens;
    return g->all.history;
}

const whit_logprob *whit_generation_logprobs(const whit_generation *g, size_t i)
{
    if (!g->logprobs || i >= g->result.n_generated_tokens) return NULL;
    return g->logprobs + i * (1 + g->options.n_top_logprobs);
}

const whit_logprob *whit_generation_prompt_logprobs(const whit_generation *g, size_t i)
{
    if (!g->prompt_logprobs || i < 1 || i >= g->n_prompt || i > g->n_fed) return NULL;
    return g->prompt_logprobs + i * (1 + (size_t)g->options.n_top_logprobs);
}

void whit_generation_result(const whit_generation *g, whit_generate_result *result)
{
    size_t given = result->struct_bytes, n = given < sizeof *result ? given : sizeof *result;
    if (n > sizeof given)
        memcpy((uint8_t *)result + sizeof given, (const uint8_t *)&g->result + sizeof given, n - sizeof given);
}

const whit_error *whit_generation_error(const whit_generation *g)
{
    return g->result.finish == WHIT_FINISH_FAILED ? &g->error : NULL;
}
