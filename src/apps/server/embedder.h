/* SPDX-License-Identifier: MIT
 * The session in which an engine computes vectors and scores of texts, separate from the session of its slots. */
#ifndef WHIT_SERVER_EMBEDDER_H
#define WHIT_SERVER_EMBEDDER_H

#include "server/engine.h"
#include "whit/embeddings.h"

/* Texts, at most WHIT_VECTOR_TEXTS, and a pointer to their results. */
#define WHIT_VECTOR_TEXTS 32
typedef struct whit_vector_work {
    const whit_embed_text *texts;
    size_t n;
    const whit_embed_options *embed;   /* vectors, (n, dimensions) values; NULL: */
    const whit_rerank_options *rerank; /* scores, (n) values */
    float *values;
} whit_vector_work;

/* Zero-initialised: no session yet. The session is opened for the texts at hand, and again for longer ones. */
typedef struct whit_embedder {
    whit_session *session;
    uint32_t n_ctx_tokens;
    bool has_logits;
} whit_embedder;
whit_status whit_embedder_run(whit_embedder *embedder, const whit_model *model, const whit_engine_options *options,
                              const whit_vector_work *work, whit_error *error);
void whit_embedder_close(whit_embedder *embedder);
/* Options of its largest session. */
whit_session_options whit_embedder_options(const whit_model *model, const whit_engine_options *options);
/* Adjusts options for a model that cannot continue texts: of an engine's session of such a model, only the number of
 * slots is used. */
void whit_embedder_suit(const whit_model *model, whit_session_options *options);

#endif
