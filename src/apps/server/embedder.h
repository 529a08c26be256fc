/* SPDX-License-Identifier: MIT
 * Opens the session in which an engine computes vectors and scores of texts, separate from the session of its slots. */
#ifndef WHIT_SERVER_EMBEDDER_H
#define WHIT_SERVER_EMBEDDER_H

#include "server/engine.h"
#include "whit/embeddings.h"

/* Texts, at most WHIT_VECTOR_TEXTS, with the options and the place of their results. */
#define WHIT_VECTOR_TEXTS 32
typedef struct whit_vector_work {
    const whit_embed_text *texts;
    size_t n;
    /* options of vectors, whose values are (n, dimensions); NULL: scores are computed */
    const whit_embed_options *embed;
    const whit_rerank_options *rerank; /* options of scores, whose values are (n) */
    float *values;
} whit_vector_work;

/* Describes an embedder; zero-initialised, it has no session yet. The session is opened for the first texts, and opened
 * again for longer ones. */
typedef struct whit_embedder {
    whit_session *session;
    uint32_t n_ctx_tokens;
    bool has_logits;
} whit_embedder;
whit_status whit_embedder_run(whit_embedder *embedder, const whit_model *model, const whit_engine_options *options,
                              const whit_vector_work *work, whit_error *error);
void whit_embedder_close(whit_embedder *embedder);
/* Returns the options of the embedder's largest session. */
whit_session_options whit_embedder_options(const whit_model *model, const whit_engine_options *options);
/* Adjusts options for a model that cannot continue texts: an engine's session of such a model only uses the number of
 * slots. */
void whit_embedder_suit(const whit_model *model, whit_session_options *options);

#endif
