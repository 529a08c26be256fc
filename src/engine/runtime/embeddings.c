/* SPDX-License-Identifier: MIT
 * Computes pooled embeddings of many texts at once. Sums are computed in double precision and token order, so that a
 * text's vector does not depend on the number of tokens per step or on the other texts.
 *
 * Texts are computed in order: a step contains as many as its numbers of tokens and of wanted rows permit, each in a
 * sequence of its own. The next step may continue the last text, except in bidirectional models, where a text is
 * computed in one pass. Each step begins with the first sequences again, so that their keys and values stay in few
 * pages. */
#include "runtime/session.h"

#include "base/fpenv.h"
#include "base/options.h"

#include <math.h>

/* ---- metadata of a model ------------------------------------------------------------------------- */

static bool is_rank(const char *pooling)
{
    return pooling && strcmp(pooling, "rank") == 0;
}

whit_pooling whit_model_pooling(const whit_model *model)
{
    static const char *const names[] = {
        [WHIT_POOLING_MEAN] = "mean", [WHIT_POOLING_CLS] = "cls", [WHIT_POOLING_LAST] = "last"};
    const char *own = whit_model_metadata(model, "embedding.pooling");
    if (is_rank(own) || (!own && model->config.n_labels))
        return model->config.bidirectional ? WHIT_POOLING_CLS : WHIT_POOLING_LAST;
    for (int i = 0; own && i < 3; i++)
        if (strcmp(own, names[i]) == 0) return (whit_pooling)i;
    return WHIT_POOLING_OWN;
}

bool whit_model_pools_prompt(const whit_model *model)
{
    bool pools = true;
    whit_table_get_bool(whit_ndf_meta(model->file), "embedding.include_prompt", &pools);
    return pools;
}

uint32_t whit_model_n_labels(const whit_model *model)
{
    return model->config.n_labels;
}

/* ---- batches ----------------------------------------------------------------------------------- */

struct batch {
    whit_session *session;
    whit_embed_options options; /* the model's own pooling is already resolved: never WHIT_POOLING_OWN */
    const uint8_t *texts;
    size_t n_texts, stride_bytes;
    bool pools_prompt;
    uint32_t n_sequences; /* number of sequences, from options.sequence on */
    uint32_t width, n_kept;
    whit_step_token *tokens; /* (n_tokens_max) */
    uint32_t n_tokens_max, n_wanted_max;
    double *sum; /* (width): sum so far of the wanted rows of the first unfinished text */
    float *values;
    size_t text, n_done; /* index of the first unfinished text, and number of its tokens that earlier steps computed */
    uint32_t sequence;   /* sequence of that text, counted from options.sequence */
};

/* Returns the sequence of the i-th text of a step: the first text stays in `first`, where an earlier step may have
 * begun it, and the others use the lowest other sequences. */
static uint32_t sequence_of(uint32_t first, uint32_t i)
{
    if (i == 0) return first;
    return i <= first ? i - 1 : i;
}

static whit_embed_text text_at(const struct batch *b, size_t i)
{
    whit_embed_text text = {0};
    memcpy(&text, b->texts + i * b->stride_bytes, b->stride_bytes < sizeof text ? b->stride_bytes : sizeof text);
    if (b->pools_prompt) text.n_prompt = 0;
    return text;
}

static bool is_wanted(const struct batch *b, size_t i, const whit_embed_text *text)
{
    if (b->options.pooling == WHIT_POOLING_MEAN) return i >= text->n_prompt;
    return i == (b->options.pooling == WHIT_POOLING_CLS ? 0 : text->n_ids - 1);
}

/* Returns the number of hidden states from which a text's vector is computed. */
static size_t count_wanted(const struct batch *b, const whit_embed_text *text)
{
    return b->options.pooling == WHIT_POOLING_MEAN ? text->n_ids - text->n_prompt : 1;
}

/* Fills b->tokens with the tokens of a step, from the first unfinished text on; returns their number. */
static size_t fill_step(struct batch *b)
{
    const bool whole = b->session->model->config.bidirectional;
    size_t n = 0, n_wanted = 0, done = b->n_done;
    for (size_t i = 0; i < b->n_sequences && b->text + i < b->n_texts; i++, done = 0) {
        const whit_embed_text text = text_at(b, b->text + i);
        const uint32_t sequence = b->options.sequence + sequence_of(b->sequence, (uint32_t)i);
        const size_t n_needed = count_wanted(b, &text);
        if (whole && (text.n_ids > b->n_tokens_max - n || n_needed > b->n_wanted_max - n_wanted)) return n;
        for (size_t at = done; at < text.n_ids; at++) {
            const bool wanted = is_wanted(b, at, &text);
            if (n == b->n_tokens_max || (wanted && n_wanted == b->n_wanted_max)) return n;
            b->tokens[n++] = (whit_step_token){.sequence = sequence,
                                               .id = text.ids[at],
                                               .want_logits = wanted,
                                               .n_top = 1,
                                               .token_type = text.n_first && at >= text.n_first};
            n_wanted += wanted;
        }
    }
    return n;
}

/* Writes the vector of the finished text b->text: the mean of its rows, truncated to n_kept dimensions. The vector is
 * normalised unless options.not_normalised is set or it contains scores. */
static void write_vector(struct batch *b, const whit_embed_text *text)
{
    const double n = (double)count_wanted(b, text);
    float *values = b->values + b->text * b->n_kept;
    double squares = 0;
    for (uint32_t k = 0; k < b->n_kept; k++) b->sum[k] /= n;
    for (uint32_t k = 0; k < b->n_kept; k++) squares += b->sum[k] * b->sum[k];
    const bool is_score = b->session->model->config.n_labels != 0;
    const double scale = b->options.not_normalised || is_score || squares == 0 ? 1 : 1 / sqrt(squares);
    for (uint32_t k = 0; k < b->n_kept; k++) values[k] = (float)(b->sum[k] * scale);
}

/* Reads the hidden states of a step of n tokens: adds them to the sum of their text, and writes the vectors of the
 * texts that end in the step. */
static whit_status read_step(struct batch *b, size_t n, whit_error *error)
{
    const uint32_t first = b->sequence;
    size_t i_wanted = 0;
    uint32_t n_finished = 0;
    for (size_t i = 0; i < n;) {
        const whit_embed_text text = text_at(b, b->text);
        for (; i < n && b->n_done < text.n_ids; i++, b->n_done++) {
            if (!b->tokens[i].want_logits) continue;
            const float *row = whit_session_hidden(b->session, i_wanted++);
            for (uint32_t k = 0; k < b->width; k++) b->sum[k] += (double)row[k];
        }
        if (b->n_done < text.n_ids) return WHIT_OK;
        write_vector(b, &text);
        WHIT_TRY(whit_session_truncate(b->session, b->options.sequence + b->sequence, 0, error));
        memset(b->sum, 0, b->width * sizeof *b->sum);
        b->text++;
        b->n_done = 0;
        b->sequence = sequence_of(first, ++n_finished);
    }
    b->sequence = 0;
    return WHIT_OK;
}

static whit_status run_batch(struct batch *b, whit_error *error)
{
    while (b->text < b->n_texts) {
        const size_t n = fill_step(b);
        if (!n)
            return whit_fail(
                error, WHIT_ERROR_LIMIT,
                "text %zu has %zu tokens, which this model needs in one step, but the session's steps have "
                "at most %u tokens (n_batch_tokens), %u with outputs (n_logits): shorten it, or open the "
                "session with more",
                b->text, text_at(b, b->text).n_ids, b->n_tokens_max, b->n_wanted_max);
        WHIT_TRY(whit_session_step(b->session, b->tokens, n, error));
        whit_fpenv caller = whit_fpenv_enter();
        whit_status status = read_step(b, n, error);
        whit_fpenv_leave(caller);
        WHIT_TRY(status);
    }
    return WHIT_OK;
}

static whit_status check_texts(const struct batch *b, whit_error *error)
{
    for (size_t i = 0; i < b->n_texts; i++) {
        whit_embed_text text;
        WHIT_TRY(
            whit_element_read(&text, sizeof text, sizeof text, b->texts, i, b->stride_bytes, "whit_embed_text", error));
        if (!text.ids || !text.n_ids)
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "text %zu is empty: give at least one token", i);
        if (text.n_ids > b->session->options.n_ctx_tokens)
            return whit_fail(error, WHIT_ERROR_LIMIT,
                             "text %zu has %zu tokens, but the context has %u: shorten it, or choose a larger context",
                             i, text.n_ids, b->session->options.n_ctx_tokens);
        if (!b->pools_prompt && text.n_prompt >= text.n_ids)
            return whit_fail(error, WHIT_ERROR_ARGUMENT, "text %zu has no token after its prompt: give a text", i);
        if (text.n_first && !b->session->model->config.n_token_types)
            return whit_fail(error, WHIT_ERROR_ARGUMENT,
                             "text %zu has two parts (n_first), but the model has no token types to tell them apart",
                             i);
    }
    return WHIT_OK;
}

static whit_status check_batch(struct batch *b, const whit_embed_options *options, whit_error *error)
{
    whit_session *s = b->session;
    whit_embed_options *o = &b->options;
    *o = whit_embed_options_default();
    WHIT_TRY(whit_options_read(o, sizeof *o, options, "whit_embed_options", error));
    if (!s->options.keep_hidden)
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "the session keeps no hidden states: open it with keep_hidden or only_vectors");
    if ((unsigned)o->pooling > WHIT_POOLING_OWN)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "whit_embed_options: pooling is not a value of its enum");
    if (o->pooling == WHIT_POOLING_OWN) o->pooling = whit_model_pooling(s->model);
    if (o->pooling == WHIT_POOLING_OWN) o->pooling = WHIT_POOLING_MEAN;
    b->width = whit_model_embedding_size(s->model);
    b->n_kept = o->n_dimensions ? o->n_dimensions : b->width;
    if (b->n_kept > b->width)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%u dimensions were requested, but the model's vectors have %u",
                         b->n_kept, b->width);
    for (uint32_t q = 0; q < b->n_sequences; q++)
        if (o->sequence + q >= s->options.n_sequences || whit_session_position(s, o->sequence + q))
            return whit_fail(error, WHIT_ERROR_ARGUMENT,
                             "sequence %u must exist and be empty: empty it, or open the session with more",
                             o->sequence + q);
    b->pools_prompt = whit_model_pools_prompt(s->model);
    b->n_tokens_max = s->options.n_batch_tokens;
    b->n_wanted_max = s->options.n_logits;
    return check_texts(b, error);
}

static whit_status embed(struct batch *b, const whit_embed_options *options, whit_error *error)
{
    whit_session *s = b->session;
    WHIT_TRY(check_batch(b, options, error));
    b->sum = whit_zalloc_array(s->allocator, b->width, sizeof *b->sum);
    b->tokens = whit_zalloc_array(s->allocator, b->n_tokens_max, sizeof *b->tokens);
    whit_status status = WHIT_OK;
    if (!b->sum || !b->tokens) status = whit_fail_memory(error, "the embedding", b->n_tokens_max * sizeof *b->tokens);
    if (status == WHIT_OK) status = run_batch(b, error);
    for (uint32_t q = 0; status != WHIT_OK && q < b->n_sequences; q++)
        whit_ignore(whit_session_truncate(s, b->options.sequence + q, 0, NULL)); /* the first error is reported */
    whit_free(s->allocator, b->sum, b->width * sizeof *b->sum);
    whit_free(s->allocator, b->tokens, b->n_tokens_max * sizeof *b->tokens);
    return status;
}

whit_status whit_embed_texts_strided(whit_session *s, const void *texts, size_t n_texts, size_t stride_bytes,
                                     const whit_embed_options *options, float *values, whit_error *error)
{
    WHIT_NEED(s);
    WHIT_NEED_ARRAY(texts, n_texts);
    WHIT_NEED_ARRAY(values, n_texts);
    const uint32_t first = options ? options->sequence : 0;
    struct batch b = {.session = s,
                      .texts = texts,
                      .n_texts = n_texts,
                      .stride_bytes = stride_bytes,
                      .n_sequences = first < s->options.n_sequences ? s->options.n_sequences - first : 1,
                      .values = values};
    return embed(&b, options, error);
}

whit_status whit_embed(whit_session *s, const int32_t *ids, size_t n_ids, const whit_embed_options *options,
                       float *values, whit_error *error)
{
    const whit_embed_text text = {.ids = ids, .n_ids = n_ids};
    if (!s || !values || (n_ids && !ids))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "whit_embed: the session, the tokens or the place for the values is NULL");
    struct batch b = {.session = s,
                      .texts = (const uint8_t *)&text,
                      .n_texts = 1,
                      .stride_bytes = sizeof text,
                      .n_sequences = 1,
                      .values = values};
    return embed(&b, options, error);
}
