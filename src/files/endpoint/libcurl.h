/* SPDX-License-Identifier: MIT
 * libcurl, opened when somebody first asks for it: no program pays for loading it that makes no request, and none
 * fails to start where it is missing. For builds with its header; requests are those of endpoint.h and of the hub. */
#ifndef WHIT_ENDPOINT_LIBCURL_H
#define WHIT_ENDPOINT_LIBCURL_H

#include <curl/curl.h>
#include <stdbool.h>

/* The functions in use. */
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

/* False where the library is not on this machine or lacks a function. It stays loaded. */
bool whit_libcurl_load(whit_libcurl *api);

/* Loads it and makes it ready for requests: false as above, or where it fails to begin. */
bool whit_libcurl_open(whit_libcurl *api);

#endif
