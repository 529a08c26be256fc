/* SPDX-License-Identifier: MIT
 * The interface to the model that answers an agent, and its two kinds: at an endpoint, and in this process. */
#ifndef WHIT_AGENT_MODEL_H
#define WHIT_AGENT_MODEL_H

#include "endpoint/endpoint.h"

#include <jansson.h>

typedef struct whit_agent_model {
    /* Sends messages and tools in the form of OpenAI's API. The answer has the form of a /chat/completions response;
     * the caller owns it. */
    whit_status (*ask)(void *user, const json_t *messages, const json_t *tools, json_t **answer, whit_error *error);
    void *user;
    size_t context_bytes; /* maximum size of the messages in bytes; 0: 400,000 */
} whit_agent_model;

/* ---- model at an endpoint (remote.c) --------------------------------------------------------- */

typedef struct whit_remote_model {
    whit_endpoint *endpoint;
    const char *name; /* NULL: the endpoint's default model */
    /* called with text as it arrives (once the endpoint has refused tools: with an answer's text at its end); may be
     * NULL */
    void (*on_text)(void *user, const char *text, size_t n_bytes);
    void *user;
    /* Called once, with the endpoint's error message, if the endpoint refuses tools but answers without them; may be
     * NULL. */
    void (*on_note)(const char *said);
    bool takes_no_tools; /* set once the endpoint has refused tools and answered without them */
    uint64_t n_answers;
} whit_remote_model;
whit_agent_model whit_remote_as_model(whit_remote_model *remote);

/* ---- model in this process (local.c) --------------------------------------------------------- */

typedef struct whit_local_model whit_local_model;

typedef struct whit_local_options {
    uint32_t n_tokens; /* maximum number of tokens of an answer; 0: 2,048; a smaller number than 192 counts as 192 */
    float temperature; /* 0: always the likeliest token */
    uint64_t seed;
    bool no_grammar; /* does not constrain answers to the schema; used to measure the benefit of the constraint */
    void (*on_text)(void *user, const char *text, size_t n_bytes);
    void *user;
} whit_local_options;

/* Opens a model in this process. Unless no_grammar is set, a grammar made of the tools' parameters constrains each
 * answer to a JSON object that is either a tool call or a text, and an answer is closed before the context or its token
 * limit ends it, so that every answer can be parsed. The member "formed" of an answer is true if it has one of the two
 * forms. `sequence` is the session's sequence that the model uses. Model and session must outlive `local`. Errors:
 * unsupported (the model has no tokenizer), memory. */
whit_status whit_local_open(const whit_model *model, whit_session *session, uint32_t sequence,
                            const whit_local_options *options, whit_local_model **local, whit_error *error);
void whit_local_close(whit_local_model *local);
whit_agent_model whit_local_as_model(whit_local_model *local);

#endif
