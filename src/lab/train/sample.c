/* SPDX-License-Identifier: MIT */
#include "train/sample.h"

#include "base/rng.h"

#define N_SEQUENCES    16 /* documents that are sampled in parallel; a step adds one token to each */
#define OPENING_TOKENS 8  /* number of tokens, copied from the corpus, that begin a document without BOS */

/* Returns the BOS token if the model's prompts begin with it; otherwise -1. */
static int32_t find_prompt_bos(const whit_model *model)
{
    int32_t ids[4];
    size_t n = 0;
    const int32_t bos = whit_model_bos(model);
    if (whit_tokenize(model, "", 0, true, false, ids, sizeof ids / sizeof *ids, &n, NULL) != WHIT_OK) return -1;
    return n && ids[0] == bos ? bos : -1;
}

struct sampling {
    whit_corpus *corpus;
    const whit_model *model;
    const whit_sample_options *options;
    whit_session *session;
    whit_sampler *sampler;
    int32_t *ids;                                 /* (N_SEQUENCES, n_longest) tokens of the unfinished documents */
    uint32_t n[N_SEQUENCES], n_read[N_SEQUENCES]; /* number of tokens of each document; number of them that the model
                                                   * has read */
    whit_rng rng;                                 /* chooses the places in the corpus that openings are copied from */
    size_t n_text;                                /* number of ids in the corpus before sampling */
    int32_t bos;                                  /* token that begins each document; -1: tokens of the corpus begin
                                                   * it */
    size_t n_made;
};

/* Adds a finished document to the corpus and empties its sequence. */
static whit_status finish_document(struct sampling *s, uint32_t sequence, whit_error *error)
{
    WHIT_TRY(whit_corpus_add_ids(s->corpus, s->model, s->ids + (size_t)sequence * s->options->n_longest, s->n[sequence],
                                 error));
    s->n_made += s->n[sequence];
    s->n[sequence] = s->n_read[sequence] = 0;
    return whit_session_truncate(s->session, sequence, 0, error);
}

/* Begins a document with BOS, or with tokens copied from the corpus. */
static void begin_document(struct sampling *s, uint32_t sequence)
{
    int32_t *ids = s->ids + (size_t)sequence * s->options->n_longest;
    s->n[sequence] = 1;
    if (s->bos >= 0) {
        ids[0] = s->bos;
        return;
    }
    const size_t at = whit_rng_below(&s->rng, s->n_text - OPENING_TOKENS + 1);
    if (s->options->n_longest > OPENING_TOKENS) s->n[sequence] = OPENING_TOKENS;
    memcpy(ids, s->corpus->ids + at, s->n[sequence] * sizeof *ids);
}

static whit_status step_sample(struct sampling *s, whit_error *error)
{
    uint32_t n_longest = s->options->n_longest;
    whit_step_token tokens[N_SEQUENCES];
    for (uint32_t i = 0; i < N_SEQUENCES; i++) {
        int32_t *ids = s->ids + (size_t)i * n_longest;
        if (!s->n[i]) begin_document(s, i);
        tokens[i] = (whit_step_token){.sequence = i, .id = ids[s->n_read[i]++], .want_logits = true};
    }
    WHIT_TRY(whit_session_step(s->session, tokens, N_SEQUENCES, error));
    for (uint32_t i = 0; i < N_SEQUENCES; i++) {
        int32_t id;
        if (s->n_read[i] < s->n[i]) continue; /* the model has not read the whole opening */
        WHIT_TRY(whit_sampler_pick(s->sampler, whit_session_logits(s->session, i), &id, error));
        s->ids[(size_t)i * n_longest + s->n[i]++] = id;
        if (whit_model_is_end(s->model, id) || s->n[i] == n_longest) WHIT_TRY(finish_document(s, i, error));
    }
    return WHIT_OK;
}

/* Reports the share of the tokens that have been sampled, including those of unfinished documents. Returns false if
 * sampling is cancelled. */
static bool tell_made(const struct sampling *s)
{
    const whit_corpus *corpus = s->corpus;
    size_t n = s->n_made;
    for (uint32_t i = 0; i < N_SEQUENCES; i++) n += s->n[i];
    const double share = n < s->options->n_tokens ? (double)n / (double)s->options->n_tokens : 1;
    return !corpus->progress || corpus->progress(corpus->user, "sampling a text", share);
}

static whit_status open_sampling(struct sampling *s, whit_error *error)
{
    const whit_sample_options *o = s->options;
    whit_session_options session = whit_session_options_default();
    whit_sampler_options sampler = whit_sampler_options_default();
    s->bos = s->n_text < OPENING_TOKENS ? whit_model_bos(s->model) : find_prompt_bos(s->model);
    if (s->bos < 0 && s->n_text < OPENING_TOKENS)
        return whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "the model has no beginning-of-text token to sample from: give a text of its kind (--calib FILE of "
            "compress, --text FILE of distill)");
    session.n_sequences = session.n_logits = N_SEQUENCES;
    session.n_ctx_tokens = o->n_longest;
    session.n_threads = o->n_threads;
    session.cancel = o->cancel;
    WHIT_TRY(whit_session_open(s->model, &session, &s->session, error));
    sampler.seed = o->seed;
    sampler.temperature = sampler.top_p = 1;
    sampler.top_k = 0;
    sampler.min_p = 0;
    WHIT_TRY(whit_sampler_open(s->model, &sampler, &s->sampler, error));
    s->ids = whit_zalloc_array(s->corpus->allocator, (size_t)N_SEQUENCES * o->n_longest, sizeof *s->ids);
    return s->ids ? WHIT_OK
                  : whit_fail_memory(error, "sampled text", (size_t)N_SEQUENCES * o->n_longest * sizeof *s->ids);
}

whit_status whit_corpus_add_samples(whit_corpus *corpus, const whit_model *model, const whit_sample_options *options,
                                    whit_error *error)
{
    struct sampling s = {
        .corpus = corpus, .model = model, .options = options, .rng = {options->seed}, .n_text = corpus->n};
    whit_status status = open_sampling(&s, error);
    while (status == WHIT_OK && s.n_made < options->n_tokens) {
        status = step_sample(&s, error);
        if (status == WHIT_OK && !tell_made(&s))
            status = whit_fail(error, WHIT_ERROR_CANCELLED, "sampling was cancelled");
    }
    whit_free(corpus->allocator, s.ids, (size_t)N_SEQUENCES * options->n_longest * sizeof *s.ids);
    whit_sampler_close(s.sampler);
    whit_session_close(s.session);
    return status;
}

/* Draws a random id; BOS is replaced by the next id. */
static int32_t draw_id(whit_rng *rng, uint32_t n_vocab, int32_t bos)
{
    const int32_t id = (int32_t)whit_rng_below(rng, n_vocab);
    return id != bos ? id : (int32_t)(((uint32_t)bos + 1) % n_vocab);
}

whit_status whit_corpus_add_random(whit_corpus *corpus, const whit_model *model, const whit_sample_options *options,
                                   whit_error *error)
{
    const uint32_t n = options->n_longest, n_vocab = whit_model_vocab_size(model);
    const int32_t bos = whit_model_bos(model), first = find_prompt_bos(model);
    whit_rng rng = {options->seed ^ 0x52414E444F4Du};
    int32_t *ids = whit_zalloc_array(corpus->allocator, n, sizeof *ids);
    if (!ids) return whit_fail_memory(error, "random text", n * sizeof *ids);
    whit_status status = n_vocab > 1
        ? WHIT_OK
        : whit_fail(error, WHIT_ERROR_UNSUPPORTED, "no text can be sampled: the model's vocabulary has only one token");
    for (size_t made = 0; status == WHIT_OK && made < options->n_tokens; made += n) {
        for (uint32_t i = 0; i < n; i++) ids[i] = draw_id(&rng, n_vocab, bos);
        if (first >= 0) ids[0] = first;
        status = whit_corpus_add_ids(corpus, model, ids, n, error);
    }
    whit_free(corpus->allocator, ids, n * sizeof *ids);
    return status;
}
