/* SPDX-License-Identifier: MIT
 * Replaces http_curl.c in builds without libcurl: every call fails with an error. */
#include "hub/http.h"

whit_status whit_http_open(const whit_http_options *options, whit_http **http, whit_error *error)
{
    (void)options;
    *http = NULL;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "this whit was built without libcurl, so it cannot download ('make deps' installs it)");
}

void whit_http_close(whit_http *http)
{
    (void)http;
}

whit_status whit_http_get(whit_http *http, const char *url, uint64_t offset_bytes, const char *if_range,
                          const whit_http_sink *sink, whit_http_answer *answer, whit_error *error)
{
    (void)http, (void)offset_bytes, (void)if_range, (void)sink, (void)answer;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "%s: this whit was built without libcurl, so it cannot download ('make deps' installs it)", url);
}

const char *whit_http_library(void)
{
    return NULL;
}
