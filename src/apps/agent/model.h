/* SPDX-License-Identifier: MIT
 * Declares the model that answers an agent: a model at an endpoint, or a model in this process. */
#ifndef WHIT_AGENT_MODEL_H
#define WHIT_AGENT_MODEL_H

#include "endpoint/endpoint.h"

#include <jansson.h>

typedef struct whit_agent_model {
    /* Asks with messages and tools in the form of OpenAI's API. The answer has the form of a reply of
     * /chat/completions, and the caller owns it. */
    whit_status (*ask)(void *user, const json_t *messages, const json_t *tools, json_t **answer, whit_error *error);
    void *user;
    size_t context_bytes; /* maximum size of the messages in bytes; 0: 400,000 */
} whit_agent_model;

/* ---- at an endpoint (remote.c) ---------------------------------------------------------------- */

typedef struct whit_remote_model {
    whit_endpoint *endpoint;
    const char *name;                                              /* NULL: the endpoint's default model */
    void (*on_text)(void *user, const char *text, size_t n_bytes); /* called with text as it arrives; may be NULL */
    void *user;
    /* Called once if the endpoint refuses tools, with its error message; may be NULL. */
    void (*on_note)(const char *said);
    bool takes_no_tools; /* set by the first answer */
    uint64_t n_answers;
} whit_remote_model;
whit_agent_model whit_remote_as_model(whit_remote_model *remote);

/* ---- in this process (local.c) ---------------------------------------------------------------- */

typedef struct whit_local_model whit_local_model;

typedef struct whit_local_options {
    uint32_t n_tokens; /* maximum number of tokens of an answer; 0: 2,048 */
    float temperature; /* 0: the likeliest token is taken */
    uint64_t seed;
    bool no_grammar; /* answers are not constrained to the schema; serves to measure the benefit of the constraint */
    void (*on_text)(void *user, const char *text, size_t n_bytes);
    void *user;
} whit_local_options;

/* Opens a model in this process. Its answers are JSON objects, which are a call of a tool or a text; a grammar made of
 * the tools' parameters constrains them. So every answer can be parsed, also an answer that the context cuts short,
 * which is closed in time. Model and session must outlive `local`; the member "formed" of an answer is true if the
 * answer has one of the forms; `sequence` is the sequence of the session that it uses. Errors: unsupported (the model
 * has no tokenizer), memory. */
whit_status whit_local_open(const whit_model *model, whit_session *session, uint32_t sequence,
                            const whit_local_options *options, whit_local_model **local, whit_error *error);
void whit_local_close(whit_local_model *local);
whit_agent_model whit_local_as_model(whit_local_model *local);

#endif
