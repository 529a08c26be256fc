/* SPDX-License-Identifier: MIT
 * Converts texts to vectors. */
#ifndef WHIT_SERVER_EMBEDDINGS_H
#define WHIT_SERVER_EMBEDDINGS_H

#include "server/replies.h"

/* Computes the vectors of the request's member `key` or, if it is absent, `content`: a text, token ids, or a list of
 * such inputs. *values: (n, width) floats, which the caller frees. If the request is refused, fills in the reply and
 * returns false. */
bool whit_api_embed(whit_api *api, const json_t *body, const char *key, size_t width, int fd, float **values, size_t *n,
                    size_t *n_tokens, whit_web_reply *reply);
/* Returns whether no adapter applies to the request, neither one that it names nor one with a strength in
 * /lora-adapters. Otherwise refuses it, because vectors and scores are computed without adapters, and fills in the
 * reply. */
bool whit_api_has_no_adapters(const whit_api *api, const json_t *body, whit_web_reply *reply);

typedef enum whit_vectors_form {
    WHIT_VECTORS_OPENAI, /* {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [...]}, ...] */
    WHIT_VECTORS_OLLAMA, /* {"embeddings": [[...], ...] */
    WHIT_VECTORS_ONE,    /* {"embedding": [...] */
    WHIT_VECTORS_LIST,   /* [{"index": 0, "embedding": [[...]]}, ...], which has no other members */
    WHIT_VECTORS_GEMINI, /* {"embeddings": [{"values": [...]}, ...] */
    WHIT_VECTORS_GEMINI_ONE, /* {"embedding": {"values": [...]} */
} whit_vectors_form;
/* Replies with n vectors of `width` values, written piece by piece. Takes ownership of the values and of `rest`, an
 * object with the reply's other members. */
void whit_reply_vectors(whit_web_reply *reply, whit_vectors_form form, bool base64, float *values, size_t n,
                        size_t width, json_t *rest);

#endif
