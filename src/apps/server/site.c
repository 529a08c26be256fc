/* SPDX-License-Identifier: MIT
 * Opens and closes the server's state and its models. */
#include "server/site.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/access.h"
#include "server/keep.h"
#include "server/kv_events.h"
#include "server/models.h"

whit_status whit_site_open(whit_site *site, whit_error *error)
{
    site->log.fd = -1;
    if (sodium_init() < 0)
        return whit_fail(error, WHIT_ERROR_IO,
                         "libsodium, which makes random numbers, could not be started on this system");
    site->started = time(NULL);
    randombytes_buf(&site->id_seed, sizeof site->id_seed);
    site->budget.all_bytes = (size_t)site->options->request_memory_mb << 20;
    site->budget.each_bytes = site->budget.all_bytes / 4;
    whit_page_open(site);
    if (site->options->cache_dir) site->i_server = whit_keep_join(site->options->cache_dir, &site->keep_fd);
    if (site->i_server)
        fprintf(stderr,
                "whit: another server also uses %s: this one keeps its own files there as number %u, and finds them "
                "again if it starts with the same number\n",
                site->options->cache_dir, site->i_server + 1);
    WHIT_TRY(whit_access_read(site, error));
    return whit_request_log_open(site->options->log_path, site->options->log_texts, &site->log, error);
}

uint64_t whit_site_number(whit_site *site)
{
    return atomic_fetch_add(&site->n_ids, 1) * 0x9E3779B97F4A7C15u ^ site->id_seed;
}

void whit_site_close(whit_site *site)
{
    if (site->store_fd >= 0) close(site->store_fd);
    pthread_mutex_destroy(&site->store_lock);
    site->store_fd = -1;
    if (site->keep_fd >= 0) close(site->keep_fd);
    site->keep_fd = -1;
    if (site->key_fd >= 0) close(site->key_fd);
    site->key_fd = -1;
    whit_access_free(site);
    whit_request_log_close(&site->log);
}

whit_status whit_api_open(whit_api *api, whit_error *error)
{
    whit_error why;
    whit_chat_template_options chat = whit_chat_template_options_default();
    chat.tool_fallback = !api->options->no_tool_fallback;
    const bool is_given = api->options->chat_template && api->name == api->options->models[0].name;
    if (is_given) {
        chat.source = api->options->chat_template;
        chat.source_bytes = strlen(chat.source);
        chat.name = api->options->chat_template_name;
    }
    if (whit_chat_template_open(api->model, &chat, &api->chat, &why) != WHIT_OK) {
        api->chat = NULL;
        if (is_given) {
            *error = why;
            return why.status;
        }
    }
    if (whit_grammar_vocabulary_open(api->model, &api->vocabulary, &why) != WHIT_OK) api->vocabulary = NULL;
    for (size_t k = 0; k < api->options->n_adapters; k++)
        if (whit_adapter_open(api->model, api->options->adapters[k].path, &api->adapters[k], &why) != WHIT_OK)
            /* the adapter was made for another model; whit_models_open fails if an adapter fits no model */
            api->adapters[k] = NULL;
    if (api->vocabulary && api->chat && whit_chat_template_takes_tools(api->chat) &&
        whit_chat_template_keep_special(api->chat))
        return whit_call_vocabulary_open(api->chat, &api->call_vocabulary, error);
    return WHIT_OK;
}

whit_engine_options whit_api_engine_options(const whit_server_options *options, const char *name)
{
    const whit_model *drafter = NULL;
    for (size_t i = 0; i < options->n_models; i++)
        if (!strcmp(options->models[i].name, name)) drafter = options->models[i].drafter;
    return (whit_engine_options){.n_slots = options->n_parallel,
                                 .n_threads = options->n_threads,
                                 .n_ctx_tokens = options->n_ctx_tokens,
                                 .n_queue = options->n_queue,
                                 .kv = options->kv,
                                 .n_kv_window = options->n_kv_window,
                                 .state_bytes = options->state_bytes,
                                 .expert_bytes = options->expert_bytes,
                                 .act = options->act,
                                 .n_batch_tokens = options->n_batch_tokens,
                                 .step_budget_ns = (uint64_t)options->step_budget_ms * 1000000,
                                 .n_draft_tokens = options->n_draft_tokens,
                                 .has_draft_block = options->has_draft_blocks,
                                 .drafter = drafter,
                                 .exact_head = options->exact_head,
                                 .drawn = options->drawn,
                                 .cache_dir = options->cache_dir};
}

whit_status whit_api_start(whit_api *api, whit_error *error)
{
    whit_engine_options engine = whit_api_engine_options(api->options, api->name);
    engine.i_server = api->site->i_server;
    engine.i_twin = whit_models_twin(api->site, api->name);
    engine.events = whit_events_channel(api->site->events, api->name);
    engine.adapters = api->adapters;
    engine.n_adapters = api->options->n_adapters;
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
