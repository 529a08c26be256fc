/* SPDX-License-Identifier: MIT
 * Answers a request as the HTTP library gives it to the server: "METHOD /path?query", header lines, an empty line,
 * and the body. The server has two small models, one of them with tools; whole answers must be JSON, and streams
 * must end. */
#include <jansson.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "server_site.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- replacement of the HTTP library --------------------------------------------------------------- */

enum { MOST_LINES = 32, MOST_HEADERS = sizeof((whit_web_reply *)NULL)->headers / (2 * sizeof(char *)) };

struct lines {
    char *names[MOST_LINES], *values[MOST_LINES];
    size_t n;
    char *query;
};

const char *whit_server_library(void)
{
    return "none";
}

bool whit_web_client_left(int fd)
{
    (void)fd;
    return false;
}

const char *whit_web_header(const whit_web_request *request, const char *name)
{
    const struct lines *lines = request->connection;
    for (size_t i = 0; i < lines->n; i++)
        if (!strcasecmp(lines->names[i], name)) return lines->values[i];
    return NULL;
}

const char *whit_web_query(const whit_web_request *request, const char *name)
{
    const struct lines *lines = request->connection;
    size_t n = strlen(name);
    const char *at = lines->query ? strstr(lines->query, name) : NULL;
    return !at ? NULL : at[n] == '=' ? at + n + 1 : at + n;
}

whit_status whit_web_serve(int listening, uint32_t n_connections, uint32_t timeout_s, whit_budget *budget,
                           whit_web_handler *handler, void *user, whit_web_server **server, whit_error *error)
{
    (void)listening, (void)n_connections, (void)timeout_s, (void)budget, (void)handler, (void)user;
    *server = NULL;
    return whit_fail(error, WHIT_ERROR_UNSUPPORTED, "nothing is served here");
}

void whit_web_quiesce(whit_web_server *server)
{
    (void)server;
}

void whit_web_close(whit_web_server *server)
{
    (void)server;
}

/* ---- the handling of a request ----------------------------------------------------------------------- */

/* Returns the next line, with its line feed replaced by a zero byte; NULL at the end. */
static char *next_line(char **at, const char *end)
{
    char *line = *at, *feed = line < end ? memchr(line, '\n', (size_t)(end - line)) : NULL;
    if (!feed) return NULL;
    *feed = 0;
    if (feed > line && feed[-1] == '\r') feed[-1] = 0;
    *at = feed + 1;
    return line;
}

static void fail_input(const char *what, const whit_web_reply *reply)
{
    fprintf(stderr, "%s: status %d: %.*s\n", what, reply->status, (int)reply->body.size_bytes,
            reply->body.data ? (const char *)reply->body.data : "");
    abort();
}

static void check_reply(whit_web_reply *reply)
{
    char piece[512];
    long n = 1;
    if (reply->status < 100 || reply->status > 599 || reply->n_headers > MOST_HEADERS)
        fail_input("status or headers", reply);
    if (reply->stream) {
        while ((n = reply->stream(reply->stream_user, piece, sizeof piece)) > 0) {
        }
        reply->end_stream(reply->stream_user);
        if (n < 0) fail_input("a stream breaks off", reply);
    } else if (reply->type && !strcmp(reply->type, "application/json")) {
        json_t *body = json_loadb((const char *)reply->body.data, reply->body.size_bytes, JSON_ALLOW_NUL, NULL);
        if (!body) fail_input("no JSON", reply);
        json_decref(body);
    }
    whit_buf_free(&reply->body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!site.models) open_site();
    char *text = malloc(size + 1), *at = text, *end = text + size, *line;
    if (!text) abort();
    if (size) memcpy(text, data, size);
    text[size] = 0;
    struct lines lines = {.n = 0};
    char *method = next_line(&at, end), *path = method ? strchr(method, ' ') : NULL;
    if (!path) {
        free(text);
        return 0;
    }
    *path++ = 0;
    lines.query = strchr(path, '?');
    if (lines.query) *lines.query++ = 0;
    while ((line = next_line(&at, end)) && *line && lines.n < MOST_LINES) {
        char *colon = strchr(line, ':');
        if (!colon) continue;
        *colon = 0;
        lines.names[lines.n] = line;
        lines.values[lines.n++] = colon + 1 + strspn(colon + 1, " ");
    }
    whit_web_request request = {.method = method, .path = path, .fd = -1, .connection = &lines, .headers_only = true};
    whit_web_reply refusal = {.status = 0}, reply = {.status = 500};
    whit_site_handle(&site, &request, &refusal);
    if (refusal.status) {
        check_reply(&refusal);
    } else {
        request.headers_only = false;
        request.body = at < end ? at : NULL;
        request.body_bytes = (size_t)(end - at);
        whit_site_handle(&site, &request, &reply);
        check_reply(&reply);
    }
    free(text);
    return 0;
}
