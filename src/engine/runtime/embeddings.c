/* SPDX-License-Identifier: MIT
 * Pooled embeddings. Sums run in double precision and token order, so that they do not depend on how
 * many tokens a step takes. */
#include "runtime/session.h"

#include "base/fpenv.h"
#include "base/options.h"

#include <math.h>

enum { STEP_TOKENS = 512 };

static whit_status pool(whit_session *s, const int32_t *ids, size_t n_ids, const whit_embed_options *o, double *sum,
                        whit_error *error)
{
    whit_step_token tokens[STEP_TOKENS];
    size_t most = s->options.n_logits < STEP_TOKENS ? s->options.n_logits : STEP_TOKENS;
    uint32_t width = s->model->config.n_embd;
    for (size_t begin = 0; begin < n_ids;) {
        size_t n = 0, n_wanted = 0;
        for (; n < STEP_TOKENS && n_wanted < most && begin + n < n_ids; n++) {
            size_t at = begin + n;
            bool wanted = o->pooling == WHIT_POOLING_MEAN || at == (o->pooling == WHIT_POOLING_CLS ? 0 : n_ids - 1);
            tokens[n] = (whit_step_token){.sequence = o->sequence, .id = ids[at], .want_logits = wanted, .n_top = 1};
            n_wanted += wanted;
        }
        WHIT_TRY(whit_session_step(s, tokens, n, error));
        for (size_t i = 0; i < n_wanted; i++) {
            const float *hidden = whit_session_hidden(s, i);
            for (uint32_t k = 0; k < width; k++) sum[k] += (double)hidden[k];
        }
        begin += n;
    }
    return WHIT_OK;
}

whit_status whit_embed(whit_session *s, const int32_t *ids, size_t n_ids, const whit_embed_options *options,
                       float *values, whit_error *error)
{
    whit_embed_options o = whit_embed_options_default();
    if (!s || !values || (n_ids && !ids))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "an embedding needs a session, tokens and room for its values");
    WHIT_TRY(whit_options_read(&o, sizeof o, options, "whit_embed_options", error));
    if (!n_ids) return whit_fail(error, WHIT_ERROR_ARGUMENT, "no text: give at least one token");
    if (!s->options.keep_hidden)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "the session keeps no hidden states: open it with keep_hidden");
    if (o.sequence >= s->options.n_sequences || whit_session_position(s, o.sequence))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "sequence %u is not there or not empty", o.sequence);
    if ((unsigned)o.pooling > WHIT_POOLING_LAST) return whit_fail(error, WHIT_ERROR_ARGUMENT, "unknown pooling");
    if (n_ids > s->options.n_ctx_tokens)
        return whit_fail(error, WHIT_ERROR_LIMIT, "the text has %zu tokens, the context %u", n_ids,
                         s->options.n_ctx_tokens);
    uint32_t width = s->model->config.n_embd;
    double *sum = whit_zalloc_array(s->allocator, width, sizeof *sum);
    if (!sum) return whit_fail_memory(error, "the embedding", width * sizeof *sum);
    whit_status status = pool(s, ids, n_ids, &o, sum, error);
    whit_status emptied = whit_session_truncate(s, o.sequence, 0, status == WHIT_OK ? error : NULL);
    if (status == WHIT_OK) status = emptied;
    whit_fpenv caller = whit_fpenv_enter();
    double n = o.pooling == WHIT_POOLING_MEAN ? (double)n_ids : 1, squares = 0;
    for (uint32_t k = 0; k < width; k++) sum[k] /= n;
    for (uint32_t k = 0; k < width; k++) squares += sum[k] * sum[k];
    double scale = o.not_normalised || squares == 0 ? 1 : 1 / sqrt(squares);
    for (uint32_t k = 0; status == WHIT_OK && k < width; k++) values[k] = (float)(sum[k] * scale);
    whit_fpenv_leave(caller);
    whit_free(s->allocator, sum, width * sizeof *sum);
    return status;
}
