/* SPDX-License-Identifier: MIT
 * Converts texts to vectors. */
#ifndef WHIT_SERVER_EMBEDDINGS_H
#define WHIT_SERVER_EMBEDDINGS_H

#include "server/replies.h"

/* Computes the vectors of a request's member `key` (a text, token ids, or a list of either) with `width` dimensions:
 * (n, width) values, which the caller owns. Returns false if the request is refused, and fills in the reply. */
bool whit_api_embed(whit_api *api, const json_t *body, const char *key, size_t width, int fd, float **values, size_t *n,
                    size_t *n_tokens, whit_web_reply *reply);
/* Refuses requests with adapters, because embeddings and scores are computed without them; returns false then, and
 * fills in the reply. */
bool whit_api_has_no_adapters(const whit_api *api, const json_t *body, whit_web_reply *reply);

typedef enum whit_vectors_form {
    WHIT_VECTORS_OPENAI, /* {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [...]}, ...] */
    WHIT_VECTORS_OLLAMA, /* {"embeddings": [[...], ...] */
    WHIT_VECTORS_ONE,    /* {"embedding": [...] */
    WHIT_VECTORS_LIST,   /* [{"index": 0, "embedding": [[...]]}, ...], without other members */
    WHIT_VECTORS_GEMINI, /* {"embeddings": [{"values": [...]}, ...] */
    WHIT_VECTORS_GEMINI_ONE, /* {"embedding": {"values": [...]} */
} whit_vectors_form;
/* Writes (n, width) values, piece by piece; takes ownership of them and of `rest`, an object with the other members. */
void whit_reply_vectors(whit_web_reply *reply, whit_vectors_form form, bool base64, float *values, size_t n,
                        size_t width, json_t *rest);

#endif
