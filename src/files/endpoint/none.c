/* SPDX-License-Identifier: MIT
 * Replaces curl.c in builds without the header of libcurl: every call fails. */
#include "endpoint/endpoint.h"

#include "base/status.h"

whit_status whit_endpoint_open(const whit_endpoint_options *options, whit_endpoint **endpoint, whit_error *error)
{
    (void)options;
    *endpoint = NULL;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "this build has no libcurl, so it cannot ask an endpoint: install its headers and build again");
}

void whit_endpoint_close(whit_endpoint *endpoint)
{
    (void)endpoint;
}

whit_status whit_endpoint_get(const char *url, uint32_t timeout_ms, size_t bytes_max, whit_buf *body, whit_error *error)
{
    (void)url, (void)timeout_ms, (void)bytes_max, (void)body;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "this build has no libcurl, so it cannot ask an endpoint: install its headers and build again");
}

whit_status whit_endpoint_post(whit_endpoint *endpoint, const char *body, size_t body_bytes,
                               const whit_endpoint_sink *sink, whit_error *error)
{
    (void)endpoint, (void)body, (void)body_bytes, (void)sink;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                     "this build has no libcurl, so it cannot ask an endpoint: install its headers and build again");
}
