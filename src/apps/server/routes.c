/* SPDX-License-Identifier: MIT
 * Defines the table of endpoints; finds and runs the endpoint of a request. */
#include "server/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/access.h"
#include "server/body.h"
#include "server/endpoints.h"
#include "server/fields.h"
#include "server/models.h"

/* ---- the table of routes ------------------------------------------------------------------------- */

enum {
    PUBLIC = WHIT_ROUTE_PUBLIC,
    MODEL = WHIT_ROUTE_MODEL,
    WORK = WHIT_ROUTE_WORK | WHIT_ROUTE_MODEL,
    BARE = WHIT_ROUTE_BARE,
    SHARED = WHIT_ROUTE_SHARED,
    NAMED = WHIT_ROUTE_NAMED | BARE | WORK,
};
#define OPENAI    WHIT_VENDOR_OPENAI
#define ANTHROPIC WHIT_VENDOR_ANTHROPIC
#define OLLAMA    WHIT_VENDOR_OLLAMA
#define GEMINI    WHIT_VENDOR_GEMINI

/* A row without a method only determines the error format of unknown paths that begin with its path. */
const whit_route whit_routes[] = {
    {"GET", "/", whit_page_get, PUBLIC, OPENAI},
    {"GET", "/manifest.webmanifest", whit_manifest_get, PUBLIC | BARE, OPENAI},
    {"GET", "/icon.svg", whit_icon_get, PUBLIC | BARE, OPENAI},
    {"GET", "/health", whit_health_get, PUBLIC | WHIT_ROUTE_PROBE, OPENAI},
    {"GET", "/models", whit_models_list, PUBLIC | SHARED, OPENAI},
    {"GET", "/models/*", whit_models_get, SHARED, OPENAI},
    {"POST", "/models/load", whit_models_load, WHIT_ROUTE_WORK, OPENAI},
    {"POST", "/models/unload", whit_models_unload_post, WHIT_ROUTE_WORK, OPENAI},
    {"GET", "/metrics", whit_metrics_get, 0, OPENAI},
    {"GET", "/slots", whit_slots_get, 0, OPENAI},
    {"POST", "/slots/*", whit_slots_act, WORK | WHIT_ROUTE_EMPTY, OPENAI},
    {"GET", "/props", whit_props_get, WORK, OPENAI},

    {"POST", "/chat/completions", whit_chat_post, WORK, OPENAI},
    {"POST", "/chat/completions/render", whit_render_post, WORK, OPENAI},
    {"POST", "/completions", whit_completions_post, WORK, OPENAI},
    {"POST", "/completions/render", whit_completions_render_post, WORK, OPENAI},
    {"POST", "/embeddings", whit_embeddings_post, WORK, OPENAI},
    {"POST", "/rerank", whit_rerank_post, WORK, OPENAI},
    {"POST", "/reranking", whit_rerank_post, WORK, OPENAI},
    {"POST", "/responses", whit_responses_post, WORK, OPENAI},
    {"POST", "/responses/input_tokens", whit_responses_count, WORK, OPENAI},

    {"POST", "/messages", whit_anthropic_post, WORK, ANTHROPIC},
    {"POST", "/messages/count_tokens", whit_anthropic_count, WORK, ANTHROPIC},
    {NULL, "/messages/*", NULL, 0, ANTHROPIC},

    {"POST", "/completion", whit_completion_post, WORK, OPENAI},
    {"POST", "/embedding", whit_embedding_post, WORK, OPENAI},
    {"POST", "/infill", whit_infill_post, WORK, OPENAI},
    {"GET", "/lora-adapters", whit_adapters_get, 0, OPENAI},
    {"POST", "/lora-adapters", whit_adapters_set, WHIT_ROUTE_LIST, OPENAI},
    {"POST", "/tokenize", whit_tokenize_post, WORK, OPENAI},
    {"POST", "/detokenize", whit_detokenize_post, WORK, OPENAI},
    {"POST", "/apply-template", whit_template_post, WORK, OPENAI},

    {"GET", "/api/version", whit_ollama_version, BARE, OLLAMA},
    {"GET", "/api/tags", whit_ollama_tags, BARE, OLLAMA},
    {"GET", "/api/ps", whit_ollama_ps, BARE, OLLAMA},
    {"POST", "/api/show", whit_ollama_show, BARE | WORK, OLLAMA},
    {"POST", "/api/generate", whit_ollama_generate, BARE | WORK, OLLAMA},
    {"POST", "/api/chat", whit_ollama_chat, BARE | WORK, OLLAMA},
    {"POST", "/api/embed", whit_ollama_embed, BARE | WORK, OLLAMA},
    {"POST", "/api/embeddings", whit_ollama_embeddings, BARE | WORK, OLLAMA},
    {"POST", "/api/pull", whit_ollama_pull, BARE | WHIT_ROUTE_WORK, OLLAMA},
    {"POST", "/api/create", whit_ollama_create, BARE | WHIT_ROUTE_WORK, OLLAMA},
    {"POST", "/api/copy", whit_ollama_copy, BARE | WHIT_ROUTE_WORK, OLLAMA},
    {"DELETE", "/api/delete", whit_ollama_delete, BARE | WHIT_ROUTE_WORK, OLLAMA},
    {NULL, "/api/*", NULL, BARE, OLLAMA},

    {"GET", "/v1beta/models", whit_gemini_models, BARE, GEMINI},
    {"POST", "/v1beta/models/*:generateContent", whit_gemini_generate, NAMED, GEMINI},
    {"POST", "/v1beta/models/*:streamGenerateContent", whit_gemini_stream, NAMED, GEMINI},
    {"POST", "/v1beta/models/*:countTokens", whit_gemini_count, NAMED, GEMINI},
    {"POST", "/v1beta/models/*:embedContent", whit_gemini_embed, NAMED, GEMINI},
    {"POST", "/v1beta/models/*:batchEmbedContents", whit_gemini_embed_batch, NAMED, GEMINI},
    {"GET", "/v1beta/models/*", whit_gemini_model, BARE, GEMINI},
    {NULL, "/v1beta/*", NULL, BARE, GEMINI},
};

const size_t whit_n_routes = sizeof whit_routes / sizeof whit_routes[0];

/* ---- finding a row ------------------------------------------------------------------------------- */

static bool path_matches(const char *pattern, const char *path, const char **rest, size_t *n_rest)
{
    size_t n_before = strcspn(pattern, "*"), n = strlen(path);
    if (!pattern[n_before]) return !strcmp(pattern, path);
    const char *after = pattern + n_before + 1;
    size_t n_after = strlen(after);
    if (n <= n_before + n_after || strncmp(pattern, path, n_before) || strcmp(path + n - n_after, after) != 0)
        return false;
    *rest = path + n_before;
    *n_rest = n - n_before - n_after;
    return true;
}

/* The table's rows for a path. */
struct match {
    const whit_route *route; /* the row with the request's method, or NULL */
    const char *rest;
    size_t n_rest;
    bool takes_get, takes_post;
    const char *other; /* a method of the path other than GET and POST, or NULL */
    whit_vendor vendor;
};

static struct match find_route(const char *method, const char *path)
{
    struct match found = {.vendor = WHIT_VENDOR_OPENAI};
    bool has_v1 = !strncmp(path, "/v1/", 4), any = false;
    for (size_t i = 0; i < whit_n_routes; i++) {
        const whit_route *row = &whit_routes[i];
        const char *plain = has_v1 && !(row->flags & WHIT_ROUTE_BARE) ? path + 3 : path, *rest = NULL;
        size_t n_rest = 0;
        if (!path_matches(row->path, plain, &rest, &n_rest)) continue;
        if (!any) found.vendor = row->vendor;
        any = true;
        if (!row->method) continue;
        found.takes_get |= !strcmp(row->method, "GET");
        found.takes_post |= !strcmp(row->method, "POST");
        if (!strcmp(row->method, "DELETE")) found.other = row->method;
        if (found.route || strcmp(row->method, method) != 0) continue;
        found.route = row;
        found.vendor = row->vendor;
        found.rest = rest;
        found.n_rest = n_rest;
    }
    return found;
}

/* Replies 404 if the path is unknown, or 405 with the header Allow if the path does not have the method. */
static void refuse_route(const whit_site *site, const struct match *found, const whit_web_request *request,
                         whit_web_reply *reply)
{
    static const char *const allowed[2][4] = {{"", "GET, HEAD", "POST", "GET, HEAD, POST"},
                                              {"", "GET, HEAD, OPTIONS", "POST, OPTIONS", "GET, HEAD, POST, OPTIONS"}};
    static const char *const names[] = {"", "GET", "POST", "GET and POST"};
    int methods = found->takes_get + 2 * found->takes_post;
    if (!methods && found->other) {
        whit_api_fail(reply, 405, "invalid_request_error", NULL, "%.100s takes %s, not %.20s", request->path,
                      found->other, request->method);
        whit_reply_header(reply, "Allow", found->other);
        return;
    }
    if (!methods) {
        whit_api_fail(reply, 404, "not_found_error", NULL, "this server has no route %.20s %.100s", request->method,
                      request->path);
        return;
    }
    whit_api_fail(reply, 405, "invalid_request_error", NULL, "%.100s takes %s, not %.20s", request->path,
                  names[methods], request->method);
    whit_reply_header(reply, "Allow", allowed[site->options->cors_origin != NULL][methods]);
}

/* ---- serving a request --------------------------------------------------------------------------- */

/* Returns the model that the request names in its path or body or, if it has no body, in its query; a name in the path
 * goes before one in the body, which proxies that rename models leave as it was. The body gets the name as its member
 * "model", where handlers look for the name of an adapter. Fills in the reply and returns NULL on failure. */
static whit_api *choose_model(const whit_call *call, json_t *body)
{
    const json_t *model = json_object_get(body, "model"), *name = json_object_get(body, "name");
    const json_t *given = model ? model : name;
    const char *wanted = body ? json_string_value(given) : whit_web_query(call->request, "model");
    if (given && !wanted && !json_is_null(given)) {
        whit_field_refuse(call->reply, "model", "expected the name of a model, a text");
        return NULL;
    }
    const bool is_in_path = call->route->flags & WHIT_ROUTE_NAMED;
    json_t *named = NULL;
    if (is_in_path)
        named = json_stringn(call->rest, call->n_rest);
    else if (wanted)
        named = json_string(wanted);
    whit_api *api = whit_models_acquire(call->site, call->key, json_string_value(named), call->reply);
    if (api && named && json_is_object(body)) json_object_set(body, "model", named);
    json_decref(named);
    return api;
}

/* Reads the body, counts the request against the key's limit if the row has WHIT_ROUTE_WORK, opens the model if the row
 * needs one, and calls the row's handler. Replies itself if one of these fails. */
static void serve_call(whit_call *call)
{
    unsigned flags = call->route->flags;
    json_t *body = NULL;
    if (strcmp(call->route->method, "GET") != 0) {
        bool is_absent = flags & WHIT_ROUTE_EMPTY && !call->request->body_bytes;
        json_type type = flags & WHIT_ROUTE_LIST ? JSON_ARRAY : JSON_OBJECT;
        call->body = body = is_absent ? json_object() : whit_body_read(call->request, type, call->reply);
        if (!body) return;
    }
    bool is_work = flags & WHIT_ROUTE_WORK;
    if (is_work && call->site->is_refusing)
        whit_api_fail(call->reply, 503, "server_error", NULL, "the server is ending");
    else if ((!is_work || whit_key_count(call->site, call->key, call->reply)) &&
             (!(flags & WHIT_ROUTE_MODEL) || (call->api = choose_model(call, body)) != NULL))
        call->route->handler(call);
    if (call->api) {
        const char *name = call->api->name;
        whit_web_reply ignored = {.status = 0};
        whit_models_release(call->api);
        if (call->closes_model) (void)whit_models_unload(call->site, call->key, name, &ignored);
        whit_buf_free(&ignored.body);
    }
    json_decref(body);
}

/* Returns whether the request may be served: access is allowed, and the table has a row for it. Otherwise the reply
 * gets the reason. */
static bool admit_request(const whit_site *site, const whit_web_request *request, const struct match *found,
                          uint64_t *key, whit_web_reply *reply)
{
    bool is_public = (found->route && found->route->flags & WHIT_ROUTE_PUBLIC) || !strcmp(request->method, "OPTIONS");
    bool is_probe = found->route && found->route->flags & WHIT_ROUTE_PROBE;
    bool allowed = whit_key_allows(site, request, key);
    bool opens_model = found->route && found->route->flags & WHIT_ROUTE_MODEL;
    reply->is_known = allowed;
    if (!is_probe && whit_request_is_foreign(site, request, opens_model)) {
        whit_foreign_refuse(site, request, reply);
        return false;
    }
    if (!allowed && !is_public) {
        whit_api_fail(reply, 401, "authentication_error", NULL, "the API key is missing or unknown");
        whit_api_set_code(reply, "invalid_api_key");
        whit_reply_header(reply, "WWW-Authenticate", "Bearer");
        return false;
    }
    if (!found->route) refuse_route(site, found, request, reply);
    return found->route != NULL;
}

/* Sets the id of a request: its header X-Request-Id, by which proxies can trace it, or a new id. */
static void choose_id(whit_site *site, const whit_web_request *request, whit_web_reply *reply)
{
    const char *given = whit_web_header(request, "X-Request-Id");
    const size_t n = given ? strlen(given) : 0;
    bool is_plain = n && n < sizeof reply->id;
    for (size_t i = 0; is_plain && i < n; i++) is_plain = given[i] > ' ' && given[i] < 127;
    reply->is_id_given = is_plain;
    if (is_plain)
        memcpy(reply->id, given, n + 1);
    else
        snprintf(reply->id, sizeof reply->id, "req_%016llx", (unsigned long long)whit_site_number(site));
}

void whit_site_handle(void *user, const whit_web_request *request, whit_web_reply *reply)
{
    whit_site *site = user;
    uint64_t key = 0, begun_ns = whit_now_ns();
    reply->status = 0;
    choose_id(site, request, reply);
    if (whit_cors_answer(site, request, reply)) return;
    struct match found = find_route(request->method, request->path);
    if (found.route && found.route->flags & SHARED && whit_web_header(request, "anthropic-version"))
        found.vendor = WHIT_VENDOR_ANTHROPIC;
    if (admit_request(site, request, &found, &key, reply) && !request->headers_only) {
        whit_call call = {.site = site,
                          .request = request,
                          .route = found.route,
                          .rest = found.rest,
                          .n_rest = found.n_rest,
                          .vendor = found.vendor,
                          .key = key,
                          .reply = reply};
        serve_call(&call);
    }
    whit_api_translate_error(found.vendor, reply);
    bool refused = request->headers_only && reply->status;
    /* While the server ends, clients should use a new connection for the next request, which a load balancer sends to
     * another server. */
    if ((refused || !request->headers_only) && *site->stop) whit_reply_header(reply, "Connection", "close");
    if ((refused || !request->headers_only) && !reply->is_logged && site->log.fd >= 0) {
        json_t *line = json_pack("{s:s, s:o, s:o, s:i, s:I}", "id", reply->id, "method",
                                 whit_api_any_text(request->method), "path", whit_api_any_text(request->path), "status",
                                 reply->status, "total_us", (json_int_t)((whit_now_ns() - begun_ns) / 1000));
        whit_access_log_key(site, key, line);
        whit_request_log_write(&site->log, line);
    }
}
