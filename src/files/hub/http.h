/* SPDX-License-Identifier: MIT
 * Sends GET requests over HTTP as downloads need them: with redirects, ranges, a token that is sent only to its own
 * hub.
 *
 * Requests go through libcurl, which is opened on first use; a build without its header, or a machine without the
 * library, says so in one line. Only one thread may use it at a time. */
#ifndef WHIT_HUB_HTTP_H
#define WHIT_HUB_HTTP_H

#include "base/mem.h"

#define WHIT_HTTP_URL_BYTES  4096
#define WHIT_HTTP_ETAG_BYTES 256
#define WHIT_HTTP_UNKNOWN    UINT64_MAX

typedef struct whit_http whit_http;

typedef struct whit_http_options {
    const char *home;            /* the hub's address; the token goes to its scheme, host and port alone */
    const char *token;           /* "": no token */
    uint32_t connect_s, stall_s; /* seconds to connect, and without any data, before giving up */
    const volatile bool *cancel; /* NULL: never */
} whit_http_options;

/* Holds the last response; headers that were not sent are "" or WHIT_HTTP_UNKNOWN. */
typedef struct whit_http_answer {
    long status;                       /* such as 200; 0: no response */
    uint64_t content_bytes;            /* Content-Length */
    uint64_t range_start, range_total; /* Content-Range */
    uint32_t retry_after_s;
    char etag[WHIT_HTTP_ETAG_BYTES];        /* with its quotes */
    char linked_etag[WHIT_HTTP_ETAG_BYTES]; /* X-Linked-Etag of the hub itself, without quotes */
    char error_code[64];                    /* X-Error-Code: the hub's reason for the status */
    char link[WHIT_HTTP_URL_BYTES];
    bool again; /* the failure may be temporary: a broken connection, a busy server */
} whit_http_answer;

/* Receives a body. Both functions are called for 2xx responses only, begin once before the body; a status other than
 * WHIT_OK ends the transfer and becomes its result. */
typedef struct whit_http_sink {
    whit_status (*begin)(void *user, const whit_http_answer *answer, whit_error *error);
    whit_status (*body)(void *user, const void *data, size_t n_bytes, whit_error *error);
    void *user;
} whit_http_sink;

/* Opens a handle. The error is WHIT_ERROR_UNSUPPORTED if there is no libcurl. The options' texts stay the caller's and
 * must outlive the handle. */
whit_status whit_http_open(const whit_http_options *options, whit_http **http, whit_error *error);
void whit_http_close(whit_http *http);

/* Requests `url`. The result is WHIT_OK if a complete response arrived, whatever its status. `offset_bytes` > 0
 * requests the rest of a file; with `if_range` (an ETag, or "") only if the file is unchanged. */
whit_status whit_http_get(whit_http *http, const char *url, uint64_t offset_bytes, const char *if_range,
                          const whit_http_sink *sink, whit_http_answer *answer, whit_error *error);

/* Returns the library's name of itself, "libcurl/7.88.1 ...", or NULL if it is not available. */
const char *whit_http_library(void);

#endif
