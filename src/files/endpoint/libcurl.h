/* SPDX-License-Identifier: MIT
 * Loads libcurl on first use: a program that makes no request does not pay for loading it, and every program starts on
 * a machine without the library. This header is for builds with libcurl's header; endpoint.h and the hub use it. */
#ifndef WHIT_ENDPOINT_LIBCURL_H
#define WHIT_ENDPOINT_LIBCURL_H

#include <curl/curl.h>
#include <stdbool.h>

/* Lists the functions in use. */
typedef struct whit_libcurl {
    CURLcode (*global_init)(long flags);
    char *(*version)(void);
    CURL *(*easy_init)(void);
    void (*easy_cleanup)(CURL *curl);
    void (*easy_reset)(CURL *curl);
    CURLcode (*setopt)(CURL *curl, CURLoption option, ...);
    CURLcode (*getinfo)(CURL *curl, CURLINFO info, ...);
    CURLcode (*perform)(CURL *curl);
    struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
    void (*slist_free)(struct curl_slist *list);
} whit_libcurl;

/* Loads the library, which stays loaded. The result is false if it is not on this machine or lacks a function. */
bool whit_libcurl_load(whit_libcurl *api);

/* Loads the library and initialises it for requests. The result is false if it cannot be loaded, or if the
 * initialisation fails. */
bool whit_libcurl_open(whit_libcurl *api);

/* Makes `curl` check https addresses with the authorities of whit_certificates_find, if a variable names their file or
 * the library has no place of its own for it, as in the static program. easy_reset undoes it. The result is false if
 * there is no file: every https request will fail then. */
bool whit_libcurl_trust(const whit_libcurl *api, CURL *curl);

/* Messages give this reason if whit_libcurl_trust finds no file. */
#define WHIT_LIBCURL_NO_AUTHORITIES                                                                                    \
    "no file of certificate authorities is on this machine: install ca-certificates, or name one in SSL_CERT_FILE"

/* Describes a request without its method. Redirects are not followed. */
typedef struct whit_libcurl_request {
    const char *url;
    struct curl_slist *headers; /* NULL: no additional headers */
    long connect_s, stall_s;    /* seconds to connect, and without any data, before giving up */
    char *reason;               /* CURL_ERROR_SIZE bytes for the library's words; NULL: not wanted */
    curl_write_callback on_body;
    curl_xferinfo_callback on_progress;
    void *user; /* passed to both callbacks */
} whit_libcurl_request;

/* Clears the handle's options and sets those of the request. */
void whit_libcurl_prepare(const whit_libcurl *api, CURL *curl, const whit_libcurl_request *request);

/* Returns whether the failure may be temporary: a broken connection, a server that does not answer. */
bool whit_libcurl_may_pass(CURLcode code);

#endif
