/* SPDX-License-Identifier: MIT
 * Parses a streamed answer of /chat/completions or /completions: server-sent events in pieces of any size are
 * assembled to the message that an unstreamed answer holds. A plain JSON answer, where a server does not stream, is
 * accepted too. */
#ifndef WHIT_ENDPOINT_STREAM_H
#define WHIT_ENDPOINT_STREAM_H

#include "endpoint/endpoint.h"

#include <jansson.h>

#define WHIT_SSE_CALLS_MAX 64

/* Holds the state of the parser; zero-initialise it with the first two members set. */
typedef struct whit_sse {
    void (*on_text)(void *user, const char *text, size_t n_bytes); /* gets each piece of text; may be NULL */
    void *user;
    whit_buf line; /* the beginning of an incomplete line */
    whit_buf body; /* the whole answer, if it is not a stream */
    whit_buf text;
    struct whit_sse_call {
        whit_buf id, name, arguments;
    } calls[WHIT_SSE_CALLS_MAX];
    size_t n_calls, n_events, n_blanks; /* n_blanks: blanks before the first other byte */
    json_t *usage, *finish;             /* finish: the reason why the answer ended; a string, or NULL */
    bool is_moved; /* an index was used for two calls: from then on, pieces without a name extend the last call */
    bool is_stream, is_done, failed; /* failed: `why` has a line */
    bool has_ended;                  /* [DONE] came: how the connection ends no longer matters */
    char why[200];
} whit_sse;

/* Parses the next piece. The result is false if the text is not a valid answer; the caller then stops reading. */
bool whit_sse_push(whit_sse *stream, const char *data, size_t n_bytes);
/* Ends the parsing and returns the whole answer as {"choices": [{"message": ..., "finish_reason": ...}], "usage": ...},
 * owned by the caller. Errors: format (not JSON, an event that reports an error, a stream that breaks off), memory. */
whit_status whit_sse_finish(whit_sse *stream, json_t **answer, whit_error *error);
/* Returns the sink through which whit_endpoint_post fills `stream`. */
whit_endpoint_sink whit_sse_sink(whit_sse *stream);
void whit_sse_free(whit_sse *stream);

#endif
