/* SPDX-License-Identifier: MIT
 * The server and its models, as they are looked at: GET /v1/models, /health, /slots, /props. */
#include <stdlib.h>
#include <string.h>

#include "server/endpoints.h"
#include "server/models.h"
#include "server/replies.h"

/* Every model and adapter, as OpenAI lists them. */
static json_t *list_models(whit_site *site)
{
    json_t *list = json_array();
    whit_entry entry;
    for (size_t i = 0; whit_models_at(site, i, &entry); i++)
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
    return list;
}

void whit_models_list(whit_call *call)
{
    whit_api_reply(call->reply, json_pack("{s:s, s:o}", "object", "list", "data", list_models(call->site)));
}

void whit_models_get(whit_call *call)
{
    json_t *list = list_models(call->site), *one, *found = NULL;
    char *id = strndup(call->rest, call->n_rest);
    size_t i;
    json_array_foreach(list, i, one)
    {
        if (id && !found && whit_is_named(json_string_value(json_object_get(one, "id")), id)) found = one;
    }
    if (found) {
        whit_api_reply(call->reply, json_incref(found));
    } else {
        whit_api_fail(call->reply, 404, "invalid_request_error", "model",
                      "there is no model %.100s; GET /v1/models lists them", id ? id : "");
        whit_api_set_code(call->reply, "model_not_found");
    }
    json_decref(list);
    free(id);
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

void whit_slots_get(whit_call *call)
{
    whit_engine_counts c;
    whit_models_count(call->site, NULL, &c);
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
    whit_api_reply(call->reply,
                   json_pack("{s:s, s:s, s:I, s:I, s:{s:I}, s:{s:b, s:b}, s:b, s:b}", "model_path", api->name,
                             "build_info", whit_version(), "total_slots", (json_int_t)api->options->n_parallel, "n_ctx",
                             n_ctx, "default_generation_settings", "n_ctx", n_ctx, "modalities", "vision", 0, "audio",
                             0, "chat", api->chat != NULL, "tools",
                             api->chat && whit_chat_template_takes_tools(api->chat)));
}
