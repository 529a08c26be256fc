/* SPDX-License-Identifier: MIT
 * Parses a streamed answer of /chat/completions or /completions. The server-sent events arrive in pieces of any size
 * and are assembled into the message that an unstreamed answer would have. If the server does not stream, the plain
 * JSON answer is accepted too. */
#ifndef WHIT_ENDPOINT_STREAM_H
#define WHIT_ENDPOINT_STREAM_H

#include "endpoint/endpoint.h"

#include <jansson.h>

#define WHIT_SSE_CALLS_MAX 64

/* State of the parser. Zero-initialise it and set `on_text` and `user`. */
typedef struct whit_sse {
    void (*on_text)(void *user, const char *text, size_t n_bytes); /* receives each piece of the answer's text; may be
                                                                    * NULL */
    void *user;
    whit_buf line; /* bytes of a line whose end has not arrived yet */
    whit_buf body; /* the answer so far, unless it is a stream */
    whit_buf text;
    struct whit_sse_call {
        whit_buf id, name, arguments;
    } calls[WHIT_SSE_CALLS_MAX];
    size_t n_calls, n_events, n_blanks; /* n_blanks: number of white-space bytes at the beginning of the answer */
    json_t *usage, *finish;             /* finish: value of "finish_reason", a JSON string; NULL: not received */
    /* Two calls with different ids had the same index: from then on, pieces without a name or id extend the last
     * call. */
    bool is_moved;
    bool is_stream, is_done, failed; /* is_done: finish_reason or [DONE] was received; failed: `why` has the error
                                      * message */
    bool has_ended;                  /* [DONE] was received, so that a broken connection is no error any more */
    char why[200];
} whit_sse;

/* Parses the next piece. Returns false if the answer is invalid or reports an error, or there is not enough memory; the
 * caller then stops reading. */
bool whit_sse_push(whit_sse *stream, const char *data, size_t n_bytes);
/* Ends the parsing and returns the whole answer, which the caller must release: for a stream {"choices": [{"message":
 * ..., "finish_reason": ...}], "usage": ...}, otherwise the JSON that was received. Errors: format (not JSON, an event
 * that reports an error, a stream that ends too early), memory. */
whit_status whit_sse_finish(whit_sse *stream, json_t **answer, whit_error *error);
/* Returns a sink for whit_endpoint_post that parses into `stream`. */
whit_endpoint_sink whit_sse_sink(whit_sse *stream);
void whit_sse_free(whit_sse *stream);

#endif
