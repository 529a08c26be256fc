/* SPDX-License-Identifier: MIT
 * What answers an agent: a model at an endpoint, or one in this process. */
#ifndef WHIT_AGENT_MODEL_H
#define WHIT_AGENT_MODEL_H

#include "endpoint/endpoint.h"

#include <jansson.h>

typedef struct whit_agent_model {
    /* Asks with messages and tools in the form of OpenAI's API; the answer is that of /chat/completions, and the
     * caller owns it. */
    whit_status (*ask)(void *user, const json_t *messages, const json_t *tools, json_t **answer, whit_error *error);
    void *user;
    size_t context_bytes; /* maximum size of the messages; 0: 400,000 */
} whit_agent_model;

/* ---- at an endpoint (remote.c) ---------------------------------------------------------------- */

typedef struct whit_remote_model {
    whit_endpoint *endpoint;
    const char *name;                                              /* NULL: the endpoint's default model */
    void (*on_text)(void *user, const char *text, size_t n_bytes); /* called with text as it arrives; may be NULL */
    void *user;
    /* Called once if the endpoint refuses tools, with its error message; may be NULL. */
    void (*on_note)(const char *said);
    bool takes_no_tools; /* found out by the first answer */
    uint64_t n_answers;
} whit_remote_model;
whit_agent_model whit_remote_as_model(whit_remote_model *remote);

/* ---- in this process (local.c) ---------------------------------------------------------------- */

typedef struct whit_local_model whit_local_model;

typedef struct whit_local_options {
    uint32_t n_tokens; /* most tokens of an answer; 0: 2,048 */
    float temperature; /* 0: the likeliest */
    uint64_t seed;
    bool no_grammar; /* does not constrain answers to the schema, to measure the constraint's benefit */
    void (*on_text)(void *user, const char *text, size_t n_bytes);
    void *user;
} whit_local_options;

/* Answers are JSON, a call of a tool or a text, held to that by a grammar made of the tools' parameters:
 * every answer parses, also one that the context cuts short, which is brought to its end. Model and
 * session outlive it; "formed" of an answer says whether it is of that form; `sequence` of the session is its own.
 * Errors: unsupported (no tokenizer), memory. */
whit_status whit_local_open(const whit_model *model, whit_session *session, uint32_t sequence,
                            const whit_local_options *options, whit_local_model **local, whit_error *error);
void whit_local_close(whit_local_model *local);
whit_agent_model whit_local_as_model(whit_local_model *local);

#endif
