/* SPDX-License-Identifier: MIT
 * Computes vectors and scores of texts in a session of its own, separate from that of the engine's slots. */
#ifndef WHIT_SERVER_EMBEDDER_H
#define WHIT_SERVER_EMBEDDER_H

#include "server/engine.h"
#include "whit/embeddings.h"

/* A piece of work: at most WHIT_VECTOR_TEXTS texts, the options, and memory for the results. */
#define WHIT_VECTOR_TEXTS 32
typedef struct whit_vector_work {
    const whit_embed_text *texts;
    size_t n;
    /* options for vectors, of which `values` receives (n, dimensions) floats; NULL: scores are computed */
    const whit_embed_options *embed;
    const whit_rerank_options *rerank; /* options for scores, of which `values` receives (n) floats; unused if embed is
                                        * set */
    float *values;
} whit_vector_work;

/* A session for vectors and scores. Zero-initialised, it is not open: the first texts open it. It is opened again, with
 * a larger context, for longer texts, and for work that needs a session of the other kind (has_logits). */
typedef struct whit_embedder {
    whit_session *session;
    uint32_t n_ctx_tokens;
    bool has_logits;
} whit_embedder;
whit_status whit_embedder_run(whit_embedder *embedder, const whit_model *model, const whit_engine_options *options,
                              const whit_vector_work *work, whit_error *error);
void whit_embedder_close(whit_embedder *embedder);
/* Returns the options of the embedder's largest session for vectors. */
whit_session_options whit_embedder_options(const whit_model *model, const whit_engine_options *options);
/* Adjusts an engine's session options if the model cannot generate text: sets only_vectors, replaces KV types other
 * than f32 and i8 by f16, and limits the context to the model's. */
void whit_embedder_suit(const whit_model *model, whit_session_options *options);

#endif
