/* SPDX-License-Identifier: MIT
 * Serves the state of the server and its models: GET /v1/models, /health, /slots and /props. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/phrase.h"
#include "server/access.h"
#include "base/items.h"
#include "server/endpoints.h"
#include "server/json_text.h"
#include "server/models.h"
#include "server/replies.h"
#include "server/settings.h"

/* Returns a list of all models and adapters that the key may use, in OpenAI's form. */
static json_t *list_models(whit_site *site, uint64_t key)
{
    json_t *list = json_array();
    whit_entry entry;
    for (size_t i = 0; whit_models_at(site, i, &entry); i++) {
        if (!whit_key_may_use(site, key, entry.options->name)) continue;
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:I, s:s, s:{s:I, s:I, s:I, s:I, s:b, s:b}, s:{s:s}}", "id",
                                        entry.options->name, "object", "model", "created", (json_int_t)site->started,
                                        "owned_by", "whit", "meta", "n_vocab", (json_int_t)entry.n_vocab, "n_ctx_train",
                                        (json_int_t)entry.n_ctx_train, "n_ctx", (json_int_t)entry.n_ctx, "n_bytes",
                                        (json_int_t)entry.n_bytes, "is_open", entry.api != NULL, "is_built_in",
                                        entry.options->path == NULL, "status", "value",
                                        entry.api ? "loaded" : "unloaded"));
    }
    for (size_t k = 0; k < site->options->n_adapters; k++) {
        if (!whit_key_may_use(site, key, site->options->adapters[k].name)) continue;
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:I, s:s, s:b}", "id", site->options->adapters[k].name, "object",
                                        "model", "created", (json_int_t)site->started, "owned_by", "whit", "is_adapter",
                                        1));
    }
    return list;
}

/* Converts the description of a model from OpenAI's to Anthropic's form; takes ownership of it. */
static json_t *anthropic_model(const whit_site *site, json_t *model)
{
    char created[32];
    struct tm utc;
    json_t *id = json_object_get(model, "id"), *n_ctx = json_object_get(json_object_get(model, "meta"), "n_ctx");
    gmtime_r(&site->started, &utc);
    strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_t *result = json_pack("{s:s, s:O, s:O, s:s, s:n, s:O?, s:O?}", "type", "model", "id", id, "display_name", id,
                               "created_at", created, "capabilities", "max_input_tokens", n_ctx, "max_tokens", n_ctx);
    json_decref(model);
    return result;
}

static size_t find_model(const json_t *list, const char *id)
{
    size_t i = 0;
    while (i < json_array_size(list) &&
           !whit_is_named(json_string_value(json_object_get(json_array_get(list, i), "id")), id))
        i++;
    return i;
}

/* Replies with at most `limit` models (20 if absent) of the list: those after the model after_id, or those directly
 * before the model before_id. */
static void reply_anthropic_list(whit_call *call, const json_t *list)
{
    const char *after = whit_web_query(call->request, "after_id"), *before = whit_web_query(call->request, "before_id");
    const char *limit = whit_web_query(call->request, "limit");
    long wanted = limit ? strtol(limit, NULL, 10) : 20;
    size_t n = json_array_size(list), begin = 0, end = n, most = wanted > 0 ? (size_t)wanted : 20;
    if (after) begin = find_model(list, after) < n ? find_model(list, after) + 1 : 0;
    if (before) end = find_model(list, before);
    if (before && end > begin + most) begin = end - most;
    bool more = before ? begin > 0 : end > begin + most;
    if (end > begin + most) end = begin + most;
    json_t *data = json_array();
    for (size_t i = begin; i < end; i++)
        json_array_append_new(data, anthropic_model(call->site, json_incref(json_array_get(list, i))));
    json_t *first = json_object_get(json_array_get(data, 0), "id");
    json_t *last = json_object_get(json_array_get(data, json_array_size(data) - 1), "id");
    whit_api_reply(
        call->reply,
        json_pack("{s:o, s:b, s:O?, s:O?}", "data", data, "has_more", (int)more, "first_id", first, "last_id", last));
}

void whit_models_list(whit_call *call)
{
    json_t *list = list_models(call->site, call->key);
    if (call->vendor == WHIT_VENDOR_ANTHROPIC)
        reply_anthropic_list(call, list);
    else
        whit_api_reply(call->reply, json_pack("{s:s, s:O}", "object", "list", "data", list));
    json_decref(list);
}

void whit_models_get(whit_call *call)
{
    json_t *list = list_models(call->site, call->key);
    char *id = strndup(call->rest, call->n_rest);
    json_t *found = id ? json_array_get(list, find_model(list, id)) : NULL;
    if (found) {
        json_incref(found);
        whit_api_reply(call->reply, call->vendor == WHIT_VENDOR_ANTHROPIC ? anthropic_model(call->site, found) : found);
    } else {
        whit_api_fail(call->reply, 404, "invalid_request_error", "model",
                      "there is no model %.100s; GET /v1/models lists them", whit_or_empty(id));
        whit_api_set_code(call->reply, "model_not_found");
    }
    json_decref(list);
    free(id);
}

/* Adds the state of the server to the body of /health. */
static void set_state(whit_web_reply *reply, const char *state)
{
    json_error_t ignored;
    json_t *body = whit_json_read(whit_chars(&reply->body), reply->body.size_bytes, &ignored);
    json_object_set_new(body, "state", json_string(state));
    whit_api_reply(reply, body);
}

/* Returns whether a model is being opened while none is open, so that requests have to wait. */
static bool is_loading(whit_site *site)
{
    whit_entry entry;
    bool is_opening = false;
    for (size_t i = 0; whit_models_at(site, i, &entry); i++) {
        if (entry.api) return false;
        is_opening |= entry.is_opening;
    }
    return is_opening;
}

void whit_health_get(whit_call *call)
{
    whit_site *site = call->site;
    whit_web_reply *reply = call->reply;
    whit_engine_counts c;
    whit_models_count(site, NULL, &c);
    bool strict = whit_web_query(call->request, "fail_on_no_slot") != NULL;
    if (*site->stop) {
        whit_api_fail(reply, 503, "unavailable_error", NULL, "the server is ending");
        set_state(reply, "draining");
        return;
    }
    /* n_slots is 0 while no model is open, as between closing one and opening another. This is no failure, since the
     * next request opens a model. */
    if (strict && c.n_slots && c.n_busy + c.n_queued >= c.n_slots) {
        whit_api_fail(reply, 503, "unavailable_error", NULL, "no slot is free");
        return;
    }
    whit_api_reply(reply,
                   json_pack("{s:s, s:s, s:I, s:I}", "status", "ok", "state", is_loading(site) ? "loading" : "ready",
                             "slots_idle", (json_int_t)(c.n_slots - c.n_busy), "slots_processing",
                             (json_int_t)c.n_busy));
}

/* Sums the counts of slots over all models that the request's key may use. */
static void count_slots(const whit_call *call, whit_engine_counts *sum)
{
    whit_entry entry;
    whit_engine_counts one;
    *sum = (whit_engine_counts){.n_slots = 0};
    for (size_t i = 0; whit_models_at(call->site, i, &entry); i++) {
        if (!whit_key_may_use(call->site, call->key, entry.options->name)) continue;
        whit_models_count(call->site, entry.options->name, &one);
        sum->n_slots += one.n_slots;
        sum->n_busy += one.n_busy;
        if (one.n_ctx_tokens > sum->n_ctx_tokens) sum->n_ctx_tokens = one.n_ctx_tokens;
    }
}

void whit_slots_get(whit_call *call)
{
    whit_engine_counts c;
    count_slots(call, &c);
    json_t *slots = json_array();
    if (whit_web_query(call->request, "fail_on_no_slot") && c.n_slots && c.n_busy >= c.n_slots)
        call->reply->status = 503;
    for (uint32_t i = 0; i < c.n_slots; i++)
        json_array_append_new(slots,
                              json_pack("{s:i, s:I, s:b}", "id", (int)i, "n_ctx", (json_int_t)c.n_ctx_tokens,
                                        "is_processing", i < c.n_busy));
    whit_api_reply(call->reply, slots);
}

void whit_props_get(whit_call *call)
{
    const whit_api *api = call->api;
    json_int_t n_ctx = whit_engine_context_size(api->engine);
    whit_sampler_options usual = whit_sampler_options_default();
    size_t n = 0;
    const char *source = api->chat ? whit_chat_template_source(api->chat, &n) : NULL;
    json_t *settings = json_pack("{s:i, s:i, s:b, s:I, s:b, s:o}", "id", 0, "id_task", -1, "is_processing", 0, "n_ctx",
                                 n_ctx, "speculative", 0, "params", whit_settings_json(&usual));
    json_object_set_new(json_object_get(settings, "params"), "n_predict", json_integer(-1));
    whit_api_reply(call->reply,
                   json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:{s:b, s:b}, s:b, s:b, s:b, s:b, s:s%}", "model_path",
                             api->name, "model_alias", api->name, "build_info", whit_version(), "total_slots",
                             (json_int_t)api->options->n_parallel, "n_ctx", n_ctx, "default_generation_settings",
                             settings, "modalities", "vision", 0, "audio", 0, "chat", api->chat != NULL, "tools",
                             api->chat && whit_chat_template_takes_tools(api->chat), "switches_thinking",
                             api->chat && whit_chat_template_switches_thinking(api->chat), "is_sleeping", 0,
                             "chat_template", whit_or_empty(source), n));
}

/* Returns the model name in the body of POST /models/load and /models/unload. Fills in the reply and returns NULL if it
 * is missing. */
static const char *wanted_model(const whit_call *call)
{
    const char *name = json_string_value(json_object_get(call->body, "model"));
    if (!name) whit_api_fail(call->reply, 400, "invalid_request_error", "model", "model: expected a name");
    return name;
}

void whit_models_load(whit_call *call)
{
    const char *name = wanted_model(call);
    whit_api *api = name ? whit_models_acquire(call->site, call->key, name, call->reply) : NULL;
    if (!api) return;
    whit_models_release(api);
    whit_api_reply(call->reply, json_pack("{s:b}", "success", 1));
}

void whit_models_unload_post(whit_call *call)
{
    const char *name = wanted_model(call);
    if (name && whit_models_unload(call->site, call->key, name, call->reply))
        whit_api_reply(call->reply, json_pack("{s:b}", "success", 1));
}
