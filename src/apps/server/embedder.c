/* SPDX-License-Identifier: MIT */
#include "server/embedder.h"

/* Several short texts must not need more memory than one long text: the number of sequences times their length is at
 * most the largest context. */
enum { CTX_TOKENS_MIN = 64, SEQUENCES_MAX = 32 };

void whit_embedder_suit(const whit_model *model, whit_session_options *options)
{
    if (whit_model_makes_text(model)) return;
    options->only_vectors = true;
    if (options->kv != WHIT_KV_F32 && options->kv != WHIT_KV_I8) options->kv = WHIT_KV_F16;
    if (options->n_ctx_tokens > whit_model_context_size(model)) options->n_ctx_tokens = whit_model_context_size(model);
}

whit_session_options whit_embedder_options(const whit_model *model, const whit_engine_options *options)
{
    whit_session_options wanted = whit_session_options_default();
    wanted.n_ctx_tokens = options->n_ctx_tokens;
    wanted.n_threads = options->n_threads;
    wanted.only_vectors = true;
    wanted.kv = WHIT_KV_F32;
    wanted.act = options->act;
    whit_embedder_suit(model, &wanted);
    return wanted;
}

void whit_embedder_close(whit_embedder *embedder)
{
    whit_session_close(embedder->session);
    *embedder = (whit_embedder){0};
}

/* Returns the context size for texts of at most `longest` tokens: CTX_TOKENS_MIN times a power of two, but at most
 * `most`. */
static uint32_t context_for(size_t longest, uint32_t most)
{
    uint32_t n = CTX_TOKENS_MIN;
    while (n < longest && n < most) n *= 2;
    return n < most ? n : most;
}

static whit_status open_session(whit_embedder *embedder, const whit_model *model, const whit_engine_options *options,
                                const whit_vector_work *work, whit_error *error)
{
    const bool has_logits = work->rerank && !whit_model_n_labels(model);
    size_t longest = 1;
    for (size_t i = 0; i < work->n; i++) longest = work->texts[i].n_ids > longest ? work->texts[i].n_ids : longest;
    if (embedder->session && longest <= embedder->n_ctx_tokens && has_logits == embedder->has_logits) return WHIT_OK;
    whit_embedder_close(embedder);
    whit_session_options wanted = whit_embedder_options(model, options);
    const uint32_t trained = whit_model_context_size(model), usual = trained < 4096 ? trained : 4096;
    const uint32_t most = wanted.n_ctx_tokens ? wanted.n_ctx_tokens : usual;
    wanted.n_ctx_tokens = context_for(longest, most);
    wanted.n_sequences = has_logits ? 1 : most / wanted.n_ctx_tokens;
    if (wanted.n_sequences > SEQUENCES_MAX) wanted.n_sequences = SEQUENCES_MAX;
    wanted.only_vectors = !has_logits;
    WHIT_TRY(whit_session_open(model, &wanted, &embedder->session, error));
    embedder->n_ctx_tokens = wanted.n_ctx_tokens;
    embedder->has_logits = has_logits;
    return WHIT_OK;
}

whit_status whit_embedder_run(whit_embedder *embedder, const whit_model *model, const whit_engine_options *options,
                              const whit_vector_work *work, whit_error *error)
{
    WHIT_TRY(open_session(embedder, model, options, work, error));
    if (work->embed) return whit_embed_texts(embedder->session, work->texts, work->n, work->embed, work->values, error);
    return whit_rerank(embedder->session, work->texts, work->n, work->rerank, work->values, error);
}
