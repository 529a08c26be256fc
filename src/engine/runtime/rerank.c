/* SPDX-License-Identifier: MIT
 * Scores texts by a classification head, or by the logits of "yes" and "no" after a text. */
#include "runtime/session.h"

#include "base/fpenv.h"
#include "base/options.h"
#include "kernels/math.h"

/* Returns the first probability of the softmax of n logits: exp(a[0]) / sum over i of exp(a[i]). */
static float first_probability(const float *a, uint32_t n)
{
    double sum = 0, largest = (double)a[0];
    for (uint32_t i = 1; i < n; i++) largest = (double)a[i] > largest ? (double)a[i] : largest;
    for (uint32_t i = 0; i < n; i++) sum += whit_exp_f64((double)a[i] - largest);
    return (float)(whit_exp_f64((double)a[0] - largest) / sum);
}

static whit_status score_by_head(whit_session *s, const void *texts, size_t n_texts, size_t stride_bytes,
                                 const whit_rerank_options *o, float *scores, whit_error *error)
{
    const uint32_t n_labels = s->model->config.n_labels;
    whit_embed_options options = whit_embed_options_default();
    options.sequence = o->sequence;
    float *labels = whit_zalloc_array(s->allocator, n_texts, n_labels * sizeof *labels);
    if (!labels && n_texts) return whit_fail_memory(error, "the scores", n_texts * n_labels * sizeof *labels);
    whit_status status = whit_embed_texts_strided(s, texts, n_texts, stride_bytes, &options, labels, error);
    whit_fpenv caller = whit_fpenv_enter();
    for (size_t i = 0; status == WHIT_OK && i < n_texts; i++)
        scores[i] = n_labels == 1 ? labels[i] : first_probability(labels + i * n_labels, n_labels);
    whit_fpenv_leave(caller);
    whit_free(s->allocator, labels, n_texts * n_labels * sizeof *labels);
    return status;
}

/* Feeds a text and computes its score, the probability of `yes` against `no` after the last token; empties the
 * sequence. */
static whit_status score_by_tokens(whit_session *s, const whit_embed_text *text, const whit_rerank_options *o,
                                   float *score, whit_error *error)
{
    enum { STEP_TOKENS = 512 };
    whit_step_token tokens[STEP_TOKENS];
    for (size_t begin = 0, n; begin < text->n_ids; begin += n) {
        for (n = 0; n < STEP_TOKENS && begin + n < text->n_ids; n++)
            tokens[n] = (whit_step_token){
                .sequence = o->sequence, .id = text->ids[begin + n], .want_logits = begin + n + 1 == text->n_ids};
        WHIT_TRY(whit_session_step(s, tokens, n, error));
    }
    const float *logits = whit_session_logits(s, 0);
    whit_fpenv caller = whit_fpenv_enter();
    *score = first_probability((const float[]){logits[o->yes], logits[o->no]}, 2);
    whit_fpenv_leave(caller);
    return whit_session_truncate(s, o->sequence, 0, error);
}

static whit_status check_tokens(const whit_session *s, const whit_rerank_options *o, whit_error *error)
{
    const int64_t n_vocab = s->model->config.n_vocab;
    if (o->yes < 0 || o->no < 0)
        return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                         "%s: the model has no scoring head: give the tokens of its answers yes and no",
                         s->model->path);
    if (o->yes >= n_vocab || o->no >= n_vocab)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "the tokens %d (yes) and %d (no) must both be in the vocabulary",
                         o->yes, o->no);
    if (!s->plan.output)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "the session has no logits: open it without only_vectors");
    if (o->sequence >= s->options.n_sequences || whit_session_position(s, o->sequence))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "sequence %u must exist and be empty: empty it, or open the session with more", o->sequence);
    return WHIT_OK;
}

whit_status whit_rerank_strided(whit_session *s, const void *texts, size_t n_texts, size_t stride_bytes,
                                const whit_rerank_options *options, float *scores, whit_error *error)
{
    WHIT_NEED(s);
    WHIT_NEED_ARRAY(texts, n_texts);
    WHIT_NEED_ARRAY(scores, n_texts);
    whit_rerank_options o = whit_rerank_options_default();
    WHIT_TRY(whit_options_read(&o, sizeof o, options, "whit_rerank_options", error));
    if (s->model->config.n_labels) return score_by_head(s, texts, n_texts, stride_bytes, &o, scores, error);
    WHIT_TRY(check_tokens(s, &o, error));
    whit_status status = WHIT_OK;
    for (size_t i = 0; status == WHIT_OK && i < n_texts; i++) {
        whit_embed_text text;
        status = whit_element_read(&text, sizeof text, sizeof text, texts, i, stride_bytes, "whit_embed_text", error);
        if (status == WHIT_OK && (!text.ids || !text.n_ids))
            status = whit_fail(error, WHIT_ERROR_ARGUMENT, "text %zu is empty: give at least one token", i);
        if (status == WHIT_OK) status = score_by_tokens(s, &text, &o, &scores[i], error);
    }
    if (status != WHIT_OK) whit_ignore(whit_session_truncate(s, o.sequence, 0, NULL)); /* the first error is reported */
    return status;
}
