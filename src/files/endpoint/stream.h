/* SPDX-License-Identifier: MIT
 * An answer of /chat/completions or /completions as it comes: server-sent events in pieces of any size, put together
 * to the message that an unstreamed answer holds; or JSON where a server does not stream. */
#ifndef WHIT_ENDPOINT_STREAM_H
#define WHIT_ENDPOINT_STREAM_H

#include "endpoint/endpoint.h"

#include <jansson.h>

#define WHIT_SSE_CALLS_MAX 64

/* Zero-initialise with the first two set. */
typedef struct whit_sse {
    void (*on_text)(void *user, const char *text, size_t n_bytes); /* of the message, as it comes; may be NULL */
    void *user;
    whit_buf line; /* an event's data that is not whole yet */
    whit_buf body; /* all of an answer that is no stream */
    whit_buf text;
    struct whit_sse_call {
        whit_buf id, name, arguments;
    } calls[WHIT_SSE_CALLS_MAX];
    size_t n_calls, n_events, n_blanks; /* n_blanks: before what comes first */
    json_t *usage, *finish;             /* finish: the reason why it ended; a string, or NULL */
    bool is_moved; /* calls whose index was another's: what comes without a name belongs to the last one */
    bool is_stream, is_done, failed; /* failed: `why` has a line */
    bool has_ended;                  /* by [DONE]: how the connection ends no longer matters */
    char why[200];
} whit_sse;

/* False where the answer cannot be one: then nothing more is wanted. */
bool whit_sse_push(whit_sse *stream, const char *data, size_t n_bytes);
/* At the end: the whole as {"choices": [{"message": ..., "finish_reason": ...}], "usage": ...}; the caller's. Errors:
 * format (no JSON, an event that is an error, a stream that breaks off), memory. */
whit_status whit_sse_finish(whit_sse *stream, json_t **answer, whit_error *error);
/* What whit_endpoint_post fills it by. */
whit_endpoint_sink whit_sse_sink(whit_sse *stream);
/* Did it come to its end? A stream that did not is to be asked for again. */
bool whit_sse_is_whole(const whit_sse *stream);
/* Forgets what came, for another try. */
void whit_sse_reset(whit_sse *stream);
void whit_sse_free(whit_sse *stream);

#endif
