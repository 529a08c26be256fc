/* SPDX-License-Identifier: MIT
 * Implements http.h by libcurl. Redirects are followed here, one request each, so that each request's host decides
 * whether the token is sent, and https never redirects to http. */
#include "hub/http.h"

#include "base/flag.h"
#include "endpoint/libcurl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REDIRECTS_MAX 8

struct whit_http {
    whit_libcurl api;
    whit_http_options options;
    CURL *curl; /* its connection is reused by later requests */
    /* The members below are the state of the current request: */
    const whit_http_sink *sink;
    whit_http_answer *answer;
    whit_status failed; /* status that the sink returned */
    whit_error *error;
    bool at_home;
    bool begun; /* the sink's `begin` was called for this response, so that trailers do not call it again */
    char reason[CURL_ERROR_SIZE];
};

const char *whit_http_library(void)
{
    whit_libcurl api;
    return whit_libcurl_load(&api) ? api.version() : NULL;
}

whit_status whit_http_open(const whit_http_options *options, whit_http **http, whit_error *error)
{
    *http = NULL;
    whit_http *opened = calloc(1, sizeof *opened);
    if (!opened) return whit_fail_memory(error, "a connection", sizeof *opened);
    opened->options = *options;
    whit_status status = WHIT_OK;
    if (!whit_libcurl_open(&opened->api))
        status = whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                           "libcurl (libcurl.so.4) is not on this machine, so whit cannot download: install libcurl4");
    else if (!(opened->curl = opened->api.easy_init()))
        status = whit_fail(error, WHIT_ERROR_MEMORY, "not enough memory for a connection");
    if (status == WHIT_OK)
        *http = opened;
    else
        free(opened);
    return status;
}

void whit_http_close(whit_http *http)
{
    if (!http) return;
    http->api.easy_cleanup(http->curl);
    free(http);
}

/* ---- headers -------------------------------------------------------------------------------- */

/* Returns whether `line` is the header `name`, and copies its value without the spaces around it ("" if it is too
 * long). */
static bool header_is(const char *line, size_t n_bytes, const char *name, char *value, size_t value_bytes)
{
    size_t n_name = strlen(name);
    if (n_bytes <= n_name || line[n_name] != ':' || strncasecmp(line, name, n_name) != 0) return false;
    line += n_name + 1;
    n_bytes -= n_name + 1;
    while (n_bytes && strchr(" \t", *line)) line++, n_bytes--;
    while (n_bytes && strchr(" \t\r\n", line[n_bytes - 1])) n_bytes--;
    value[0] = 0;
    if (n_bytes >= value_bytes) return true; /* too long for any header that is used */
    memcpy(value, line, n_bytes);
    value[n_bytes] = 0;
    return true;
}

static uint64_t number_in(const char *text)
{
    char *end;
    if (*text < '0' || *text > '9') return WHIT_HTTP_UNKNOWN;
    uint64_t number = strtoull(text, &end, 10);
    return *end && !strchr(" -/", *end) ? WHIT_HTTP_UNKNOWN : number;
}

/* Reads "bytes 100-199/200", or "bytes * /200" as status 416 has it. */
static void read_range(const char *text, whit_http_answer *answer)
{
    const char *slash = strchr(text, '/');
    if (strncasecmp(text, "bytes ", 6) != 0) return;
    answer->range_start = number_in(text + 6);
    if (slash) answer->range_total = number_in(slash + 1);
}

/* Removes W/ and the quotes from X-Linked-Etag, so that only the digits remain. */
static void bare_etag(char *etag)
{
    size_t n = strlen(etag), skip = strncmp(etag, "W/", 2) == 0 ? 2 : 0;
    if (n > skip + 1 && etag[skip] == '"' && etag[n - 1] == '"') {
        etag[n - 1] = 0;
        skip++;
    }
    memmove(etag, etag + skip, strlen(etag + skip) + 1);
}

static size_t on_header(char *line, size_t one, size_t n_bytes, void *user)
{
    whit_http *http = user;
    whit_http_answer *answer = http->answer;
    char value[WHIT_HTTP_URL_BYTES];
    (void)one;
    if (n_bytes > 5 && strncmp(line, "HTTP/", 5) == 0) {
        /* A new response begins, for example after a redirect. Of the earlier headers only X-Linked-Etag stays, which
         * the hub itself has sent. */
        char linked[WHIT_HTTP_ETAG_BYTES];
        memcpy(linked, answer->linked_etag, sizeof linked);
        *answer = (whit_http_answer){
            .content_bytes = WHIT_HTTP_UNKNOWN, .range_start = WHIT_HTTP_UNKNOWN, .range_total = WHIT_HTTP_UNKNOWN};
        memcpy(answer->linked_etag, linked, sizeof linked);
        const char *space = memchr(line, ' ', n_bytes);
        if (space) answer->status = strtol(space, NULL, 10);
    } else if (header_is(line, n_bytes, "Content-Length", value, sizeof value)) {
        answer->content_bytes = number_in(value);
    } else if (header_is(line, n_bytes, "Content-Range", value, sizeof value)) {
        read_range(value, answer);
    } else if (header_is(line, n_bytes, "Retry-After", value, sizeof value)) {
        uint64_t wait = number_in(value);
        if (wait == WHIT_HTTP_UNKNOWN)
            answer->retry_after_s = 0;
        else if (wait > 60)
            answer->retry_after_s = 60;
        else
            answer->retry_after_s = (uint32_t)wait;
    } else if (header_is(line, n_bytes, "X-Error-Code", answer->error_code, sizeof answer->error_code) ||
               header_is(line, n_bytes, "Link", answer->link, sizeof answer->link) ||
               header_is(line, n_bytes, "ETag", answer->etag, sizeof answer->etag)) {
        return n_bytes;
    } else if (http->at_home &&
               header_is(line, n_bytes, "X-Linked-Etag", answer->linked_etag, sizeof answer->linked_etag)) {
        bare_etag(answer->linked_etag);
    } else if (n_bytes <= 2 && answer->status / 100 == 2 && !http->begun) {
        http->begun = true;
        http->failed = http->sink->begin(http->sink->user, answer, http->error);
        if (http->failed != WHIT_OK) return 0;
    }
    return n_bytes;
}

static size_t on_body(char *data, size_t one, size_t n_bytes, void *user)
{
    whit_http *http = user;
    (void)one;
    if (http->answer->status / 100 != 2) return n_bytes; /* the body of an error page is ignored */
    http->failed = http->sink->body(http->sink->user, data, n_bytes, http->error);
    return http->failed == WHIT_OK ? n_bytes : 0;
}

static int on_progress(void *user, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    const whit_http *http = user;
    (void)total, (void)now, (void)up_total, (void)up_now;
    return whit_flag_is_set(http->options.cancel);
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Returns the length of "scheme://host:port"; 0 if the address is not http or https. */
static size_t origin_bytes(const char *url)
{
    if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0) return 0;
    const char *host = strstr(url, "://") + 3;
    return (size_t)(host - url) + strcspn(host, "/?#");
}

static bool same_origin(const char *a, const char *b)
{
    size_t n = origin_bytes(a);
    return n && n == origin_bytes(b) && strncasecmp(a, b, n) == 0;
}

static bool add_header(const whit_libcurl *api, struct curl_slist **headers, const char *name, const char *value)
{
    char line[1024];
    if (snprintf(line, sizeof line, "%s: %s", name, value) >= (int)sizeof line) return false;
    struct curl_slist *longer = api->slist_append(*headers, line);
    if (longer) *headers = longer;
    return longer != NULL;
}

/* Sends one request and reads its response, without following redirects. */
static whit_status get_once(whit_http *http, const char *url, uint64_t offset_bytes, const char *if_range,
                            whit_error *error)
{
    struct curl_slist *headers = NULL;
    char range[40];
    bool ok = true;
    http->at_home = same_origin(url, http->options.home);
    if (http->at_home && *http->options.token) {
        char bearer[800];
        ok = snprintf(bearer, sizeof bearer, "Bearer %s", http->options.token) < (int)sizeof bearer &&
            add_header(&http->api, &headers, "Authorization", bearer);
    }
    if (offset_bytes) {
        snprintf(range, sizeof range, "bytes=%llu-", (unsigned long long)offset_bytes);
        ok = ok && add_header(&http->api, &headers, "Range", range);
        if (*if_range) ok = ok && add_header(&http->api, &headers, "If-Range", if_range);
    }
    if (!ok) {
        http->api.slist_free(headers);
        return whit_fail(error, WHIT_ERROR_MEMORY, "not enough memory for a request");
    }
    http->failed = WHIT_OK;
    http->begun = false;
    http->error = error;
    http->reason[0] = 0;
    http->answer->status = 0;
    const whit_libcurl_request request = {.url = url,
                                          .headers = headers,
                                          .connect_s = (long)http->options.connect_s,
                                          .stall_s = (long)http->options.stall_s,
                                          .reason = http->reason,
                                          .on_body = on_body,
                                          .on_progress = on_progress,
                                          .user = http};
    whit_libcurl_prepare(&http->api, http->curl, &request);
    http->api.setopt(http->curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    http->api.setopt(http->curl, CURLOPT_HEADERFUNCTION, on_header);
    http->api.setopt(http->curl, CURLOPT_HEADERDATA, http);
    if (!whit_libcurl_trust(&http->api, http->curl) && strncasecmp(url, "https:", 6) == 0) {
        http->api.slist_free(headers);
        return whit_fail(error, WHIT_ERROR_IO, "%.300s: " WHIT_LIBCURL_NO_AUTHORITIES, url);
    }
    CURLcode code = http->api.perform(http->curl);
    http->api.slist_free(headers);
    if (http->failed != WHIT_OK) return http->failed;
    if (code == CURLE_OK) return WHIT_OK;
    if (code == CURLE_ABORTED_BY_CALLBACK) return whit_fail(error, WHIT_ERROR_CANCELLED, "interrupted");
    http->answer->again = whit_libcurl_may_pass(code);
    const char *reason = http->reason[0] ? http->reason : "the connection failed";
    return whit_fail(error, code == CURLE_OUT_OF_MEMORY ? WHIT_ERROR_MEMORY : WHIT_ERROR_IO, "%.300s: %s", url, reason);
}

static bool is_redirect(long status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

whit_status whit_http_get(whit_http *http, const char *url, uint64_t offset_bytes, const char *if_range,
                          const whit_http_sink *sink, whit_http_answer *answer, whit_error *error)
{
    char here[WHIT_HTTP_URL_BYTES];
    *answer = (whit_http_answer){0};
    http->sink = sink;
    http->answer = answer;
    if (snprintf(here, sizeof here, "%s", url) >= (int)sizeof here)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%.200s...: the address is longer than 4,095 bytes, the limit", url);
    for (int n_redirects = 0;; n_redirects++) {
        if (!origin_bytes(here))
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "%.300s: only http and https addresses are supported",
                             here);
        WHIT_TRY(get_once(http, here, offset_bytes, if_range, error));
        if (!is_redirect(answer->status)) break;
        char *next = NULL;
        if (http->api.getinfo(http->curl, CURLINFO_REDIRECT_URL, &next) != CURLE_OK || !next)
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "%.300s: the server redirects without an address; try again later", here);
        if (n_redirects == REDIRECTS_MAX)
            return whit_fail(error, WHIT_ERROR_FORMAT,
                             "%.300s: the server redirects more than %d times, the limit; is the address right?", url,
                             REDIRECTS_MAX);
        if (strncasecmp(here, "https:", 6) == 0 && strncasecmp(next, "https:", 6) != 0)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                             "%.200s: the server redirects from https to %.200s, which is not encrypted", here, next);
        if (snprintf(here, sizeof here, "%s", next) >= (int)sizeof here)
            return whit_fail(error, WHIT_ERROR_LIMIT, "%.200s...: the address is longer than 4,095 bytes, the limit",
                             next);
    }
    answer->again = answer->status == 408 || answer->status == 429 || answer->status / 100 == 5;
    return WHIT_OK;
}
