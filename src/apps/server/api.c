/* SPDX-License-Identifier: MIT
 * Routes, keys, and the endpoints that need no generation. */
#include "server/dialect.h"
#include "server/models.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"

enum { MOST_KEYS = 4096, MOST_KEY_BYTES = 512 };

/* ---- keys -------------------------------------------------------------------------------------- */

static void hash_key(const char *key, size_t n, uint8_t hash[32])
{
    crypto_generichash(hash, 32, (const uint8_t *)key, n, NULL, 0);
}

static whit_status read_keys(whit_site *site, whit_error *error)
{
    const char *path = site->options->key_file;
    char line[MOST_KEY_BYTES + 2];
    if (!path) return WHIT_OK;
    FILE *file = fopen(path, "re");
    if (!file) return whit_fail_errno(error, path, "open");
    whit_status status = WHIT_OK;
    while (status == WHIT_OK && fgets(line, sizeof line, file)) {
        size_t n = strcspn(line, "\r\n");
        if (!n) continue;
        uint8_t(*larger)[32] = realloc(site->keys, (site->n_keys + 1) * sizeof *site->keys);
        if (larger) site->keys = larger;
        if (n > MOST_KEY_BYTES || site->n_keys == MOST_KEYS) /* a rest would be a key of its own */
            status = whit_fail(error, WHIT_ERROR_LIMIT, "%s: at most %d keys of %d bytes each", path, MOST_KEYS,
                               MOST_KEY_BYTES);
        else if (!larger)
            status = whit_fail_memory(error, "the keys", (site->n_keys + 1) * sizeof *site->keys);
        else
            hash_key(line, n, site->keys[site->n_keys++]);
    }
    fclose(file);
    sodium_memzero(line, sizeof line);
    WHIT_TRY(status);
    return site->n_keys ? WHIT_OK : whit_fail(error, WHIT_ERROR_ARGUMENT, "%s: there is no key in it", path);
}

/* Compares with every key, in the same time whichever fits. */
static bool is_allowed(const whit_site *site, const whit_web_request *request, uint64_t *key)
{
    const char *given = whit_web_header(request, "Authorization"), *other = whit_web_header(request, "X-Api-Key");
    uint8_t hash[32];
    bool ok = false;
    given = given && !strncmp(given, "Bearer ", 7) ? given + 7 : other ? other : "";
    hash_key(given, strlen(given), hash);
    memcpy(key, hash, sizeof *key);
    for (size_t i = 0; i < site->n_keys; i++) ok |= sodium_memcmp(hash, site->keys[i], sizeof hash) == 0;
    return ok || !site->options->key_file;
}

/* Whether the origin is a page that came from another machine: http or https, and a name with a dot. */
static bool is_named_page(const char *origin)
{
    size_t n_scheme = !strncmp(origin, "http://", 7) ? 7 : !strncmp(origin, "https://", 8) ? 8 : 0;
    const char *host = origin + n_scheme;
    size_t n = strcspn(host, ":/");
    if (!n_scheme || *host == '[' || !memchr(host, '.', n)) return false;
    return strspn(host, "0123456789.") < n && !(n > 10 && !strncasecmp(host + n - 10, ".localhost", 10));
}

/* Without a key, a server for this machine alone trusts who reaches it. A page from elsewhere does where its name was
 * made to lead here (DNS rebinding): to the browser both are one site then, and only the name tells. */
static bool trusts_this_machine(const whit_server_options *options)
{
    const char *host = options->host;
    return !options->socket_path && !options->key_file && host &&
        (!strncmp(host, "127.", 4) || !strcmp(host, "localhost") || !strcmp(host, "::1"));
}

/* A page of another site: it could not read the answer, but its question would cost what one's own costs. */
static bool is_foreign(const whit_site *site, const whit_web_request *request)
{
    const char *from = whit_web_header(request, "Sec-Fetch-Site"), *origin = whit_web_header(request, "Origin");
    const char *friend = site->options->cors_origin;
    if (!strcmp(request->method, "GET") || !strcmp(request->method, "OPTIONS")) return false;
    bool foreign = (from && !strcmp(from, "cross-site")) ||
        (origin && trusts_this_machine(site->options) && is_named_page(origin));
    return foreign && (!friend || !origin || (strcmp(friend, "*") != 0 && strcmp(friend, origin) != 0));
}

/* ---- endpoints --------------------------------------------------------------------------------- */

/* All, or the one of that id. */
static void get_models(whit_site *site, const char *id, whit_web_reply *reply)
{
    json_t *list = json_array(), *one;
    whit_entry entry;
    size_t i;
    for (i = 0; whit_models_at(site, i, &entry); i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:I, s:s, s:{s:I, s:I, s:I, s:I, s:b}}", "id", entry.options->name,
                                        "object", "model", "created", (json_int_t)site->started, "owned_by", "whit",
                                        "meta", "n_vocab", (json_int_t)entry.n_vocab, "n_ctx_train",
                                        (json_int_t)entry.n_ctx_train, "n_ctx", (json_int_t)entry.n_ctx, "n_bytes",
                                        (json_int_t)entry.n_bytes, "is_open", entry.api != NULL));
    for (size_t k = 0; k < site->options->n_adapters; k++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:I, s:s, s:b}", "id", site->options->adapters[k].name, "object",
                                        "model", "created", (json_int_t)site->started, "owned_by", "whit", "is_adapter",
                                        1));
    if (!id) {
        whit_api_reply(reply, json_pack("{s:s, s:o}", "object", "list", "data", list));
        return;
    }
    json_array_foreach(list, i,
                       one) if (!reply->status && whit_is_named(json_string_value(json_object_get(one, "id")), id))
        whit_api_reply(reply, json_incref(one));
    json_decref(list);
    if (reply->status) return;
    whit_api_fail(reply, 404, "invalid_request_error", "model", "there is no model %.100s; GET /v1/models lists them",
                  id);
    whit_api_set_code(reply, "model_not_found");
}

static void get_health(whit_site *site, const whit_web_request *request, whit_web_reply *reply)
{
    whit_engine_counts c;
    whit_models_count(site, NULL, &c);
    bool strict = whit_web_query(request, "fail_on_no_slot") != NULL;
    if (*site->stop) {
        whit_api_fail(reply, 503, "unavailable_error", NULL, "the server is ending");
        return;
    }
    /* No model may be open between two: one is opened for the next request. */
    if (strict && c.n_slots && c.n_busy + c.n_queued >= c.n_slots) {
        whit_api_fail(reply, 503, "unavailable_error", NULL, "no slot is free");
        return;
    }
    whit_api_reply(reply,
                   json_pack("{s:s, s:I, s:I}", "status", "ok", "slots_idle", (json_int_t)(c.n_slots - c.n_busy),
                             "slots_processing", (json_int_t)c.n_busy));
}

static void get_slots(whit_site *site, const whit_web_request *request, whit_web_reply *reply)
{
    whit_engine_counts c;
    whit_models_count(site, NULL, &c);
    json_t *slots = json_array();
    if (whit_web_query(request, "fail_on_no_slot") && c.n_slots && c.n_busy >= c.n_slots) reply->status = 503;
    for (uint32_t i = 0; i < c.n_slots; i++)
        json_array_append_new(slots,
                              json_pack("{s:i, s:I, s:b}", "id", (int)i, "n_ctx", (json_int_t)c.n_ctx_tokens,
                                        "is_processing", i < c.n_busy));
    whit_api_reply(reply, slots);
}

static void get_props(whit_api *api, whit_web_reply *reply)
{
    json_int_t n_ctx = whit_engine_context_size(api->engine);
    whit_api_reply(reply,
                   json_pack("{s:s, s:s, s:I, s:I, s:{s:I}, s:{s:b, s:b}, s:b, s:b}", "model_path", api->name,
                             "build_info", whit_version(), "total_slots", (json_int_t)api->options->n_parallel, "n_ctx",
                             n_ctx, "default_generation_settings", "n_ctx", n_ctx, "modalities", "vision", 0, "audio",
                             0, "chat", api->chat != NULL, "tools",
                             api->chat && whit_chat_template_takes_tools(api->chat)));
}

/* As llama.cpp has it: of a part of a character its bytes. */
static json_t *piece_json(const whit_api *api, int32_t id)
{
    whit_buf bytes = whit_api_token_bytes(api, id);
    json_t *piece =
        whit_api_is_text(&bytes) ? whit_dialect_text(bytes.data, bytes.size_bytes) : whit_api_byte_list(&bytes);
    whit_buf_free(&bytes);
    return json_pack("{s:i, s:o}", "id", (int)id, "piece", piece);
}

static void tokenize(whit_api *api, const json_t *body, whit_web_reply *reply)
{
    const json_t *content = json_object_get(body, "content");
    size_t n_bytes = json_string_length(content), n = 0;
    int32_t *ids = malloc((n_bytes + 16) * sizeof *ids);
    whit_error error = {.status = WHIT_ERROR_MEMORY, .message = "out of memory"};
    if (!json_is_string(content)) {
        whit_api_fail(reply, 400, "invalid_request_error", "content", "content: expected a text");
    } else if (!ids ||
               whit_tokenize(
                   api->model, json_string_value(content), n_bytes, json_is_true(json_object_get(body, "add_special")),
                   !json_is_false(json_object_get(body, "parse_special")), ids, n_bytes + 16, &n, &error) != WHIT_OK) {
        whit_api_fail_error(reply, &error);
    } else {
        json_t *tokens = json_array();
        bool pieces = json_is_true(json_object_get(body, "with_pieces"));
        for (size_t i = 0; i < n; i++)
            json_array_append_new(tokens, pieces ? piece_json(api, ids[i]) : json_integer(ids[i]));
        whit_api_reply(reply, json_pack("{s:o}", "tokens", tokens));
    }
    free(ids);
}

static void detokenize(whit_api *api, const json_t *body, whit_web_reply *reply)
{
    const json_t *tokens = json_object_get(body, "tokens");
    whit_detokenizer *d = NULL;
    whit_buf out = {0};
    whit_error error;
    const char *text;
    size_t n, i;
    json_t *token;
    whit_status status = whit_detokenizer_open(api->model, false, &d, &error);
    if (status == WHIT_OK && !json_is_array(tokens))
        status = whit_fail(&error, WHIT_ERROR_ARGUMENT, "tokens: expected a list of token ids");
    json_array_foreach((json_t *)tokens, i, token)
    {
        json_int_t id = json_is_integer(token) ? json_integer_value(token) : -1;
        if (status == WHIT_OK && (id < 0 || id >= whit_model_vocab_size(api->model)))
            status = whit_fail(&error, WHIT_ERROR_ARGUMENT, "tokens: expected token ids");
        if (status == WHIT_OK) status = whit_detokenizer_push(d, (int32_t)id, &text, &n, &error);
        if (status == WHIT_OK) whit_buf_append(&out, text, n);
    }
    if (status == WHIT_OK) status = whit_detokenizer_flush(d, &text, &n, &error);
    if (status == WHIT_OK) whit_buf_append(&out, text, n);
    if (status == WHIT_OK) {
        json_t *content = json_stringn(out.data ? (const char *)out.data : "", out.size_bytes);
        whit_api_reply(reply, json_pack("{s:o}", "content", content ? content : json_string("")));
    } else {
        whit_api_fail_error(reply, &error);
    }
    whit_detokenizer_close(d);
    whit_buf_free(&out);
}

static void apply_template(whit_api *api, const json_t *body, whit_web_reply *reply)
{
    whit_chat_prompt *prompt = NULL;
    size_t n;
    if (!whit_ask_render(api, body, json_array_size(json_object_get(body, "tools")) > 0, &prompt, reply)) return;
    const char *text = whit_chat_prompt_text(prompt, &n);
    whit_api_reply(reply, json_pack("{s:s%}", "prompt", text, n));
    whit_chat_prompt_close(prompt);
}

static void with_body(whit_api *api, const whit_web_request *request, whit_web_reply *reply,
                      void (*endpoint)(whit_api *, const json_t *, whit_web_reply *))
{
    json_t *body = whit_api_body(request, reply);
    if (body) endpoint(api, body, reply);
    json_decref(body);
}

/* ---- routes ------------------------------------------------------------------------------------ */

static void add_header(whit_web_reply *reply, const char *name, const char *value)
{
    reply->headers[2 * reply->n_headers] = name;
    reply->headers[2 * reply->n_headers++ + 1] = value;
}

/* Without /v1, which all paths but Ollama's may have in front. */
static const char *plain_path(const char *path)
{
    return strncmp(path, "/v1/", 4) || !strncmp(path + 3, "/api/", 5) ? path : path + 3;
}

static bool is_one_of(const char *path, const char *const *list, size_t n)
{
    size_t i = 0;
    while (i < n && strcmp(path, list[i]) != 0) i++;
    return i < n;
}

/* Whether the path is there and takes the method; else the reply says what is. */
static bool is_served(const whit_site *site, const whit_web_request *request, whit_web_reply *reply)
{
    static const char *const got[] = {"/",      "/models", "/health",      "/metrics", "/slots",
                                      "/props", "/api/ps", "/api/version", "/api/tags"};
    static const char *const posted[] = {
        "/chat/completions", "/completions",  "/embeddings", "/messages",  "/messages/count_tokens",
        "/responses",        "/completion",   "/infill",     "/tokenize",  "/detokenize",
        "/apply-template",   "/api/generate", "/api/chat",   "/api/embed", "/api/embeddings",
        "/api/show"};
    const char *path = plain_path(request->path), *method = request->method;
    bool get = is_one_of(path, got, sizeof got / sizeof got[0]) || (!strncmp(path, "/models/", 8) && path[8]);
    bool post = !get && is_one_of(path, posted, sizeof posted / sizeof posted[0]), cors = site->options->cors_origin;
    if ((get && !strcmp(method, "GET")) || (post && !strcmp(method, "POST"))) return true;
    if (!get && !post) {
        whit_api_fail(reply, 404, "not_found_error", NULL, "there is no %.20s %.100s", method, request->path);
        return false;
    }
    whit_api_fail(reply, 405, "invalid_request_error", NULL, "%.100s takes %s, not %.20s", request->path,
                  get ? "GET" : "POST", method);
    add_header(reply, "Allow", get ? cors ? "GET, HEAD, OPTIONS" : "GET, HEAD" : cors ? "POST, OPTIONS" : "POST");
    return false;
}

/* What needs no model, so that looking at a server opens none. */
static bool route_site(whit_site *site, const whit_web_request *request, whit_web_reply *reply)
{
    const char *path = plain_path(request->path);
    if (!strcmp(path, "/"))
        whit_page_reply(site, reply);
    else if (!strcmp(path, "/models"))
        get_models(site, NULL, reply);
    else if (!strncmp(path, "/models/", 8))
        get_models(site, path + 8, reply);
    else if (!strcmp(path, "/health"))
        get_health(site, request, reply);
    else if (!strcmp(path, "/metrics"))
        whit_metrics_reply(site, reply);
    else if (!strcmp(path, "/slots"))
        get_slots(site, request, reply);
    else
        return site->models->n > 1 && whit_ollama_route_site(site, path, reply);
    return true;
}

static void route(whit_api *api, const whit_web_request *request, uint64_t key, whit_web_reply *reply)
{
    const char *path = plain_path(request->path);
    bool chat = !strcmp(path, "/chat/completions");
    if (request->body_bytes == SIZE_MAX) {
        whit_api_fail(reply, 413, "invalid_request_error", NULL, "the body is over %u MiB",
                      WHIT_WEB_MAX_BODY_BYTES >> 20);
    } else if (chat || !strcmp(path, "/completions")) {
        whit_ask *ask = *api->stop ? NULL : whit_ask_open(api, request, key, chat, reply);
        if (ask)
            whit_ask_reply(ask, reply);
        else if (*api->stop)
            whit_api_fail(reply, 503, "server_error", NULL, "the server is ending");
    } else if (whit_ollama_route(api, request, key, reply) || whit_messages_route(api, request, path, key, reply) ||
               whit_responses_route(api, request, path, key, reply) ||
               whit_completion_route(api, request, path, key, reply)) {
        return;
    } else if (!strcmp(path, "/embeddings")) {
        if (*api->stop)
            whit_api_fail(reply, 503, "server_error", NULL, "the server is ending");
        else
            whit_api_embeddings(api, request, reply);
    } else if (!strcmp(path, "/props")) {
        get_props(api, reply);
    } else {
        with_body(api, request, reply,
                  !strcmp(path, "/tokenize")         ? tokenize
                      : !strcmp(path, "/detokenize") ? detokenize
                                                     : apply_template);
    }
}

/* The model that a request names: in its body; of one without a body in its query. */
static whit_api *choose_model(whit_site *site, const whit_web_request *request, whit_web_reply *reply)
{
    const json_t *model = json_object_get(request->json, "model"), *name = json_object_get(request->json, "name");
    return whit_models_acquire(
        site, request->body ? json_string_value(model ? model : name) : whit_web_query(request, "model"), reply);
}

/* Lets pages of the origin of --cors read the answer; true: they only asked whether they may, and are told so. */
static bool answer_cors(const whit_site *site, const whit_web_request *request, whit_web_reply *reply)
{
    if (!site->options->cors_origin) return false;
    add_header(reply, "Access-Control-Allow-Origin", site->options->cors_origin);
    if (strcmp(request->method, "OPTIONS") != 0) {
        add_header(reply, "Access-Control-Expose-Headers", "X-Request-Id, request-id, Retry-After");
        return false;
    }
    if (request->headers_only) return true; /* told behind the body */
    /* Clients send headers of their own (x-stainless-lang, anthropic-version): none means anything here but the key. */
    const char *wanted = whit_web_header(request, "Access-Control-Request-Headers");
    add_header(reply, "Access-Control-Allow-Headers", wanted ? wanted : "Authorization, Content-Type, X-Api-Key");
    add_header(reply, "Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS");
    add_header(reply, "Access-Control-Max-Age", "600");
    reply->status = 204;
    return true;
}

void whit_site_handle(void *user, const whit_web_request *request, whit_web_reply *reply)
{
    whit_site *site = user;
    uint64_t key = 0, begun_ns = whit_now_ns();
    const char *path = plain_path(request->path);
    bool public = !strcmp(path, "/") || !strcmp(path, "/health") || !strcmp(path, "/models") ||
        !strcmp(request->method, "OPTIONS");
    bool allowed = is_allowed(site, request, &key), foreign = is_foreign(site, request);
    reply->status = 0;
    snprintf(reply->id, sizeof reply->id, "req_%016llx",
             atomic_fetch_add(&site->n_ids, 1) * 0x9E3779B97F4A7C15u ^ (unsigned long long)time(NULL));
    if (answer_cors(site, request, reply)) return;
    if (foreign)
        whit_api_fail(reply, 403, "permission_error", NULL, "a page of another site may not ask here (see --cors)");
    else if (!allowed && !public) {
        whit_api_fail(reply, 401, "authentication_error", NULL, "the API key is missing or unknown");
        whit_api_set_code(reply, "invalid_api_key");
        add_header(reply, "WWW-Authenticate", "Bearer");
    } else if (is_served(site, request, reply) && !request->headers_only && !route_site(site, request, reply)) {
        whit_web_request parsed = *request;
        json_error_t reason;
        whit_api *api = whit_api_parse(&parsed, &reason, reply) ? choose_model(site, &parsed, reply) : NULL;
        if (api) {
            route(api, &parsed, key, reply);
            whit_models_release(api);
        }
        json_decref(parsed.json);
    }
    whit_api_translate_error(request->path, reply);
    bool refused = request->headers_only && reply->status;
    if ((refused || !request->headers_only) && !reply->is_logged && site->log.fd >= 0)
        whit_request_log_write(&site->log,
                               json_pack("{s:o, s:o, s:i, s:I}", "method", whit_api_any_text(request->method), "path",
                                         whit_api_any_text(request->path), "status", reply->status, "total_us",
                                         (json_int_t)((whit_now_ns() - begun_ns) / 1000)));
}

/* ---- open and close ---------------------------------------------------------------------------- */

whit_status whit_site_open(whit_site *site, whit_error *error)
{
    site->log.fd = -1;
    if (sodium_init() < 0) return whit_fail(error, WHIT_ERROR_IO, "libsodium could not be started");
    site->started = time(NULL);
    whit_page_open(site);
    WHIT_TRY(read_keys(site, error));
    return whit_request_log_open(site->options->log_path, site->options->log_texts, &site->log, error);
}

void whit_site_close(whit_site *site)
{
    free(site->keys);
    whit_request_log_close(&site->log);
    site->keys = NULL;
    site->n_keys = 0;
}

whit_status whit_api_open(whit_api *api, whit_error *error)
{
    whit_error why;
    if (whit_chat_template_open(api->model, NULL, &api->chat, &why) != WHIT_OK) api->chat = NULL;
    if (whit_grammar_vocabulary_open(api->model, &api->vocabulary, &why) != WHIT_OK) api->vocabulary = NULL;
    for (size_t k = 0; k < api->options->n_adapters; k++)
        if (whit_adapter_open(api->model, api->options->adapters[k].path, &api->adapters[k], &why) != WHIT_OK)
            api->adapters[k] = NULL; /* of another model; whit_models_open looks for one that is of none */
    if (api->vocabulary && api->chat && whit_chat_template_takes_tools(api->chat) &&
        whit_chat_template_keep_special(api->chat))
        return whit_call_vocabulary_open(api->chat, &api->call_vocabulary, error);
    return WHIT_OK;
}

whit_engine_options whit_api_engine_options(const whit_server_options *options)
{
    return (whit_engine_options){.n_slots = options->n_parallel,
                                 .n_threads = options->n_threads,
                                 .n_ctx_tokens = options->n_ctx_tokens,
                                 .n_queue = options->n_queue,
                                 .kv = options->kv,
                                 .n_kv_window = options->n_kv_window,
                                 .act = options->act,
                                 .n_batch_tokens = options->n_batch_tokens,
                                 .exact_head = options->exact_head,
                                 .cache_dir = options->cache_dir};
}

whit_status whit_api_start(whit_api *api, whit_error *error)
{
    whit_engine_options engine = whit_api_engine_options(api->options);
    return whit_engine_open(api->model, &engine, &api->engine, error);
}

void whit_api_close(whit_api *api)
{
    whit_engine_close(api->engine);
    whit_chat_template_close(api->chat);
    whit_grammar_vocabulary_close(api->vocabulary);
    whit_grammar_vocabulary_close(api->call_vocabulary);
    for (size_t k = 0; k < api->options->n_adapters; k++) whit_adapter_close(api->adapters[k]);
}
