/* SPDX-License-Identifier: MIT */
#include "base/path.h"
#include "base/phrase.h"
#include "server/models.h"
#include "whit/facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "server/access.h"
#include "server/embedder.h"
#include "server/replies.h"
#include "whit/steps.h"

enum { MOST_ADDED = 256 }; /* maximum number of models that a server adds from the store while it runs */

/* ---- opening and measuring one model ------------------------------------------------------------- */

static void add_counts(whit_engine_counts *to, const whit_engine_counts *c)
{
    to->n_prompt_tokens += c->n_prompt_tokens, to->n_cached_tokens += c->n_cached_tokens;
    to->n_generated_tokens += c->n_generated_tokens, to->n_requests += c->n_requests;
    to->n_cancelled += c->n_cancelled, to->n_steps += c->n_steps, to->n_busy_slot_steps += c->n_busy_slot_steps;
    to->prompt_ns += c->prompt_ns, to->generate_ns += c->generate_ns, to->queue_ns += c->queue_ns;
    to->first_token_ns += c->first_token_ns;
    whit_histogram_merge(&to->queued, &c->queued), whit_histogram_merge(&to->first_token, &c->first_token);
    whit_histogram_merge(&to->per_token, &c->per_token), whit_histogram_merge(&to->whole, &c->whole);
    whit_histogram_merge(&to->step, &c->step), whit_histogram_merge(&to->prompt_piece, &c->prompt_piece);
    to->n_guessed_tokens += c->n_guessed_tokens, to->n_guessed_right += c->n_guessed_right;
    to->n_steps_over += c->n_steps_over, to->n_prompts_waiting += c->n_prompts_waiting;
    if (c->step_budget_ns > to->step_budget_ns) to->step_budget_ns = c->step_budget_ns;
    if (c->step_predicted_ns > to->step_predicted_ns) to->step_predicted_ns = c->step_predicted_ns;
    to->n_slots += c->n_slots, to->n_busy += c->n_busy, to->n_queued += c->n_queued;
    to->n_kv_tokens += c->n_kv_tokens;
    to->mark_bytes += c->mark_bytes, to->mark_bytes_max += c->mark_bytes_max;
    to->n_marks_made += c->n_marks_made, to->n_marks_used += c->n_marks_used;
    to->n_marks_evicted += c->n_marks_evicted;
    to->expert_bytes += c->expert_bytes, to->expert_bytes_max += c->expert_bytes_max;
    to->expert_read_bytes += c->expert_read_bytes;
    to->n_blocks += c->n_blocks, to->n_blocks_found += c->n_blocks_found;
    to->running_loras |= c->running_loras, to->waiting_loras |= c->waiting_loras;
    if (c->n_ctx_tokens > to->n_ctx_tokens) to->n_ctx_tokens = c->n_ctx_tokens;
}

/* Adds the counters of a model that is being closed to `past` of its entry. Must be called with the lock held. */
static void keep_counts(whit_models *models, const whit_api *api)
{
    whit_engine_counts one;
    for (size_t i = 0; i < models->n; i++)
        if (models->entries[i].options->name == api->name) {
            whit_engine_count(api->engine, &one);
            one.n_slots = one.n_busy = one.n_queued = one.n_kv_tokens = one.n_ctx_tokens = 0;
            one.mark_bytes = one.mark_bytes_max = 0;
            one.n_blocks = one.n_blocks_found = 0;
            one.expert_bytes = one.expert_bytes_max = 0;
            one.running_loras = one.waiting_loras = 0;
            one.n_prompts_waiting = 0, one.step_budget_ns = one.step_predicted_ns = 0;
            add_counts(&models->entries[i].past, &one);
        }
}

static void close_api(whit_api *api)
{
    if (!api) return;
    whit_model *model = api->model;
    whit_api_close(api);
    whit_model_close(model);
    free(api);
}

/* Makes the state for serving a model. Takes ownership of the model, also on failure. */
static whit_status make_api(whit_site *site, const char *name, whit_model *model, whit_api **api, whit_error *error)
{
    *api = calloc(1, sizeof **api);
    if (!*api) {
        whit_model_close(model);
        return whit_fail_memory(error, "a model", sizeof **api);
    }
    **api = (whit_api){
        .site = site, .name = name, .model = model, .options = site->options, .stop = site->stop, .log = site->log};
    whit_status status = whit_model_set_name(model, name, error); /* clients then see this name, not the file's path */
    if (status == WHIT_OK) status = whit_api_open(*api, error);
    if (status == WHIT_OK) return WHIT_OK;
    close_api(*api);
    *api = NULL;
    return status;
}

/* Adds to the entry's n_bytes the sizes of the adapters' files, and the memory for mounting as many adapters as one
 * request may name. Fails if --max-memory is exceeded. */
static whit_status count_adapters(const whit_api *api, whit_entry *entry, whit_error *error)
{
    whit_mount mounts[WHIT_MOUNTS_MAX];
    whit_engine_options engine = whit_api_engine_options(api->options, api->name);
    whit_session_options session = whit_engine_session_options(&engine);
    size_t n = 0, n_with, n_without, n_bytes;
    const void *address;
    const char *path;
    for (size_t k = 0; k < api->options->n_adapters; k++) {
        if (!api->adapters[k]) continue;
        if (whit_adapter_mapping(api->adapters[k], &address, &n_bytes, &path)) entry->n_bytes += n_bytes;
        if (n < WHIT_MOUNTS_MAX) mounts[n++] = (whit_mount){api->adapters[k], 1};
    }
    whit_embedder_suit(api->model, &session);
    WHIT_TRY(whit_session_predict_bytes(api->model, &session, NULL, 0, &n_without, error));
    WHIT_TRY(whit_session_predict_bytes(api->model, &session, mounts, n, &n_with, error));
    entry->n_bytes += n_with - n_without;
    size_t most = (size_t)api->options->max_memory_mb << 20;
    if (!most || entry->n_bytes <= most) return WHIT_OK;
    return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the model takes %zu MB, but --max-memory allows %u MB",
                     entry->options->name, entry->n_bytes >> 20, api->options->max_memory_mb);
}

/* Makes the state for serving a model, as make_api does, and counts the memory for its adapters. */
static whit_status make_counted(whit_site *site, whit_entry *entry, whit_model *model, whit_api **api,
                                whit_error *error)
{
    WHIT_TRY(make_api(site, entry->options->name, model, api, error));
    whit_status status = count_adapters(*api, entry, error);
    if (status == WHIT_OK) return WHIT_OK;
    close_api(*api);
    *api = NULL;
    return status;
}

static void look_at_file(whit_entry *entry)
{
    struct stat now;
    if (!entry->options->path || stat(entry->options->path, &now) != 0) return;
    entry->changed = now.st_mtim;
    entry->file = now.st_ino;
}

static bool is_replaced(const whit_entry *entry)
{
    struct stat now;
    return entry->options->path && stat(entry->options->path, &now) == 0 &&
        (now.st_ino != entry->file || now.st_mtim.tv_sec != entry->changed.tv_sec ||
         now.st_mtim.tv_nsec != entry->changed.tv_nsec);
}

/* Records facts about a model that are needed while it is closed. */
static whit_status note_facts(whit_site *site, whit_entry *entry, const whit_model *model, whit_error *error)
{
    const void *address;
    const char *path;
    size_t n_bytes, n_arena, n_drafter, n_embedder;
    whit_engine_options engine = whit_api_engine_options(site->options, entry->options->name);
    whit_session_options session = whit_engine_session_options(&engine);
    whit_session_options embedder = whit_embedder_options(model, &engine);
    whit_embedder_suit(model, &session);
    WHIT_TRY(whit_session_predict_bytes(model, &session, NULL, 0, &n_arena, error));
    WHIT_TRY(
        whit_session_predict_drafter_bytes(model, &session, whit_engine_drafter(model, &engine), &n_drafter, error));
    /* the embedder opens its session only when it is needed */
    WHIT_TRY(whit_session_predict_bytes(model, &embedder, NULL, 0, &n_embedder, error));
    const char *family = whit_model_metadata(model, "general.architecture");
    snprintf(entry->family, sizeof entry->family, "%s", whit_or_empty(family));
    entry->n_parameters = whit_model_number(model, "parameters");
    entry->weight_type = whit_model_weight_type(model);
    entry->n_file_bytes = 0;
    for (size_t i = 0; whit_model_mapping(model, i, &address, &n_bytes, &path); i++) entry->n_file_bytes += n_bytes;
    entry->n_bytes = n_arena + n_drafter + n_embedder + entry->n_file_bytes;
    const uint32_t n_more = session.n_sequences - 1;
    session.n_sequences = 1;
    WHIT_TRY(whit_session_predict_bytes(model, &session, NULL, 0, &entry->n_one_bytes, error));
    entry->n_slot_bytes = n_more ? (n_arena - entry->n_one_bytes) / n_more : 0;
    for (size_t i = 0; i < 32; i++) snprintf(entry->digest + 2 * i, 3, "%02x", whit_model_identity(model)[i]);
    entry->n_vocab = whit_model_vocab_size(model);
    entry->n_ctx_train = whit_model_context_size(model);
    uint32_t usual = entry->n_ctx_train < 4096 ? entry->n_ctx_train : 4096;
    entry->n_ctx = session.n_ctx_tokens ? session.n_ctx_tokens : usual;
    return WHIT_OK;
}

/* Returns the memory of the model's session with all slots. */
static size_t session_bytes(const whit_site *site, const whit_entry *entry)
{
    return entry->n_one_bytes + entry->n_slot_bytes * (site->options->n_parallel - 1);
}

/* Writes a message about the memory of the slots, and how many slots would fit into free memory. */
static void describe_cost(const whit_site *site, const whit_entry *entry, char *text, size_t text_bytes)
{
    const uint32_t n_slots = site->options->n_parallel;
    const uint64_t n_free_bytes = site->models->n_free_bytes;
    const size_t n_slot = entry->n_slot_bytes ? entry->n_slot_bytes : entry->n_one_bytes;
    const bool fits_one = n_slots > 1 && entry->n_one_bytes <= n_free_bytes;
    char each[32] = "";
    if (n_slots > 1) snprintf(each, sizeof each, ", %zu MB each", n_slot >> 20);
    int n = snprintf(text, text_bytes, "%u slot%s (-np) of %u tokens (-c) take %zu MB%s, and %" PRIu64 " MB are free",
                     n_slots, whit_plural(n_slots), entry->n_ctx, session_bytes(site, entry) >> 20, each,
                     n_free_bytes >> 20);
    if (n < 0 || (size_t)n >= text_bytes) return;
    if (fits_one)
        snprintf(text + n, text_bytes - (size_t)n, ": -np %" PRIu64 " would fit, or a smaller -c",
                 1 + (n_free_bytes - entry->n_one_bytes) / n_slot);
    else
        snprintf(text + n, text_bytes - (size_t)n, ": choose a smaller -c, or --kv k4v2");
}

/* Warns if a model's session needs more memory than is free: the system grants memory when it is first used, and may
 * kill the server then. */
static void warn_of_cost(const whit_site *site, const whit_entry *entry)
{
    char text[256];
    if (!site->models->n_free_bytes || session_bytes(site, entry) <= site->models->n_free_bytes) return;
    describe_cost(site, entry, text, sizeof text);
    fprintf(stderr, "whit: %s: %s\n", entry->options->name, text);
}

static void free_added(const whit_server_model *model)
{
    if (!model) return;
    free((char *)model->name);
    free((char *)model->path);
    free((whit_server_model *)model);
}

/* ---- opening and finding models ------------------------------------------------------------------ */

/* Fails if an adapter fits none of the models. */
static whit_status check_adapters(const whit_site *site, whit_api *const *apis, size_t n, whit_error *error)
{
    for (size_t k = 0; k < site->options->n_adapters; k++) {
        bool found = false;
        for (size_t i = 0; i < n && !found; i++) {
            found = apis[i] && apis[i]->adapters[k];
            if (found) site->models->entry_of[k] = i;
        }
        if (found) continue;
        whit_adapter *adapter;
        whit_status status = whit_adapter_open(apis[0]->model, site->options->adapters[k].path, &adapter, error);
        whit_adapter_close(adapter);
        return status != WHIT_OK
            ? status
            : whit_fail(error, WHIT_ERROR_ARGUMENT, "an adapter's file changed while its model was opened; try again");
    }
    return WHIT_OK;
}

whit_status whit_models_open(whit_site *site, whit_error *error)
{
    const whit_server_options *options = site->options;
    whit_models *models = calloc(1, sizeof *models);
    whit_api **apis = calloc(options->n_models, sizeof *apis);
    whit_status status = WHIT_OK;
    site->models = models;
    if (models) models->n_places = options->n_models + (options->store ? MOST_ADDED : 0);
    if (models) models->entries = calloc(models->n_places, sizeof *models->entries);
    if (!models || !apis || !models->entries)
        status = whit_fail_memory(error, "the models", options->n_models * sizeof *models->entries);
    if (models) {
        models->n_free_bytes = whit_memory_available(); /* read now, because /proc is hidden in the sandbox */
        pthread_mutex_init(&models->lock, NULL);
        pthread_cond_init(&models->changed, NULL);
    }
    for (size_t i = 0; i < options->n_models; i++) {
        whit_model *model = options->models[i].model;
        if (status == WHIT_OK) {
            whit_entry *entry = &models->entries[models->n++];
            entry->options = &options->models[i];
            look_at_file(entry);
            status = note_facts(site, entry, model, error);
            if (status == WHIT_OK) {
                status = make_counted(site, entry, model, &apis[i], error);
                continue;
            }
        }
        whit_model_close(model);
    }
    if (status == WHIT_OK) status = check_adapters(site, apis, options->n_models, error);
    if (status == WHIT_OK) models->entries[0].api = apis[0];
    for (size_t i = status == WHIT_OK; apis && i < options->n_models; i++) close_api(apis[i]);
    free(apis);
    return status;
}

whit_status whit_models_start(whit_site *site, whit_error *error)
{
    const whit_entry *first = &site->models->entries[0];
    char text[256];
    const whit_status status = whit_api_start(first->api, error);
    if (status == WHIT_OK) warn_of_cost(site, first);
    if (status != WHIT_ERROR_MEMORY) return status;
    describe_cost(site, first, text, sizeof text);
    return whit_fail(error, status, "%s: not enough memory: %s", first->options->name, text);
}

void whit_models_close(whit_site *site)
{
    whit_models *models = site->models;
    if (!models) return;
    for (size_t i = 0; i < models->n; i++) close_api(models->entries[i].api);
    for (whit_api *api = models->retired, *next; api; api = next) {
        next = api->next_retired;
        close_api(api);
    }
    pthread_mutex_destroy(&models->lock);
    pthread_cond_destroy(&models->changed);
    for (size_t i = site->options->n_models; i < models->n; i++) free_added(models->entries[i].options);
    free(models->entries);
    free(models);
    site->models = NULL;
}

/* Closes idle models, those unused for longest first, until n_bytes more fit into --max-memory; returns false if that
 * is impossible. Must be called with the lock held, which is released while a model is closed. */
static bool make_room(whit_site *site, size_t n_bytes)
{
    whit_models *models = site->models;
    size_t most = (size_t)site->options->max_memory_mb << 20;
    for (;;) {
        size_t n_open = 0;
        whit_entry *oldest = NULL;
        for (size_t i = 0; i < models->n; i++) {
            whit_entry *entry = &models->entries[i];
            if (entry->api || entry->is_opening) n_open += entry->n_bytes;
            bool idle = entry->api && entry->api->n_users == 0;
            if (idle && (!oldest || entry->used_ns < oldest->used_ns)) oldest = entry;
        }
        if (!most || n_open + n_bytes <= most) return true;
        if (!oldest) return false;
        whit_api *api = oldest->api;
        oldest->api = NULL;
        keep_counts(models, api);
        pthread_mutex_unlock(&models->lock);
        close_api(api);
        pthread_mutex_lock(&models->lock);
    }
}

static whit_status open_entry(whit_site *site, whit_entry *entry, whit_api **api, whit_error *error)
{
    whit_model *model;
    *api = NULL;
    WHIT_TRY(site->options->open_model(site->options->open_user, entry->options->path, &model, error));
    WHIT_TRY(make_api(site, entry->options->name, model, api, error));
    whit_status status = whit_api_start(*api, error);
    if (status == WHIT_OK) return WHIT_OK;
    close_api(*api);
    *api = NULL;
    return status;
}

bool whit_is_named(const char *own, const char *name)
{
    size_t n = strlen(own);
    return !strncmp(own, name, n) && (!name[n] || !strcmp(name + n, ":latest"));
}

/* Finds a model by its name, by its name with Ollama's ":latest", or by the name of an adapter, which means the first
 * model that the adapter fits. NULL, "" and, in a server of one model without a store, any name mean the first model.
 * Must be called with the lock held. */
static whit_entry *find_locked_entry(const whit_site *site, const char *name)
{
    whit_models *models = site->models;
    if (!name || !*name || (models->n == 1 && !site->options->store)) return &models->entries[0];
    for (size_t i = 0; i < models->n; i++)
        if (!models->entries[i].is_gone && whit_is_named(models->entries[i].options->name, name))
            return &models->entries[i];
    for (size_t k = 0; k < site->options->n_adapters; k++)
        if (whit_is_named(site->options->adapters[k].name, name)) return &models->entries[models->entry_of[k]];
    return NULL;
}

static whit_entry *find_entry(const whit_site *site, const char *name)
{
    pthread_mutex_lock(&site->models->lock);
    whit_entry *entry = find_locked_entry(site, name);
    pthread_mutex_unlock(&site->models->lock);
    return entry;
}

/* ---- models of the store ------------------------------------------------------------------------- */

/* Returns the length of a model's name without the ":latest" that Ollama's clients append. */
static size_t bytes_before_latest(const char *name)
{
    const size_t n = strlen(name);
    return n > 7 && !strcmp(name + n - 7, ":latest") ? n - 7 : n;
}

/* Opens a pulled model to read its facts, closes it again, and adds an entry for it. Returns NULL with an error on
 * failure. */
static whit_entry *add_stored(whit_site *site, const char *name, whit_error *error)
{
    whit_models *models = site->models;
    whit_server_model *options = calloc(1, sizeof *options);
    whit_entry next = {.options = options}, *place = NULL;
    whit_model *model = NULL;
    char *path = NULL;
    if (options) options->name = strndup(name, bytes_before_latest(name));
    whit_status status = options && options->name
        ? site->options->store->find(site->options->store->user, options->name, &path, error)
        : whit_fail_memory(error, "a model", sizeof *options);
    if (options) options->path = path;
    if (status == WHIT_OK) {
        look_at_file(&next);
        status = site->options->open_model(site->options->open_user, path, &model, error);
    }
    if (status == WHIT_OK) status = note_facts(site, &next, model, error);
    whit_model_close(model);
    pthread_mutex_lock(&models->lock);
    /* another request may have added it meanwhile */
    if (status == WHIT_OK) place = find_locked_entry(site, options->name);
    if (status == WHIT_OK && !place && models->n == models->n_places)
        status = whit_fail(error, WHIT_ERROR_LIMIT, "%d pulled models have been used, the limit; restart the server",
                           MOST_ADDED);
    if (status == WHIT_OK && !place) {
        place = &models->entries[models->n];
        *place = next;
        models->n++;
        options = NULL;
    }
    pthread_mutex_unlock(&models->lock);
    free_added(options);
    return status == WHIT_OK ? place : NULL;
}

bool whit_models_forget(whit_site *site, const char *name, whit_web_reply *reply)
{
    whit_models *models = site->models;
    pthread_mutex_lock(&models->lock);
    whit_entry *entry = find_locked_entry(site, name);
    while (entry && entry->is_opening) pthread_cond_wait(&models->changed, &models->lock);
    bool is_own = entry && entry < models->entries + site->options->n_models;
    whit_api *api = entry && !is_own ? entry->api : NULL;
    bool busy = api && api->n_users > 0;
    if (entry && !is_own && !busy) {
        entry->api = NULL;
        entry->is_gone = true;
        if (api) keep_counts(models, api);
    }
    pthread_mutex_unlock(&models->lock);
    if (is_own)
        whit_api_fail(reply, 400, "invalid_request_error", "model", "%.100s: the server was started with this model",
                      name);
    else if (busy)
        whit_api_fail(reply, 409, "invalid_request_error", "model", "%.100s is answering requests; try again later",
                      name);
    else
        close_api(api);
    return !is_own && !busy;
}

/* Returns a model of the store whose file was removed and that is not marked yet, or NULL. Must be called with the lock
 * held. */
static whit_entry *find_absent(const whit_site *site)
{
    whit_models *models = site->models;
    for (size_t i = site->options->n_models; i < models->n; i++) {
        whit_entry *entry = &models->entries[i];
        if (!entry->is_gone && !entry->is_opening && !whit_path_exists(entry->options->path)) return entry;
    }
    return NULL;
}

void whit_models_forget_absent(whit_site *site)
{
    whit_models *models = site->models;
    whit_entry *entry;
    pthread_mutex_lock(&models->lock);
    while ((entry = find_absent(site)) != NULL) {
        whit_api *idle = entry->api && entry->api->n_users == 0 ? entry->api : NULL;
        entry->is_gone = true; /* running answers are completed, and make_room later closes the model */
        if (!idle) continue;
        entry->api = NULL;
        keep_counts(models, idle);
        pthread_mutex_unlock(&models->lock);
        close_api(idle);
        pthread_mutex_lock(&models->lock);
    }
    pthread_mutex_unlock(&models->lock);
}

static void refuse_name(const char *name, whit_web_reply *reply)
{
    whit_api_fail(reply, 404, "invalid_request_error", "model",
                  "model %.100s not found: there is no model of that name; GET /v1/models lists them", name);
    whit_api_set_code(reply, "model_not_found");
}

/* Returns whether the key may use the model that a request names. entry NULL: the name may be that of a model in the
 * store. */
static bool may_use_entry(const whit_site *site, uint64_t key, const whit_entry *entry, const char *name)
{
    if (entry) return whit_key_may_use(site, key, entry->options->name);
    char *plain = strndup(name, bytes_before_latest(name));
    const bool may_use = plain && whit_key_may_use(site, key, plain);
    free(plain);
    return may_use;
}

whit_api *whit_models_acquire(whit_site *site, uint64_t key, const char *name, whit_web_reply *reply)
{
    whit_models *models = site->models;
    whit_entry *entry = find_entry(site, name);
    whit_error error;
    if (!may_use_entry(site, key, entry, name)) {
        whit_key_refuse_model(reply);
        return NULL;
    }
    whit_status status = WHIT_OK;
    if (!entry && site->options->store) {
        entry = add_stored(site, name, &error);
        if (!entry && error.status != WHIT_ERROR_IO && error.status != WHIT_ERROR_ARGUMENT) {
            fprintf(stderr, "whit: %.200s is not opened: %s\n", name, error.message);
            whit_api_fail(reply, 503, "server_error", "model", "the model %.100s could not be opened", name);
            return NULL;
        }
    }
    if (!entry) {
        refuse_name(name, reply);
        return NULL;
    }
    pthread_mutex_lock(&models->lock);
    whit_api *api;
    while (status == WHIT_OK && !entry->api) {
        if (entry->is_opening) {
            pthread_cond_wait(&models->changed, &models->lock);
            continue;
        }
        bool fits = make_room(site, entry->n_bytes);
        /* another request may have opened the model while the lock was released */
        if (entry->api || entry->is_opening) continue;
        if (!fits) {
            status =
                whit_fail(&error, WHIT_ERROR_LIMIT,
                          "there is no memory for another model while all open ones answer requests; try again later");
            break;
        }
        entry->is_opening = true;
        pthread_mutex_unlock(&models->lock);
        status = open_entry(site, entry, &api, &error);
        /* the message contains the file's path, which is written to stderr and not sent to the client */
        if (status != WHIT_OK) {
            fprintf(stderr, "whit: %s is not opened: %s\n", entry->options->name, error.message);
            whit_fail(&error, status, "the model %s could not be opened; the server's stderr says why",
                      entry->options->name);
        }
        pthread_mutex_lock(&models->lock);
        entry->api = api;
        entry->is_opening = false;
        pthread_cond_broadcast(&models->changed);
    }
    api = entry->api;
    if (api) api->n_users++;
    entry->used_ns = whit_now_ns();
    pthread_mutex_unlock(&models->lock);
    if (api) return api;
    whit_api_fail(reply, 503, "server_error", "model", "%s",
                  status != WHIT_OK ? error.message : "the model could not be opened now; try again later");
    reply->headers[2 * reply->n_headers] = "Retry-After";
    reply->headers[2 * reply->n_headers++ + 1] = "2";
    return NULL;
}

bool whit_models_unload(whit_site *site, uint64_t key, const char *name, whit_web_reply *reply)
{
    whit_models *models = site->models;
    whit_entry *entry = find_entry(site, name);
    if (!may_use_entry(site, key, entry, name)) {
        whit_key_refuse_model(reply);
        return false;
    }
    if (whit_key_is_limited(site, key)) { /* others would wait until the model is opened again */
        whit_api_fail(reply, 403, "permission_error", "model", "this key may not close a model, which others may use");
        return false;
    }
    if (!entry) {
        refuse_name(name, reply);
        return false;
    }
    pthread_mutex_lock(&models->lock);
    while (entry->is_opening) pthread_cond_wait(&models->changed, &models->lock);
    whit_api *api = entry->api;
    bool busy = api && api->n_users > 0, gone = api && !busy;
    if (gone) {
        entry->api = NULL;
        keep_counts(models, api);
    }
    pthread_mutex_unlock(&models->lock);
    if (gone) close_api(api);
    if (busy)
        whit_api_fail(reply, 409, "invalid_request_error", "model", "%s is answering requests; try again later",
                      entry->options->name);
    return !busy;
}

void whit_models_keep(whit_api *api)
{
    pthread_mutex_lock(&api->site->models->lock);
    api->n_users++;
    pthread_mutex_unlock(&api->site->models->lock);
}

void whit_models_release(whit_api *api)
{
    whit_models *models = api->site->models;
    pthread_mutex_lock(&models->lock);
    bool over = --api->n_users == 0 && api->is_retired;
    for (whit_api **at = &models->retired; over && *at; at = &(*at)->next_retired)
        if (*at == api) {
            *at = api->next_retired;
            keep_counts(models, api);
            break;
        }
    for (size_t i = 0; i < models->n; i++)
        if (models->entries[i].api == api) models->entries[i].used_ns = whit_now_ns();
    pthread_mutex_unlock(&models->lock);
    if (over) close_api(api);
}

/* Copies the facts about a model's new file from `next` to `entry`. Must be called with the lock held. */
static void take_facts(whit_entry *entry, const whit_entry *next)
{
    entry->n_bytes = next->n_bytes;
    entry->n_file_bytes = next->n_file_bytes;
    entry->n_parameters = next->n_parameters;
    entry->weight_type = next->weight_type;
    memcpy(entry->family, next->family, sizeof entry->family);
    entry->n_vocab = next->n_vocab;
    entry->n_ctx_train = next->n_ctx_train;
    entry->n_ctx = next->n_ctx;
    entry->changed = next->changed;
    entry->file = next->file;
    memcpy(entry->digest, next->digest, sizeof entry->digest);
}

/* Replaces a model by the new version of its file. A closed model stays closed; only its facts are updated. Returns
 * false if the model was opened meanwhile, so that the reload must be repeated. */
static bool reload(whit_site *site, whit_entry *entry)
{
    whit_models *models = site->models;
    whit_entry next = {.options = entry->options};
    whit_error error;
    whit_model *model;
    whit_api *api = NULL;
    pthread_mutex_lock(&models->lock);
    while (entry->is_opening) pthread_cond_wait(&models->changed, &models->lock);
    bool was_open = entry->api != NULL;
    pthread_mutex_unlock(&models->lock);
    look_at_file(&next);
    whit_status status = site->options->open_model(site->options->open_user, next.options->path, &model, &error);
    if (status == WHIT_OK) {
        status = note_facts(site, &next, model, &error);
        if (status == WHIT_OK)
            status = make_counted(site, &next, model, &api, &error);
        else
            whit_model_close(model);
    }
    if (status == WHIT_OK && was_open) status = whit_api_start(api, &error);
    if (status != WHIT_OK) {
        fprintf(stderr, "whit: the model %s is unchanged: %s\n", entry->options->name, error.message);
        close_api(api);
        return true;
    }
    pthread_mutex_lock(&models->lock);
    while (entry->is_opening) pthread_cond_wait(&models->changed, &models->lock);
    whit_api *before = entry->api;
    bool in_use = before && before->n_users > 0, done = was_open || !before;
    if (done) take_facts(entry, &next);
    if (was_open) entry->api = api;
    if (was_open && before && !in_use) keep_counts(models, before);
    if (was_open && in_use) {
        before->is_retired = true;
        before->next_retired = models->retired;
        models->retired = before;
    }
    pthread_mutex_unlock(&models->lock);
    if (!was_open)
        close_api(api);
    else if (!in_use)
        close_api(before);
    if (done) fprintf(stderr, "whit: the model %s was replaced by the new version of its file\n", next.options->name);
    return done;
}

void whit_models_reload(whit_site *site)
{
    whit_models *models = site->models;
    pthread_mutex_lock(&models->lock);
    for (size_t i = 0; i < models->n; i++) {
        bool is_served = !models->entries[i].is_gone;
        pthread_mutex_unlock(&models->lock);
        while (is_served && is_replaced(&models->entries[i]) && !reload(site, &models->entries[i])) {
        }
        pthread_mutex_lock(&models->lock);
    }
    pthread_mutex_unlock(&models->lock);
}

/* ---- facts about the models ---------------------------------------------------------------------- */

uint32_t whit_models_twin(whit_site *site, const char *name)
{
    whit_models *models = site->models;
    const whit_entry *own = NULL;
    uint32_t n = 0;
    pthread_mutex_lock(&models->lock);
    for (size_t i = 0; i < models->n && !own; i++)
        if (models->entries[i].options->name == name) own = &models->entries[i];
    for (const whit_entry *other = models->entries; own && other < own; other++)
        n += !strcmp(other->digest, own->digest);
    pthread_mutex_unlock(&models->lock);
    return n;
}

bool whit_models_are_idle(whit_site *site)
{
    whit_models *models = site->models;
    pthread_mutex_lock(&models->lock);
    bool idle = true;
    for (size_t i = 0; i < models->n && idle; i++) {
        whit_entry *entry = &models->entries[i];
        idle = !entry->is_opening && (!entry->api || whit_engine_is_idle(entry->api->engine));
    }
    for (whit_api *api = models->retired; api && idle; api = api->next_retired) idle = whit_engine_is_idle(api->engine);
    pthread_mutex_unlock(&models->lock);
    return idle;
}

void whit_models_count(whit_site *site, const char *name, whit_engine_counts *counts)
{
    whit_models *models = site->models;
    whit_engine_counts one;
    memset(counts, 0, sizeof *counts);
    pthread_mutex_lock(&models->lock);
    for (size_t i = 0; i < models->n; i++) {
        const whit_entry *entry = &models->entries[i];
        if (name && entry->options->name != name) continue;
        add_counts(counts, &entry->past);
        if (!entry->api || !entry->api->engine) continue;
        whit_engine_count(entry->api->engine, &one);
        add_counts(counts, &one);
    }
    for (const whit_api *api = models->retired; api; api = api->next_retired)
        if (!name || api->name == name) {
            whit_engine_count(api->engine, &one);
            add_counts(counts, &one);
        }
    pthread_mutex_unlock(&models->lock);
}

bool whit_models_at(whit_site *site, size_t i, whit_entry *entry)
{
    whit_models *models = site->models;
    pthread_mutex_lock(&models->lock);
    for (size_t k = 0; k <= i && k < models->n; k++) i += models->entries[k].is_gone;
    bool is_there = i < models->n;
    if (is_there) *entry = models->entries[i];
    pthread_mutex_unlock(&models->lock);
    return is_there;
}
