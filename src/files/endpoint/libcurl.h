/* SPDX-License-Identifier: MIT
 * Loads libcurl at run time, when it is first used. A program that sends no request does not pay for loading it, and
 * programs start on machines without the library too. This header can only be included in builds that have libcurl's
 * own header; endpoint.h and the hub use it. */
#ifndef WHIT_ENDPOINT_LIBCURL_H
#define WHIT_ENDPOINT_LIBCURL_H

#include <curl/curl.h>
#include <stdbool.h>

/* Pointers to the functions of libcurl that the program uses. */
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

/* Loads the library and fills *api. The library is never unloaded. Returns false if it is not on this machine or lacks
 * a function. */
bool whit_libcurl_load(whit_libcurl *api);

/* Loads the library like whit_libcurl_load and calls curl_global_init. Returns false if either fails. */
bool whit_libcurl_open(whit_libcurl *api);

/* Sets the file of certificate authorities that `curl` checks https servers with to the result of
 * whit_certificates_find, if an environment variable names it or the library was built without a default file or
 * folder, as in the static program. curl_easy_reset undoes it. Returns false if a file is needed but not found: every
 * https request fails then. */
bool whit_libcurl_trust(const whit_libcurl *api, CURL *curl);

/* Text for error messages after whit_libcurl_trust has returned false. */
#define WHIT_LIBCURL_NO_AUTHORITIES                                                                                    \
    "no file of certificate authorities was found: install ca-certificates, or name one in SSL_CERT_FILE"

/* Options of a request apart from its method. Redirects are not followed. */
typedef struct whit_libcurl_request {
    const char *url;
    struct curl_slist *headers; /* NULL: no additional headers */
    long connect_s, stall_s;    /* seconds to connect; seconds without received data before the request fails */
    char *reason;               /* buffer of CURL_ERROR_SIZE bytes for libcurl's error message; NULL: not wanted */
    curl_write_callback on_body;
    curl_xferinfo_callback on_progress;
    void *user; /* passed to both callbacks */
} whit_libcurl_request;

/* Clears the handle's options and sets those of the request. */
void whit_libcurl_prepare(const whit_libcurl *api, CURL *curl, const whit_libcurl_request *request);

/* Returns whether the failure may be temporary, for example a broken connection or a server that does not answer, so
 * that a retry may help. */
bool whit_libcurl_may_pass(CURLcode code);

#endif
