/* SPDX-License-Identifier: MIT
 * Sends JSON by POST to an OpenAI-compatible endpoint, retries failed attempts, and limits the size of an answer.
 *
 * The requests use libcurl, which is loaded when the first endpoint is opened. In a build without libcurl's header, or
 * on a machine without the library, opening fails with WHIT_ERROR_UNSUPPORTED. Redirects are not followed, so that the
 * key is sent only to the address that was given. */
#ifndef WHIT_ENDPOINT_ENDPOINT_H
#define WHIT_ENDPOINT_ENDPOINT_H

#include "base/mem.h"

typedef struct whit_endpoint whit_endpoint;

typedef struct whit_endpoint_options {
    const char *url;             /* base address, ".../v1", or the complete address ".../v1/chat/completions" */
    const char *socket_path;     /* path of a Unix socket to which requests for the address are sent; NULL: none */
    const char *path;            /* appended to the base address; NULL: "/chat/completions" */
    const char *key;             /* NULL or "": no key; sent only over https, or over http to this machine */
    uint32_t connect_s, stall_s; /* seconds to connect (0: 20); seconds without received data before the attempt fails
                                  * (0: 300) */
    uint32_t answer_s;           /* seconds for a request including all its attempts; 0: 14400 */
    uint32_t n_tries;            /* attempts per request; 0: 5 */
    size_t answer_bytes;         /* largest answer; a larger one fails with WHIT_ERROR_LIMIT; 0: 8 MiB */
    const volatile bool *cancel; /* set by the caller to cancel a request; NULL: a request cannot be cancelled */
    void (*on_retry)(void *user, const char *reason, uint32_t wait_ms); /* called before the pause of wait_ms that
                                                                         * precedes a further attempt; NULL: not
                                                                         * called */
    void *user;
    /* Called with `receiver` before each attempt; if it fails, nothing is sent, and the request fails with its error.
     * NULL: the address is always asked. */
    whit_status (*check_receiver)(const void *receiver, whit_error *error);
    const void *receiver;
} whit_endpoint_options;

/* Opens an endpoint; the options' texts are copied. Errors: argument (not an http or https address, an address with a
 * user name, a key with invalid characters or for an unencrypted address of another machine), unsupported (no libcurl),
 * memory. */
whit_status whit_endpoint_open(const whit_endpoint_options *options, whit_endpoint **endpoint, whit_error *error);
void whit_endpoint_close(whit_endpoint *endpoint);

/* Receives the body of a 2xx answer in pieces. */
typedef struct whit_endpoint_sink {
    void (*begin)(void *user);                                  /* called before each attempt */
    bool (*take)(void *user, const char *data, size_t n_bytes); /* receives a piece; false: stop reading, the rest is
                                                                 * not needed */
    bool (*has_ended)(void *user); /* true: the answer is complete, even if the connection breaks later */
    /* Called when a 2xx answer has ended. false: it is incomplete, and the request is sent again if an attempt is
     * left. */
    bool (*is_whole)(void *user);
    void *user;
} whit_endpoint_sink;

/* Sends `body` and passes the body of the 2xx response to `sink`. Repeats the request, up to n_tries attempts and
 * answer_s seconds in total, after status 408, 409, 429 or 5xx, a temporary failure of the connection (unless this
 * machine refuses it), or an incomplete answer. The pause before a repetition is the server's Retry-After (60 s at
 * most), else a delay that doubles each time, from 0.25 s to 16 s. Errors: io (with the server's message), limit (the
 * answer is too long), cancelled, memory, and those of check_receiver. */
whit_status whit_endpoint_post(whit_endpoint *endpoint, const char *body, size_t body_bytes,
                               const whit_endpoint_sink *sink, whit_error *error);

/* Gets a small document from a server on this machine, such as its list of models. Sends no key, uses no proxy, and
 * does not retry. Appends at most `bytes_max` bytes to `body`. Errors: argument (an address of another machine), io (no
 * answer within `timeout_ms`, or a status other than 200), limit (a larger document), unsupported (no libcurl),
 * memory. */
whit_status whit_endpoint_get(const char *url, uint32_t timeout_ms, size_t bytes_max, whit_buf *body,
                              whit_error *error);

#endif
