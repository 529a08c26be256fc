/* SPDX-License-Identifier: MIT */
#include "endpoint/endpoint.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/items.h"
#include "base/status.h"
#include "endpoint/libcurl.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define WAIT_MAX_MS 60000u
#define ENDED_NS    1000000000ull
#define SAID_BYTES  8192 /* the first bytes of an error page, which are read; the rest is discarded */
#define QUOTE_BYTES 400  /* longest quotation of the error page in a message */

struct whit_endpoint {
    whit_libcurl api;
    whit_endpoint_options options;
    char *url, *socket_path;
    CURL *curl;
    struct curl_slist *headers;
    /* The members below are the state of the current request: */
    const whit_endpoint_sink *sink;
    whit_buf said; /* body of an error response */
    size_t n_taken;
    bool too_long, is_enough;
    uint64_t ended_ns; /* time at which the sink reported the end of the answer; 0: not yet */
    char reason[CURL_ERROR_SIZE];
};

static bool is_this_machine(const char *url)
{
    static const char *const names[] = {"http://localhost", "http://127.0.0.1", "http://[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (strncasecmp(url, names[i], n) == 0 && strchr(":/", url[n])) return true; /* strchr also finds the final 0 */
    }
    return false;
}

static whit_status check_options(const whit_endpoint_options *options, whit_error *error)
{
    bool safe = strncasecmp(options->url, "https://", 8) == 0;
    if (!safe && strncasecmp(options->url, "http://", 7) != 0)
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%.200s: is not an http or https address", options->url);
    if (strchr(options->url, '@'))
        return whit_fail(error, WHIT_ERROR_ARGUMENT,
                         "the address must not contain a user name or a password: give a key instead");
    if (!options->key || !*options->key) return WHIT_OK;
    if (!safe && !is_this_machine(options->url))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%.200s: the key would be sent unencrypted; use https",
                         options->url);
    for (const char *c = options->key; *c; c++)
        if (*c < 33 || *c > 126)
            return whit_fail(error, WHIT_ERROR_ARGUMENT,
                             "the endpoint's key contains a space, or a character that is not printable ASCII");
    return WHIT_OK;
}

static bool add_header(whit_endpoint *endpoint, const char *line)
{
    struct curl_slist *longer = endpoint->api.slist_append(endpoint->headers, line);
    if (longer) endpoint->headers = longer;
    return longer != NULL;
}

static whit_status prepare_request(whit_endpoint *endpoint, whit_error *error)
{
    static const char tail[] = "/chat/completions";
    const whit_endpoint_options *options = &endpoint->options;
    const char *path = options->path ? options->path : tail;
    size_t n = strlen(options->url);
    while (n && options->url[n - 1] == '/') n--;
    if (n >= sizeof tail - 1 && memcmp(options->url + n - (sizeof tail - 1), tail, sizeof tail - 1) == 0)
        n -= sizeof tail - 1;
    char *bearer = NULL;
    bool ok = asprintf(&endpoint->url, "%.*s%s", (int)n, options->url, path) > 0;
    if (ok && options->socket_path) ok = (endpoint->socket_path = strdup(options->socket_path)) != NULL;
    ok = ok && add_header(endpoint, "Content-Type: application/json") && add_header(endpoint, "Expect:");
    if (ok && options->key && *options->key) {
        ok = asprintf(&bearer, "Authorization: Bearer %s", options->key) > 0 && add_header(endpoint, bearer);
        free(bearer);
    }
    return ok ? WHIT_OK : whit_fail_memory(error, "a connection", n);
}

whit_status whit_endpoint_open(const whit_endpoint_options *options, whit_endpoint **endpoint, whit_error *error)
{
    *endpoint = NULL;
    WHIT_TRY(check_options(options, error));
    whit_endpoint *opened = calloc(1, sizeof *opened);
    if (!opened) return whit_fail_memory(error, "a connection", sizeof *opened);
    opened->options = *options;
    if (!opened->options.connect_s) opened->options.connect_s = 20;
    if (!opened->options.stall_s) opened->options.stall_s = 300;
    if (!opened->options.answer_s) opened->options.answer_s = 14400;
    if (!opened->options.n_tries) opened->options.n_tries = 5;
    if (!opened->options.answer_bytes) opened->options.answer_bytes = (size_t)8 << 20;
    whit_status status = WHIT_OK;
    if (!whit_libcurl_open(&opened->api)) {
        free(opened);
        return whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "libcurl (libcurl.so.4) is not on this machine, so whit cannot ask an endpoint: install libcurl4");
    }
    opened->curl = opened->api.easy_init();
    status = opened->curl ? prepare_request(opened, error) : whit_fail_memory(error, "a connection", 0);
    /* The caller owns these texts and may free them now. */
    opened->options.url = opened->options.socket_path = opened->options.path = opened->options.key = NULL;
    if (status == WHIT_OK)
        *endpoint = opened;
    else
        whit_endpoint_close(opened);
    return status;
}

void whit_endpoint_close(whit_endpoint *endpoint)
{
    if (!endpoint) return;
    if (endpoint->curl) endpoint->api.easy_cleanup(endpoint->curl);
    endpoint->api.slist_free(endpoint->headers);
    whit_buf_free(&endpoint->said);
    free(endpoint->url);
    free(endpoint->socket_path);
    free(endpoint);
}

static size_t on_body(char *data, size_t one, size_t n_bytes, void *user)
{
    whit_endpoint *endpoint = user;
    long code = 0;
    (void)one;
    if (n_bytes > endpoint->options.answer_bytes - endpoint->n_taken) {
        endpoint->too_long = true;
        return 0;
    }
    endpoint->n_taken += n_bytes;
    endpoint->api.getinfo(endpoint->curl, CURLINFO_RESPONSE_CODE, &code);
    if (code / 100 != 2) {
        size_t room = SAID_BYTES - endpoint->said.size_bytes;
        (void)whit_buf_append(&endpoint->said, data, n_bytes < room ? n_bytes : room);
        return n_bytes;
    }
    endpoint->is_enough = !endpoint->sink->take(endpoint->sink->user, data, n_bytes);
    if (!endpoint->ended_ns && endpoint->sink->has_ended(endpoint->sink->user)) endpoint->ended_ns = whit_now_ns();
    return endpoint->is_enough ? 0 : n_bytes;
}

static int on_progress(void *user, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    const whit_endpoint *endpoint = user;
    (void)total, (void)now, (void)up_total, (void)up_now;
    /* The answer is complete once ended_ns is set. The server then has ENDED_NS to end the transfer, which lets the
     * connection be reused; after that the transfer is aborted. */
    bool is_late = endpoint->ended_ns && whit_now_ns() - endpoint->ended_ns > ENDED_NS;
    return is_late || whit_flag_is_set(endpoint->options.cancel);
}

static CURLcode post_once(whit_endpoint *endpoint, const char *body, size_t body_bytes, uint64_t left_ms, long *code,
                          uint64_t *wait_ms)
{
    const whit_libcurl *api = &endpoint->api;
    CURL *curl = endpoint->curl;
    curl_off_t wait_s = 0;
    endpoint->said.size_bytes = endpoint->n_taken = 0;
    endpoint->is_enough = false;
    endpoint->ended_ns = 0;
    endpoint->sink->begin(endpoint->sink->user);
    endpoint->reason[0] = 0;
    const whit_libcurl_request request = {.url = endpoint->url,
                                          .headers = endpoint->headers,
                                          .connect_s = (long)endpoint->options.connect_s,
                                          .stall_s = (long)endpoint->options.stall_s,
                                          .reason = endpoint->reason,
                                          .on_body = on_body,
                                          .on_progress = on_progress,
                                          .user = endpoint};
    whit_libcurl_prepare(api, curl, &request);
    if (!whit_libcurl_trust(api, curl) && strncasecmp(endpoint->url, "https:", 6) == 0) {
        snprintf(endpoint->reason, sizeof endpoint->reason, "%s", WHIT_LIBCURL_NO_AUTHORITIES);
        *code = 0;
        *wait_ms = 0;
        return CURLE_SSL_CACERT_BADFILE;
    }
    /* Bypass proxies: the request is not encrypted, and a proxy could read the key. */
    if (is_this_machine(endpoint->url)) api->setopt(curl, CURLOPT_NOPROXY, "*");
    if (endpoint->socket_path) api->setopt(curl, CURLOPT_UNIX_SOCKET_PATH, endpoint->socket_path);
    /* The stall limit does not catch a server that keeps sending a few bytes. */
    api->setopt(curl, CURLOPT_TIMEOUT_MS, (long)left_ms);
    api->setopt(curl, CURLOPT_POST, 1L);
    api->setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body_bytes);
    api->setopt(curl, CURLOPT_POSTFIELDS, body);
    CURLcode result = api->perform(curl);
    *code = 0;
    *wait_ms = 0;
    api->getinfo(curl, CURLINFO_RESPONSE_CODE, code);
    if (api->getinfo(curl, CURLINFO_RETRY_AFTER, &wait_s) == CURLE_OK && wait_s > 0) *wait_ms = (uint64_t)wait_s * 1000;
    if (*wait_ms > WAIT_MAX_MS) *wait_ms = WAIT_MAX_MS;
    return result;
}

static bool may_pass(CURLcode result, long code)
{
    if (result != CURLE_OK) return whit_libcurl_may_pass(result);
    return code == 408 || code == 409 || code == 429 || code / 100 == 5;
}

static bool is_cancelled(const whit_endpoint *endpoint)
{
    return whit_flag_is_set(endpoint->options.cancel);
}

static uint64_t milliseconds_until(uint64_t end_ns)
{
    const uint64_t now = whit_now_ns();
    return now < end_ns ? (end_ns - now) / 1000000 : 0;
}

static void pause_ms(const whit_endpoint *endpoint, uint64_t wait_ms)
{
    for (uint64_t slept = 0; slept < wait_ms && !is_cancelled(endpoint); slept += 50)
        nanosleep(&(struct timespec){.tv_nsec = 50 * 1000000L}, NULL);
}

/* Replaces the JSON of an error page by its message, in the forms that vendors use: {"error": {"message"}}, {"error":
 * "..."}, {"message": "..."}. Other pages stay unchanged. */
static void keep_sentence(whit_buf *said)
{
    json_t *page = said->size_bytes ? json_loadb(whit_chars(said), said->size_bytes, 0, NULL) : NULL;
    const json_t *reason = json_object_get(page, "error"), *inner = json_object_get(reason, "message");
    if (json_is_string(inner)) reason = inner;
    if (!json_is_string(reason)) reason = json_object_get(page, "message");
    if (json_is_string(reason)) {
        said->size_bytes = 0;
        whit_buf_append(said, json_string_value(reason), json_string_length(reason));
    }
    json_decref(page);
    if (said->size_bytes > QUOTE_BYTES) said->size_bytes = QUOTE_BYTES;
}

whit_status whit_endpoint_post(whit_endpoint *endpoint, const char *body, size_t body_bytes,
                               const whit_endpoint_sink *sink, whit_error *error)
{
    char why[CURL_ERROR_SIZE + QUOTE_BYTES + 40];
    endpoint->sink = sink;
    endpoint->too_long = false;
    const uint64_t end_ns = whit_now_ns() + endpoint->options.answer_s * 1000000000ull;
    for (uint32_t i = 0;; i++) {
        long code;
        uint64_t wait_ms, left_ms = milliseconds_until(end_ns);
        if (endpoint->options.check_receiver)
            WHIT_TRY(endpoint->options.check_receiver(endpoint->options.receiver, error));
        CURLcode result = post_once(endpoint, body, body_bytes, left_ms ? left_ms : 1, &code, &wait_ms);
        bool came = code / 100 == 2 && (result == CURLE_OK || endpoint->is_enough || endpoint->ended_ns);
        if (came && sink->is_whole(sink->user)) return WHIT_OK;
        if (result == CURLE_ABORTED_BY_CALLBACK || is_cancelled(endpoint))
            return whit_fail(error, WHIT_ERROR_CANCELLED, "interrupted");
        if (endpoint->too_long)
            return whit_fail(error, WHIT_ERROR_LIMIT, "%.200s: the answer is larger than %zu bytes, the limit",
                             endpoint->url, endpoint->options.answer_bytes);
        if (endpoint->said.failed || result == CURLE_OUT_OF_MEMORY) return whit_fail_memory(error, "an answer", 0);
        if (!milliseconds_until(end_ns))
            return whit_fail(error, WHIT_ERROR_IO, "%.200s: the answer was not complete after %u s", endpoint->url,
                             endpoint->options.answer_s);
        if (!came) keep_sentence(&endpoint->said);
        if (came)
            snprintf(why, sizeof why, "the answer was cut off");
        else if (result == CURLE_OK)
            snprintf(why, sizeof why, "the server says %ld: %.*s", code, (int)endpoint->said.size_bytes,
                     endpoint->said.size_bytes ? whit_chars(&endpoint->said) : "");
        else
            snprintf(why, sizeof why, "%s", endpoint->reason[0] ? endpoint->reason : "the connection failed");
        if (!came && !may_pass(result, code)) return whit_fail(error, WHIT_ERROR_IO, "%.200s: %s", endpoint->url, why);
        if (result == CURLE_COULDNT_CONNECT && is_this_machine(endpoint->url))
            return whit_fail(error, WHIT_ERROR_IO, "%.200s: nothing answers there; is the server running?",
                             endpoint->url);
        if (i + 1 >= endpoint->options.n_tries)
            return whit_fail(error, WHIT_ERROR_IO, "%.200s: %s (tried %u times)", endpoint->url, why, i + 1);
        if (!wait_ms) wait_ms = (uint64_t)250 << (i < 6 ? i : 6);
        if (endpoint->options.on_retry) endpoint->options.on_retry(endpoint->options.user, why, (uint32_t)wait_ms);
        pause_ms(endpoint, wait_ms);
    }
}

/* ---- GET from a server on this machine ----------------------------------------------------------- */

struct document {
    whit_buf *body;
    size_t left;
    bool too_long;
};

static size_t on_document(char *data, size_t one, size_t n_bytes, void *user)
{
    struct document *document = user;
    (void)one;
    document->too_long = n_bytes > document->left;
    if (document->too_long || !whit_buf_append(document->body, data, n_bytes)) return 0;
    document->left -= n_bytes;
    return n_bytes;
}

whit_status whit_endpoint_get(const char *url, uint32_t timeout_ms, size_t bytes_max, whit_buf *body, whit_error *error)
{
    whit_libcurl api;
    struct document document = {body, bytes_max, false};
    long code = 0;
    if (!is_this_machine(url))
        return whit_fail(error, WHIT_ERROR_ARGUMENT, "%.200s: is not an address of this machine", url);
    if (!whit_libcurl_open(&api))
        return whit_fail(
            error, WHIT_ERROR_UNSUPPORTED,
            "libcurl (libcurl.so.4) is not on this machine, so whit cannot ask an endpoint: install libcurl4");
    CURL *curl = api.easy_init();
    if (!curl) return whit_fail_memory(error, "a connection", 0);
    api.setopt(curl, CURLOPT_URL, url);
    api.setopt(curl, CURLOPT_NOPROXY, "*");
    api.setopt(curl, CURLOPT_USERAGENT, "whit");
    api.setopt(curl, CURLOPT_NOSIGNAL, 1L);
    api.setopt(curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    api.setopt(curl, CURLOPT_WRITEFUNCTION, on_document);
    api.setopt(curl, CURLOPT_WRITEDATA, &document);
    CURLcode result = api.perform(curl);
    api.getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    api.easy_cleanup(curl);
    if (document.too_long)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%.200s: the answer is larger than %zu bytes, the limit", url,
                         bytes_max);
    if (body->failed) return whit_fail_memory(error, "an answer", bytes_max);
    if (result != CURLE_OK) return whit_fail(error, WHIT_ERROR_IO, "%.200s: nothing answers there", url);
    return code == 200
        ? WHIT_OK
        : whit_fail(error, WHIT_ERROR_IO, "%.200s: the server answers with the HTTP status %ld", url, code);
}
