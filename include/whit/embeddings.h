/* SPDX-License-Identifier: MIT
 * Computes embeddings (one vector per text, from the hidden states after the final norm) and the scores of texts by
 * rerank models. */
#ifndef WHIT_EMBEDDINGS_H
#define WHIT_EMBEDDINGS_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum whit_pooling {
    WHIT_POOLING_MEAN, /* the mean of the hidden states of all tokens (see whit_model_pools_prompt) */
    WHIT_POOLING_CLS,  /* hidden state of the first token */
    WHIT_POOLING_LAST, /* hidden state of the last token, which has attended to all others */
    WHIT_POOLING_OWN,  /* as whit_model_pooling returns; the mean if that is WHIT_POOLING_OWN */
} whit_pooling;
/* Returns the pooling that a model's files name. If they name none or only say that the model reranks: for a rerank
 * model CLS if its tokens attend to both sides, else LAST; for other models WHIT_POOLING_OWN. In a rerank model the
 * head scores the hidden state that this pooling selects. */
WHIT_API whit_pooling whit_model_pooling(const whit_model *model);
/* Returns whether the mean of a text's tokens includes those of its instruction; false if the model's files say so
 * (include_prompt of sentence-transformers). */
WHIT_API bool whit_model_pools_prompt(const whit_model *model);
/* Returns the number of scores that a rerank model's classification head computes; 0 if the model has no such head. */
WHIT_API uint32_t whit_model_n_labels(const whit_model *model);

typedef struct whit_embed_options {
    size_t struct_bytes;
    uint32_t sequence;     /* first sequence to compute in; it must be empty, and is empty again afterwards */
    whit_pooling pooling;  /* default WHIT_POOLING_OWN */
    bool not_normalised;   /* do not scale vectors to an L2 norm of 1; scores of a rerank model are never scaled */
    uint32_t n_dimensions; /* number of leading elements that are kept; the others are dropped before the norm is
                            * computed; default 0: all */
} whit_embed_options;
static inline whit_embed_options whit_embed_options_default(void)
{
    whit_embed_options options;
    memset(&options, 0, sizeof options);
    options.struct_bytes = sizeof options;
    options.pooling = WHIT_POOLING_OWN;
    return options;
}

/* Holds a text as tokens, including special tokens. */
typedef struct whit_embed_text {
    const int32_t *ids;
    size_t n_ids;
    size_t n_first; /* number of tokens in the first of two parts, for models with token types; 0: the text has one
                     * part */
    /* Number of tokens of an instruction at the beginning, including special tokens. The mean leaves these tokens out
     * if whit_model_pools_prompt is false; at least one token must follow them. The default is 0. */
    size_t n_prompt;
} whit_embed_text;

/* Writes the vectors of n_texts texts to `values` (n_texts, options->n_dimensions or whit_model_embedding_size). The
 * session must have been opened with keep_hidden or only_vectors. All its sequences from options->sequence on must be
 * empty, and are empty again afterwards: each step computes one text per sequence, as many as the session's
 * n_batch_tokens and n_logits allow. A vector depends neither on the other texts nor on these limits. For a model with
 * a classification head it contains the scores of the head. */
WHIT_API WHIT_CHECKED whit_status whit_embed_texts_strided(whit_session *session, const void *texts, size_t n_texts,
                                                           size_t stride_bytes, const whit_embed_options *options,
                                                           float *values, whit_error *error);
static inline whit_status whit_embed_texts(whit_session *session, const whit_embed_text *texts, size_t n_texts,
                                           const whit_embed_options *options, float *values, whit_error *error)
{
    return whit_embed_texts_strided(session, texts, n_texts, sizeof *texts, options, values, error);
}

/* Holds the options for scoring texts. A model with a classification head of one label gives the label's raw score; a
 * head with more labels, the probability of the first label. Any other model judges by two tokens: its score is the
 * probability of `yes` if only `yes` or `no` can follow the text. The session must then have logits (not
 * only_vectors). */
typedef struct whit_rerank_options {
    size_t struct_bytes;
    uint32_t sequence; /* as in whit_embed_options */
    int32_t yes, no;   /* ids of the tokens for yes and no; required without a classification head, else unused; default
                        * -1 */
} whit_rerank_options;
static inline whit_rerank_options whit_rerank_options_default(void)
{
    whit_rerank_options options;
    memset(&options, 0, sizeof options);
    options.struct_bytes = sizeof options;
    options.yes = options.no = -1;
    return options;
}
/* Writes a score for each text, which contains query and document in the form of the model's family. For a model with a
 * classification head the session must have been opened as for whit_embed_texts, for other models without
 * only_vectors. */
WHIT_API WHIT_CHECKED whit_status whit_rerank_strided(whit_session *session, const void *texts, size_t n_texts,
                                                      size_t stride_bytes, const whit_rerank_options *options,
                                                      float *scores, whit_error *error);
static inline whit_status whit_rerank(whit_session *session, const whit_embed_text *texts, size_t n_texts,
                                      const whit_rerank_options *options, float *scores, whit_error *error)
{
    return whit_rerank_strided(session, texts, n_texts, sizeof *texts, options, scores, error);
}

/* Holds the score of a text and the text's number, for lists in the order of scores. */
typedef struct whit_ranked {
    float score;
    size_t index; /* number of the text, from 0 */
} whit_ranked;
/* Writes the n scores to `ranked`, the highest first; equal scores stay in the order of their texts. */
WHIT_API void whit_rank(const float *scores, size_t n, whit_ranked *ranked);

/* Describes a query and a document whose relevance for the query is to be scored. */
typedef struct whit_rerank_pair {
    size_t struct_bytes;
    const char *query, *document;
    size_t query_bytes, document_bytes;
    /* task that is stated to a model that judges by yes and no; NULL: to retrieve passages that answer the query */
    const char *instruction;
    size_t n_ids_max; /* maximum tokens of the text: the end of the document is cut off, and no other part, so that the
                       * text is longer if its other parts are; 0: no limit */
} whit_rerank_pair;
static inline whit_rerank_pair whit_rerank_pair_default(void)
{
    whit_rerank_pair pair;
    memset(&pair, 0, sizeof pair);
    pair.struct_bytes = sizeof pair;
    return pair;
}
/* Writes the tokens of a pair in the form of the model's family: "query, separator, document" for an encoder, or the
 * template of a model that judges by yes and no. *n_first becomes whit_embed_text.n_first. *n_ids is the number of
 * tokens, even if it exceeds `capacity` (then WHIT_ERROR_LIMIT, and the content of `ids` is undefined). */
WHIT_API WHIT_CHECKED whit_status whit_rerank_tokens(const whit_model *model, const whit_rerank_pair *pair,
                                                     int32_t *ids, size_t capacity, size_t *n_ids, size_t *n_first,
                                                     whit_error *error);
/* Sets options->yes and options->no to the tokens of "yes" and "no", unless the model has a classification head. The
 * error is WHIT_ERROR_UNSUPPORTED if one of these words is not a single token, or the model cannot continue texts
 * (whit_model_makes_text). */
WHIT_API WHIT_CHECKED whit_status whit_rerank_judges(const whit_model *model, whit_rerank_options *options,
                                                     whit_error *error);
/* Returns whether a model can continue texts: it has logits, and its tokens attend to earlier ones only. */
WHIT_API bool whit_model_makes_text(const whit_model *model);

/* Computes one text's vector in one sequence, as whit_embed_texts does. */
WHIT_API WHIT_CHECKED whit_status whit_embed(whit_session *session, const int32_t *ids, size_t n_ids,
                                             const whit_embed_options *options, float *values, whit_error *error);

#ifdef __cplusplus
}
#endif
#endif
