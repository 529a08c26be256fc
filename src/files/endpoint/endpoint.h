/* SPDX-License-Identifier: MIT
 * Sends JSON by POST to an OpenAI-compatible endpoint: retries as servers ask, and limits the size of an answer.
 *
 * The requests go through libcurl, which is opened at first use; a build without its header, or a machine without the
 * library, says so in one line. Redirects are not followed: the key goes only to the address that was given. */
#ifndef WHIT_ENDPOINT_ENDPOINT_H
#define WHIT_ENDPOINT_ENDPOINT_H

#include "base/mem.h"

typedef struct whit_endpoint whit_endpoint;

typedef struct whit_endpoint_options {
    const char *url;             /* ".../v1", or the whole address of chat/completions */
    const char *path;            /* path of the request; NULL: "/chat/completions" */
    const char *key;             /* NULL or "": no key; sent only over https, or over http to this machine */
    uint32_t connect_s, stall_s; /* seconds to connect, and without any data, before giving up; 0: 20, 300 */
    uint32_t answer_s;           /* seconds for a whole answer over all attempts of a request; 0: 14400 */
    uint32_t n_tries;            /* attempts per request; 0: 5 */
    size_t answer_bytes;         /* a longer answer is an error; 0: 8 MiB */
    const volatile bool *cancel; /* NULL: never */
    void (*on_retry)(void *user, const char *reason, uint32_t wait_ms); /* NULL: silent */
    void *user;
    /* Called with `receiver` before each attempt; if it fails, nothing is sent, and the request fails with its error.
     * NULL: the address is always asked. */
    whit_status (*check_receiver)(const void *receiver, whit_error *error);
    const void *receiver;
} whit_endpoint_options;

/* Opens an endpoint; the options' texts are copied. Errors: argument (no http address, a key that would be sent
 * unencrypted), unsupported (no libcurl), memory. */
whit_status whit_endpoint_open(const whit_endpoint_options *options, whit_endpoint **endpoint, whit_error *error);
void whit_endpoint_close(whit_endpoint *endpoint);

/* Receives the body of an answer in pieces. */
typedef struct whit_endpoint_sink {
    void (*begin)(void *user);                                  /* called before each attempt */
    bool (*take)(void *user, const char *data, size_t n_bytes); /* false: enough, stop reading the answer */
    bool (*has_ended)(void *user); /* true: the answer is complete, however the connection ends */
    bool (*is_whole)(void *user);  /* false: the answer is incomplete; the request is retried */
    void *user;
} whit_endpoint_sink;

/* Sends `body` and passes the content of the 2xx response to `sink`. 408, 409, 429, 5xx and broken connections are
 * retried, after Retry-After (60 s at most) or a delay that doubles each time. Errors: io (with what the server said),
 * limit (the answer is too long), cancelled, memory. */
whit_status whit_endpoint_post(whit_endpoint *endpoint, const char *body, size_t body_bytes,
                               const whit_endpoint_sink *sink, whit_error *error);

/* Gets a small document from a server on this machine, such as its list of models: no key is sent, no proxy is asked,
 * and nothing is retried. Appends at most `bytes_max` bytes to `body`. Errors: argument (another machine's address),
 * io (nothing answers in `timeout_ms`, or not with 200), limit, unsupported (no libcurl), memory. */
whit_status whit_endpoint_get(const char *url, uint32_t timeout_ms, size_t bytes_max, whit_buf *body,
                              whit_error *error);

#endif
