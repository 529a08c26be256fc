/* SPDX-License-Identifier: MIT
 * Embeddings: one vector for a text, from the hidden states after the final norm. */
#ifndef WHIT_EMBEDDINGS_H
#define WHIT_EMBEDDINGS_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum whit_pooling {
    WHIT_POOLING_MEAN, /* mean over all tokens */
    WHIT_POOLING_CLS,  /* hidden state of the first token */
    WHIT_POOLING_LAST, /* hidden state of the last token, which has attended to all others */
} whit_pooling;

typedef struct whit_embed_options {
    size_t struct_bytes;
    uint32_t sequence;    /* sequence to compute in; must be empty, and is empty again afterwards */
    whit_pooling pooling; /* default mean */
    bool not_normalised;  /* keep the vector's norm; default: L2 norm 1 */
} whit_embed_options;
static inline whit_embed_options whit_embed_options_default(void)
{
    whit_embed_options options;
    memset(&options, 0, sizeof options);
    options.struct_bytes = sizeof options;
    return options;
}

/* Writes the embedding of `ids` to `values` (whit_model_embedding_size of the model). The session must have been opened
 * with keep_hidden; a larger n_logits is faster (up to n_logits tokens a step). */
WHIT_API whit_status whit_embed(whit_session *session, const int32_t *ids, size_t n_ids,
                                const whit_embed_options *options, float *values, whit_error *error);

#ifdef __cplusplus
}
#endif
#endif
