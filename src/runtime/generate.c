/* SPDX-License-Identifier: MIT
 * Generation in one call: prompt, pick, print, until something ends it. Text that might become a
 * stop string is held back until it cannot.
 *
 * Callbacks run in the host's floating-point environment: steps and picks enter ours by themselves. */
#include "runtime/draft.h"
#include "runtime/session.h"

#include "base/clock.h"

whit_generate_options whit_generate_options_default(void)
{
    return (whit_generate_options){.n_tokens = 128};
}

/* Final text not yet given out; bounded by the longest stop string and one token's text. */
struct output {
    const whit_generate_options *options;
    whit_buf held;
    size_t longest_stop;
    bool stopped; /* a stop string was met */
    bool cancelled;
};

/* Where the earliest stop string begins in the held text; its size where there is none. */
static size_t find_stop(const struct output *out)
{
    for (size_t at = 0; at < out->held.size_bytes; at++)
        for (size_t i = 0; i < out->options->n_stop; i++) {
            size_t n = strlen(out->options->stop[i]);
            if (n && n <= out->held.size_bytes - at && memcmp(out->held.data + at, out->options->stop[i], n) == 0)
                return at;
        }
    return out->held.size_bytes;
}

/* Bytes from which on the held text is the beginning of a stop string. */
static size_t find_maybe(const struct output *out)
{
    size_t size = out->held.size_bytes, at = size > out->longest_stop ? size - out->longest_stop : 0;
    for (; at < size; at++)
        for (size_t i = 0; i < out->options->n_stop; i++)
            if (strlen(out->options->stop[i]) > size - at &&
                memcmp(out->held.data + at, out->options->stop[i], size - at) == 0)
                return at;
    return size;
}

static void give(struct output *out, size_t n)
{
    if (n == 0) return;
    if (out->options->on_text) {
        if (!out->options->on_text(out->options->user, (const char *)out->held.data, n)) out->cancelled = true;
    }
    memmove(out->held.data, out->held.data + n, out->held.size_bytes - n);
    out->held.size_bytes -= n;
}

static whit_status add_text(struct output *out, const char *text, size_t n, bool last, whit_error *error)
{
    if (n && !whit_buf_append(&out->held, text, n)) return whit_fail_memory(error, "generated text", n);
    size_t stop = find_stop(out);
    out->stopped = stop < out->held.size_bytes;
    size_t ready = out->stopped ? stop : last ? out->held.size_bytes : find_maybe(out);
    give(out, ready);
    return WHIT_OK;
}

struct generation {
    whit_session *session;
    whit_sampler *sampler;
    whit_detokenizer *detokenizer; /* NULL without a tokenizer */
    struct output out;
    whit_generate_result result;
    /* Row i of the last step's logits follows `start` + i tokens of the sequence; rows behind the
     * first belong to guessed tokens. Without guesses there is one row. */
    uint32_t start, row, n_guessed;
    int32_t guessed[WHIT_DRAFT_MAX];
    whit_draft draft;
};

/* The prompt goes through the detokenizer too, unseen: spaces and characters that it leaves open are
 * finished by what follows. */
static whit_status prime(struct generation *g, const int32_t *ids, size_t n_ids, whit_error *error)
{
    const char *text;
    size_t n;
    for (size_t i = 0; g->detokenizer && i < n_ids; i++)
        WHIT_TRY(whit_detokenizer_push(g->detokenizer, ids[i], &text, &n, error));
    return WHIT_OK;
}

/* The prompt, in steps of a batch each so that a cancel is seen; logits of its last token only. */
static whit_status feed(whit_session *s, uint32_t sequence, const int32_t *ids, size_t n_ids, uint32_t n_top,
                        whit_error *error)
{
    whit_step_token tokens[512];
    for (size_t i = 0; i < n_ids;) {
        size_t n = 0;
        for (; n < sizeof tokens / sizeof tokens[0] && i < n_ids; n++, i++)
            tokens[n] =
                (whit_step_token){.sequence = sequence, .id = ids[i], .want_logits = i + 1 == n_ids, .n_top = n_top};
        WHIT_TRY(whit_session_step(s, tokens, n, error));
    }
    return WHIT_OK;
}

static whit_status push_id(struct generation *g, int32_t id, whit_error *error)
{
    const char *text;
    size_t n;
    if (!g->detokenizer) return WHIT_OK;
    WHIT_TRY(whit_detokenizer_push(g->detokenizer, id, &text, &n, error));
    return add_text(&g->out, text, n, false, error);
}

static whit_status flush(struct generation *g, whit_error *error)
{
    const char *text = NULL;
    size_t n = 0;
    if (!g->detokenizer || g->out.stopped || g->out.cancelled) return WHIT_OK;
    WHIT_TRY(whit_detokenizer_flush(g->detokenizer, &text, &n, error));
    return add_text(&g->out, text, n, true, error);
}

/* Takes back guessed tokens that nothing has confirmed. */
static whit_status settle(struct generation *g, uint32_t sequence, whit_error *error)
{
    uint32_t settled = g->start + g->row;
    if (whit_session_position(g->session, sequence) <= settled) return WHIT_OK;
    return whit_session_truncate(g->session, sequence, settled, error);
}

/* How many tokens to guess behind the one to be fed: no more than can be used. */
static uint32_t guess(struct generation *g, const whit_generate_options *options)
{
    const whit_session_options *session = &g->session->options;
    uint32_t left = options->n_tokens - g->result.n_generated_tokens, most = options->n_draft_tokens;
    uint32_t room = session->n_ctx_tokens - whit_session_position(g->session, options->sequence);
    if (most > WHIT_DRAFT_MAX) most = WHIT_DRAFT_MAX;
    if (most > session->n_logits - 1) most = session->n_logits - 1;
    if (most > left - 1) most = left - 1;
    if (room < 1 || most > room - 1) most = room < 1 ? 0 : room - 1;
    return most ? whit_draft_guess(&g->draft, most, g->guessed) : 0;
}

/* Makes the logits that follow `id` available: they may be there already, if it was guessed. */
static whit_status advance(struct generation *g, const whit_generate_options *options, int32_t id, whit_error *error)
{
    if (options->n_draft_tokens) whit_draft_push(&g->draft, id);
    if (g->row < g->n_guessed && g->guessed[g->row] == id) {
        g->row++;
        return WHIT_OK;
    }
    WHIT_TRY(settle(g, options->sequence, error));
    whit_step_token tokens[1 + WHIT_DRAFT_MAX];
    uint32_t n_top = whit_sampler_n_top(g->sampler);
    g->start += g->row + 1;
    g->row = 0;
    g->n_guessed = guess(g, options);
    for (uint32_t i = 0; i <= g->n_guessed; i++)
        tokens[i] = (whit_step_token){
            .sequence = options->sequence, .id = i ? g->guessed[i - 1] : id, .want_logits = true, .n_top = n_top};
    return whit_session_step(g->session, tokens, 1 + g->n_guessed, error);
}

static whit_status loop(struct generation *g, const whit_generate_options *options, whit_error *error)
{
    whit_generate_result *r = &g->result;
    r->finish = WHIT_FINISH_LENGTH;
    g->start = whit_session_position(g->session, options->sequence);
    while (r->n_generated_tokens < options->n_tokens) {
        int32_t id;
        WHIT_TRY(whit_sampler_pick(g->sampler, whit_session_logits(g->session, g->row), &id, error));
        if (!options->ignore_end && whit_model_is_end(g->session->model, id)) {
            r->finish = WHIT_FINISH_END;
            break;
        }
        if (options->on_token && !options->on_token(options->user, id)) {
            r->finish = WHIT_FINISH_END;
            break;
        }
        r->n_generated_tokens++;
        WHIT_TRY(push_id(g, id, error));
        if (g->out.stopped || g->out.cancelled) {
            r->finish = g->out.stopped ? WHIT_FINISH_STOP : WHIT_FINISH_CANCELLED;
            break;
        }
        if (r->n_generated_tokens == options->n_tokens) break; /* its logits nobody reads */
        WHIT_TRY(advance(g, options, id, error));
    }
    WHIT_TRY(settle(g, options->sequence, error));
    return flush(g, error);
}

whit_status whit_generate(whit_session *session, whit_sampler *sampler, const int32_t *ids, size_t n_ids,
                          const whit_generate_options *options, whit_generate_result *result, whit_error *error)
{
    whit_generate_options own = options ? *options : whit_generate_options_default();
    struct generation g = {.session = session, .sampler = sampler, .out = {.options = &own}};
    if (result) *result = g.result;
    if (n_ids == 0) return whit_fail(error, WHIT_ERROR_ARGUMENT, "the prompt is empty: give at least one token (BOS)");
    if (own.n_present && (own.n_present >= n_ids || own.n_present != whit_session_position(session, own.sequence)))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "of %zu tokens %u are to be present, the sequence holds %u", n_ids,
                         own.n_present, whit_session_position(session, own.sequence));
    g.out.held.allocator = session->allocator;
    for (size_t i = 0; i < own.n_stop; i++) {
        size_t n = strlen(own.stop[i]);
        if (n > g.out.longest_stop) g.out.longest_stop = n;
    }
    whit_status status = WHIT_OK;
    if (!whit_buf_reserve(&g.out.held, 4096 + g.out.longest_stop))
        status = whit_fail_memory(error, "generated text", 4096);
    if (status == WHIT_OK && whit_model_has_tokenizer(session->model))
        status = whit_detokenizer_open(session->model, true, &g.detokenizer, error);
    if (status == WHIT_OK) status = prime(&g, ids, n_ids, error);
    if (status == WHIT_OK && own.n_draft_tokens)
        status = whit_draft_open(
            n_ids + (own.n_tokens < session->options.n_ctx_tokens ? own.n_tokens : session->options.n_ctx_tokens),
            session->allocator, &g.draft, error);
    for (size_t i = 0; status == WHIT_OK && own.n_draft_tokens && i < n_ids; i++) whit_draft_push(&g.draft, ids[i]);
    for (size_t i = 0; i < n_ids; i++) whit_sampler_accept(sampler, ids[i]);
    uint64_t start_ns = whit_now_ns();
    if (status == WHIT_OK)
        status =
            feed(session, own.sequence, ids + own.n_present, n_ids - own.n_present, whit_sampler_n_top(sampler), error);
    uint64_t fed_ns = whit_now_ns();
    g.result.n_prompt_tokens = (uint32_t)(n_ids - own.n_present);
    g.result.prompt_ns = fed_ns - start_ns;
    if (status == WHIT_OK) status = loop(&g, &own, error);
    g.result.generate_ns = whit_now_ns() - fed_ns;
    if (status == WHIT_ERROR_CANCELLED) g.result.finish = WHIT_FINISH_CANCELLED;
    whit_detokenizer_close(g.detokenizer);
    whit_buf_free(&g.out.held);
    whit_draft_close(&g.draft);
    if (result) *result = g.result;
    return status;
}
