/* SPDX-License-Identifier: MIT
 * Sends GET requests over HTTP for downloads, with redirects and byte ranges. The token is sent only to the hub's own
 * address.
 *
 * The requests use libcurl, which is loaded when a handle is opened. In a build without libcurl's header, or on a
 * machine without the library, opening fails with WHIT_ERROR_UNSUPPORTED. A handle may be used by one thread at a
 * time. */
#ifndef WHIT_HUB_HTTP_H
#define WHIT_HUB_HTTP_H

#include "base/mem.h"

#define WHIT_HTTP_URL_BYTES  4096
#define WHIT_HTTP_ETAG_BYTES 256
#define WHIT_HTTP_UNKNOWN    UINT64_MAX

typedef struct whit_http whit_http;

typedef struct whit_http_options {
    const char *home;            /* the hub's address; the token is sent only to this scheme, host and port */
    const char *token;           /* "": no token */
    uint32_t connect_s, stall_s; /* seconds to connect; seconds without received data before the request fails */
    const volatile bool *cancel; /* set by the caller to cancel a request; NULL: a request cannot be cancelled */
} whit_http_options;

/* The last response. Absent headers are "", 0 (Retry-After, also if it is a date) or WHIT_HTTP_UNKNOWN; retry_after_s
 * is at most 60. */
typedef struct whit_http_answer {
    long status;                       /* such as 200; 0: no response */
    uint64_t content_bytes;            /* Content-Length */
    uint64_t range_start, range_total; /* Content-Range */
    uint32_t retry_after_s;
    char etag[WHIT_HTTP_ETAG_BYTES];        /* with its quotes */
    char linked_etag[WHIT_HTTP_ETAG_BYTES]; /* X-Linked-Etag, without quotes, if a response of the hub itself has it */
    char error_code[64];                    /* X-Error-Code: the hub's reason for a failure */
    char link[WHIT_HTTP_URL_BYTES];
    bool again; /* the failure may be temporary: a broken connection, a busy server */
} whit_http_answer;

/* Receives the body of a 2xx response. `begin` is called once before the body. A status other than WHIT_OK ends the
 * transfer and becomes its result. */
typedef struct whit_http_sink {
    whit_status (*begin)(void *user, const whit_http_answer *answer, whit_error *error);
    whit_status (*body)(void *user, const void *data, size_t n_bytes, whit_error *error);
    void *user;
} whit_http_sink;

/* Opens a handle. The error is WHIT_ERROR_UNSUPPORTED if there is no libcurl. The texts of `options` are not copied and
 * must outlive the handle. */
whit_status whit_http_open(const whit_http_options *options, whit_http **http, whit_error *error);
void whit_http_close(whit_http *http);

/* Requests `url`. The result is WHIT_OK if a complete response arrived, with any HTTP status. With `offset_bytes` > 0
 * only the rest of the file from that byte is requested; with an ETag in `if_range` (else "") the server sends the
 * whole file instead if it has changed. */
whit_status whit_http_get(whit_http *http, const char *url, uint64_t offset_bytes, const char *if_range,
                          const whit_http_sink *sink, whit_http_answer *answer, whit_error *error);

/* Returns libcurl's version text, "libcurl/7.88.1 ...", or NULL if the library is not available. */
const char *whit_http_library(void);

#endif
