/* SPDX-License-Identifier: MIT
 * Serves requests that change the store of models: the connection's thread passes them to the helper process
 * (store_helper.c). */
#include "server/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "server/access.h"
#include "server/endpoints.h"
#include "server/models.h"

/* ---- communication with the helper --------------------------------------------------------------- */

/* A request to the helper. The site's store_lock is held until the helper has written its last line. */
struct errand {
    whit_site *site;
    char line[WHIT_STORE_LINE_BYTES]; /* the line that was read last from the helper */
    size_t n_line, n_sent;
    bool is_over, has_failed;
};

/* Reads the next line from the helper, including its line feed. Sets is_over after the last line, or if the helper has
 * ended. */
static void next_line(struct errand *e)
{
    static const char gone[] = "{\"error\":\"the helper process ended\"}\n";
    e->n_sent = e->n_line = 0;
    while (e->n_line + 1 < sizeof e->line) {
        ssize_t got = read(e->site->store_fd, e->line + e->n_line, 1);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            memcpy(e->line, gone, e->n_line = sizeof gone - 1);
            e->is_over = e->has_failed = true;
            return;
        }
        if (e->line[e->n_line++] == '\n') break;
    }
    e->line[e->n_line] = 0;
    e->has_failed = !strncmp(e->line, "{\"error\"", 8);
    e->is_over = e->has_failed || !strcmp(e->line, "{\"status\":\"success\"}\n");
}

static struct errand *begin_errand(whit_call *call, json_t *request)
{
    whit_site *site = call->site;
    char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
    struct errand *e = text ? calloc(1, sizeof *e) : NULL;
    json_decref(request);
    if (e && pthread_mutex_trylock(&site->store_lock) != 0) {
        whit_api_fail(call->reply, 503, "server_error", NULL, "another request is changing the models");
        whit_reply_header(call->reply, "Retry-After", "10");
        free(e);
        e = NULL;
    } else if (!e) {
        whit_api_fail(call->reply, 503, "server_error", NULL, "not enough memory for the request; try again later");
    } else {
        e->site = site;
        /* If the helper has ended, the next read reports it. */
        if (whit_write_all(site->store_fd, text, strlen(text))) (void)!whit_write_all(site->store_fd, "\n", 1);
    }
    free(text);
    return e;
}

/* Tells the helper to stop the errand, and waits for its last line. */
static void end_errand(struct errand *e)
{
    if (!e->is_over) (void)!whit_write_all(e->site->store_fd, "\n", 1);
    while (!e->is_over) next_line(e);
    pthread_mutex_unlock(&e->site->store_lock);
    free(e);
}

static long stream_lines(void *user, char *data, size_t room)
{
    struct errand *e = user;
    if (e->n_sent == e->n_line) {
        if (e->is_over) return 0;
        next_line(e);
    }
    size_t n = e->n_line - e->n_sent < room ? e->n_line - e->n_sent : room;
    memcpy(data, e->line + e->n_sent, n);
    e->n_sent += n;
    return (long)n;
}

static void end_stream(void *user)
{
    end_errand(user);
}

/* Waits for the end of an errand and replies with its result. */
static void reply_errand(whit_call *call, struct errand *e, bool with_status)
{
    if (!e) return;
    while (!e->is_over) next_line(e);
    json_t *line = json_loads(e->line, 0, NULL);
    const char *reason = json_string_value(json_object_get(line, "error"));
    if (reason)
        whit_api_fail(call->reply, strstr(reason, "is not here") || strstr(reason, "no pulled model") ? 404 : 400,
                      "invalid_request_error", "model", "%.800s", reason);
    else
        whit_api_reply(call->reply, with_status ? json_pack("{s:s}", "status", "success") : json_object());
    json_decref(line);
    end_errand(e);
}

/* Returns whether this request may change the store; otherwise fills in the reply. */
static bool may_change(whit_call *call)
{
    if (call->site->store_fd < 0)
        whit_api_fail(call->reply, 403, "permission_error", NULL,
                      "models are not changed over HTTP: start the server with --allow-pull and a key");
    else if (whit_key_is_limited(call->site, call->key))
        whit_api_fail(call->reply, 403, "permission_error", NULL, "this key may not change models");
    else
        return true;
    return false;
}

/* Returns the text of the member `key`, or of its older name. Fills in the reply and returns NULL if it is missing or
 * too long. */
static const char *text_of(whit_call *call, const char *key, const char *older)
{
    const char *text = json_string_value(json_object_get(call->body, key));
    if (!text || !*text) text = json_string_value(json_object_get(call->body, older));
    if (text && *text && strlen(text) < 1024) return text;
    whit_api_fail(call->reply, 400, "invalid_request_error", key, "%s: expected the name of a model", key);
    return NULL;
}

/* ---- endpoints ----------------------------------------------------------------------------------- */

void whit_ollama_pull(whit_call *call)
{
    const json_t *streams = json_object_get(call->body, "stream");
    const char *name = may_change(call) ? text_of(call, "model", "name") : NULL;
    struct errand *e = name ? begin_errand(call, json_pack("{s:s, s:s}", "do", "pull", "name", name)) : NULL;
    if (!e) return;
    if (json_is_false(streams)) {
        reply_errand(call, e, true);
        return;
    }
    call->reply->status = 200;
    call->reply->type = "application/x-ndjson";
    call->reply->stream = stream_lines;
    call->reply->end_stream = end_stream;
    call->reply->stream_user = e;
}

void whit_ollama_copy(whit_call *call)
{
    const char *from = may_change(call) ? text_of(call, "source", "from") : NULL;
    const char *to = from ? text_of(call, "destination", "to") : NULL;
    if (to)
        reply_errand(call, begin_errand(call, json_pack("{s:s, s:s, s:s}", "do", "copy", "name", from, "to", to)),
                     false);
}

/* Copies a model under another name. Members such as system or parameters are refused, because the store cannot contain
 * them: clients send them with each request. */
void whit_ollama_create(whit_call *call)
{
    static const char *const others[] = {"files",      "adapters", "template", "license",  "system",
                                         "parameters", "messages", "quantize", "modelfile"};
    const char *name = may_change(call) ? text_of(call, "model", "name") : NULL;
    for (size_t i = 0; name && i < sizeof others / sizeof others[0]; i++) {
        const json_t *value = json_object_get(call->body, others[i]);
        if (!value || json_is_null(value) || (json_is_string(value) && !json_string_length(value))) continue;
        whit_api_fail(call->reply, 400, "invalid_request_error", others[i],
                      "%s: a model can only be created as a copy, `from` another one; send system, parameters and "
                      "template with each request",
                      others[i]);
        return;
    }
    const char *from = name ? text_of(call, "from", "from") : NULL;
    if (from)
        reply_errand(call, begin_errand(call, json_pack("{s:s, s:s, s:s}", "do", "copy", "name", from, "to", name)),
                     true);
}

void whit_ollama_delete(whit_call *call)
{
    const char *name = may_change(call) ? text_of(call, "model", "name") : NULL;
    if (!name || !whit_models_forget(call->site, name, call->reply)) return;
    reply_errand(call, begin_errand(call, json_pack("{s:s, s:s}", "do", "remove", "name", name)), false);
    whit_models_forget_absent(call->site);
}
