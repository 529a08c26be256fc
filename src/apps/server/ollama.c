/* SPDX-License-Identifier: MIT
 * Serves Ollama's API: converts its requests to OpenAI's form, and writes answers as lines of JSON. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "server/access.h"
#include "server/dialect.h"
#include "server/embeddings.h"
#include "whit/embeddings.h"
#include "server/endpoints.h"
#include "server/fields.h"
#include "server/models.h"
#include "server/ollama.h"
#include "server/settings.h"
#include "server/json_text.h"
#include "whit/facts.h"

/* ---- replies ----------------------------------------------------------------------------------- */

static json_t *time_text(struct timespec time)
{
    struct tm utc;
    char date[32], text[48];
    gmtime_r(&time.tv_sec, &utc);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text, sizeof text, "%s.%09ldZ", date, time.tv_nsec);
    return json_string(text);
}

static json_t *now_text(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return time_text(now);
}

/* Returns the modification time of the model's file; for the built-in model, which has no file, the current time. */
static json_t *changed_text(const whit_entry *entry)
{
    return entry->changed.tv_sec ? time_text(entry->changed) : now_text();
}

/* Converts calls from OpenAI's form to Ollama's, in which the arguments are an object and not a text. A call that was
 * cut off is omitted: its arguments are incomplete, and clients would read {} as complete ones. */
static json_t *calls_json(const json_t *calls)
{
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *function = json_object_get(json_array_get(calls, i), "function");
        json_t *arguments = whit_dialect_arguments(json_object_get(function, "arguments"));
        if (arguments)
            json_array_append_new(list,
                                  json_pack("{s:{s:O, s:o}}", "function", "name", json_object_get(function, "name"),
                                            "arguments", arguments));
    }
    return list;
}

json_t *whit_ollama_line(const whit_ask *ask, const char *text, size_t n_text, const char *thinking, size_t n_thinking,
                         const json_t *calls, bool done)
{
    const whit_job *job = ask->jobs[0];
    json_t *line = json_pack("{s:s, s:o, s:b}", "model", ask->api->name, "created_at", now_text(), "done", (int)done);
    json_t *holder = ask->ollama_chat ? json_pack("{s:s}", "role", "assistant") : json_incref(line);
    json_object_set_new(holder, ask->ollama_chat ? "content" : "response", whit_dialect_text(text, n_text));
    if (thinking) json_object_set_new(holder, "thinking", whit_dialect_text(thinking, n_thinking));
    json_t *own_calls = calls_json(calls);
    if (json_array_size(own_calls)) json_object_set(holder, "tool_calls", own_calls);
    json_decref(own_calls);
    if (ask->ollama_chat) json_object_set(line, "message", holder);
    json_decref(holder);
    if (!done) return line;
    uint64_t first = job->first_ns ? job->first_ns : job->done_ns;
    json_t *counts = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "done_reason",
                               job->finish == WHIT_FINISH_END || job->finish == WHIT_FINISH_STOP ? "stop" : "length",
                               "total_duration", (json_int_t)(job->done_ns - job->queued_ns), "load_duration",
                               (json_int_t)0, "prompt_eval_count", (json_int_t)job->n_ids, "prompt_eval_duration",
                               (json_int_t)(first - job->started_ns), "eval_count", (json_int_t)job->n_generated,
                               "eval_duration", (json_int_t)(job->done_ns - first));
    json_object_update(line, counts);
    json_decref(counts);
    return line;
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool refuse_request(whit_web_reply *reply, const char *what)
{
    whit_api_fail(reply, 400, "invalid_request_error", NULL, "%s", what);
    return false;
}

/* Returns whether the /api/generate request leaves out the parameters that cannot be part of the prompt: `template`,
 * `context` and, if `raw`, `system`. Otherwise refuses it, because it would be answered differently. */
static bool has_place(const json_t *body, bool raw, whit_web_reply *reply)
{
    static const whit_field_unserved always[] = {
        {"template", "the model's own template is used; with raw the prompt is used unchanged"},
        {"context", "this server gives no context; send the earlier messages to /api/chat"},
        {NULL, NULL}};
    static const whit_field_unserved bare[] = {
        {"system", "a prompt without a chat template cannot contain a system message"}, {NULL, NULL}};
    return whit_fields_lack(body, always, reply) && (!raw || whit_fields_lack(body, bare, reply));
}

/* At most this many calls of a message are matched with results by name; results of further calls need ids. */
#define OPEN_CALLS_MAX 256

/* Replaces the list `open`, which has [id, name] for each call without a result, by the calls of a message. */
static void open_calls(json_t *open, const json_t *calls)
{
    size_t k;
    json_t *call;
    json_array_clear(open);
    json_array_foreach(calls, k, call)
    {
        json_t *name = json_object_get(json_object_get(call, "function"), "name");
        if (k < OPEN_CALLS_MAX)
            json_array_append_new(open, json_pack("[O, O?]", json_object_get(call, "id"), name ? name : NULL));
    }
}

/* Finds the call that a result answers and removes it from `open`: by its id or, if the result has no id, by its
 * function's name or else the first open call. A result without an id gets the call's id, which some templates need. */
static void find_call(json_t *open, json_t *message)
{
    json_t *tool = json_object_get(message, "tool_name"), *given = json_object_get(message, "tool_call_id"), *entry;
    if (json_is_string(tool) && !json_object_get(message, "name")) json_object_set(message, "name", tool);
    const bool has_id = json_is_string(given);
    const json_t *wanted = has_id ? given : json_object_get(message, "name");
    size_t i, found = SIZE_MAX;
    json_array_foreach(open, i, entry)
    {
        if (!json_equal(json_array_get(entry, !has_id), wanted)) continue;
        found = i;
        break;
    }
    if (found == SIZE_MAX && !has_id && json_array_size(open)) found = 0;
    if (found == SIZE_MAX) return;
    if (!has_id) json_object_set(message, "tool_call_id", json_array_get(json_array_get(open, found), 0));
    json_array_remove(open, found);
}

/* Converts messages to OpenAI's form in place: arguments of calls become text, "thinking" becomes "reasoning_content",
 * and calls get ids. */
static bool read_messages(json_t *messages, whit_web_reply *reply)
{
    size_t i, k;
    json_t *message, *call, *open = json_array();
    bool ok = true;
    json_array_foreach(messages, i, message)
    {
        json_t *thinking = json_object_get(message, "thinking"), *calls = json_object_get(message, "tool_calls");
        if (json_array_size(json_object_get(message, "images"))) {
            ok = refuse_request(reply, "images are not supported: send text only");
            break;
        }
        const char *role = json_string_value(json_object_get(message, "role"));
        if (thinking) json_object_set(message, "reasoning_content", thinking);
        if (role && !strcmp(role, "tool")) find_call(open, message);
        json_array_foreach(calls, k, call)
        {
            json_t *function = json_object_get(call, "function"), *arguments = json_object_get(function, "arguments");
            char *text = json_is_object(arguments) ? whit_json_write(arguments) : NULL;
            char id[48];
            if (text) json_object_set_new(function, "arguments", json_string(text));
            free(text);
            snprintf(id, sizeof id, "call_%zu_%zu", i, k);
            if (!json_object_get(call, "id")) json_object_set_new(call, "id", json_string(id));
            if (!json_object_get(call, "type")) json_object_set_new(call, "type", json_string("function"));
        }
        if (json_array_size(calls)) open_calls(open, calls);
    }
    json_decref(open);
    return ok;
}

/* Reads the settings in `options`, and the form of the answer; the caller owns the result. Returns NULL after refusing
 * the request. */
static json_t *read_settings(const json_t *body, whit_web_reply *reply)
{
    static const char *const same[] = {
        "temperature",      "top_p",       "top_k", "min_p",         "typical_p",         "repeat_penalty",
        "presence_penalty", "seed",        "stop",  "repeat_last_n", "frequency_penalty", "mirostat",
        "mirostat_tau",     "mirostat_eta"};
    static const char *const ours[] = {"model", "adapters", "program"};
    const json_t *options, *format = json_object_get(body, "format");
    json_t *think = json_object_get(body, "think");
    /* level: `think` is a level of effort, "low", "medium" or "high" */
    bool level = json_string_length(think) > 0, stream = true;
    if (!whit_field_object(body, "options", &options, reply) || !whit_field_switch(body, "stream", &stream, reply))
        return NULL;
    if (whit_field_is_given(think) && !level && !json_is_boolean(think)) {
        whit_field_refuse(reply, "think", "expected true, false, low, medium or high");
        return NULL;
    }
    json_t *own = json_object();
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        json_t *value = json_object_get(options, same[i]);
        if (value) json_object_set(own, same[i], value);
    }
    /* without a seed the server draws one, which is what a negative seed means */
    if (json_number_value(json_object_get(own, "seed")) < 0) json_object_del(own, "seed");
    json_t *most = json_object_get(options, "num_predict");
    if (most && !json_is_null(most) && !(json_is_number(most) && json_number_value(most) < 0))
        json_object_set(own, "max_tokens", most);
    else
        json_object_set_new(own, "max_tokens", json_integer(1 << 30));
    if (json_is_object(format)) {
        json_object_set(own, "json_schema", (json_t *)format);
    } else if (json_is_string(format) && !strcmp(json_string_value(format), "json")) {
        json_object_set_new(own, "response_format", json_pack("{s:s}", "type", "json_object"));
    } else if (format && !json_is_null(format) && json_string_length(format)) {
        refuse_request(reply, "format: expected json or a schema");
        json_decref(own);
        return NULL;
    }
    if (json_is_boolean(think) || level)
        json_object_set_new(own, "chat_template_kwargs",
                            json_pack("{s:b}", "enable_thinking", level || json_is_true(think)));
    if (level) json_object_set(own, "reasoning_effort", think);
    if (json_is_true(json_object_get(body, "logprobs"))) {
        json_object_set_new(own, "logprobs", json_true());
        json_t *n_top = json_object_get(body, "top_logprobs");
        if (n_top) json_object_set(own, "top_logprobs", n_top);
    }
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        json_t *value = json_object_get(body, ours[i]);
        if (value) json_object_set(own, ours[i], value);
    }
    json_object_set_new(own, "stream", json_boolean(stream));
    return own;
}

/* Returns whether "keep_alive" is zero, so that the model should be closed after the request, unless the key is limited
 * to some models, which other keys may use. Other durations have no effect. */
static bool closes_model(const json_t *body)
{
    const json_t *keep = json_object_get(body, "keep_alive");
    const char *text = json_string_value(keep);
    return (json_is_number(keep) && json_number_value(keep) == 0) ||
        (text && *text && !text[strspn(text, "0.hms")] && strchr(text, '0'));
}

static void answer_call(whit_call *call, bool chat)
{
    whit_api *api = call->api;
    whit_web_reply *reply = call->reply;
    const json_t *body = call->body;
    json_t *prompt = json_object_get(body, "prompt"), *messages = json_object_get(body, "messages");
    json_t *system = json_object_get(body, "system"), *own = NULL;
    json_t *suffix = json_object_get(body, "suffix");
    bool infill = !chat && json_string_length(suffix) > 0;
    bool raw = false;
    if (!whit_field_switch(body, "raw", &raw, reply)) return;
    call->closes_model = closes_model(body) && !whit_key_is_limited(call->site, call->key);
    raw = !chat && (raw || infill || !api->chat);
    if (chat ? json_is_array(messages) && !json_array_size(messages) : !json_string_length(prompt)) {
        json_t *line = json_pack("{s:s, s:o, s:b, s:s}", "model", api->name, "created_at", now_text(), "done", 1,
                                 "done_reason", call->closes_model ? "unload" : "load");
        if (chat)
            json_object_set_new(line, "message", json_pack("{s:s, s:s}", "role", "assistant", "content", ""));
        else
            json_object_set_new(line, "response", json_string(""));
        whit_api_reply(reply, line);
        return;
    }
    if (json_array_size(json_object_get(body, "images"))) {
        refuse_request(reply, "images are not supported: send text only");
        return;
    }
    if (!chat && !has_place(body, raw, reply)) return;
    if ((chat && !read_messages(messages, reply)) || !(own = read_settings(body, reply))) return;
    if (raw) {
        json_object_set(own, "prompt", prompt);
        if (infill) json_object_set(own, "suffix", suffix);
    } else if (chat) {
        json_t *tools = json_object_get(body, "tools");
        if (messages) json_object_set(own, "messages", messages);
        if (tools) json_object_set(own, "tools", tools);
    } else {
        json_t *list = json_array();
        if (json_string_length(system))
            json_array_append_new(list, json_pack("{s:s, s:O}", "role", "system", "content", system));
        json_array_append_new(list, json_pack("{s:s, s:O}", "role", "user", "content", prompt));
        json_object_set_new(own, "messages", list);
    }
    whit_ask *ask = whit_ask_open_own(call, own, NULL, !raw);
    if (!ask) return;
    ask->ollama = true;
    ask->ollama_chat = chat;
    ask->path = "ollama";
    whit_ask_reply(ask, reply);
}

void whit_ollama_generate(whit_call *call)
{
    answer_call(call, false);
}

void whit_ollama_chat(whit_call *call)
{
    answer_call(call, true);
}

/* Serves /api/embed or, if `older`, /api/embeddings, whose request has one text, `prompt`, and whose reply has one
 * vector. */
static void embed_call(whit_call *call, bool older)
{
    whit_api *api = call->api;
    whit_web_reply *reply = call->reply;
    const json_t *body = call->body;
    uint64_t begun_ns = whit_now_ns();
    size_t width = whit_model_embedding_size(api->model), n, n_tokens;
    float *values;
    const json_t *dimensions = json_object_get(body, "dimensions");
    double wanted = json_number_value(dimensions); /* 0: all dimensions */
    const bool fits = json_is_number(dimensions) && wanted >= 0 && wanted <= (double)width;
    if (whit_field_is_given(dimensions) && !(fits && wanted == (double)(size_t)wanted)) {
        whit_api_fail(reply, 400, "invalid_request_error", "dimensions",
                      "dimensions: expected a whole number up to %zu, which the model's vectors have", width);
        return;
    }
    if (wanted > 0) width = (size_t)wanted;
    const char *key = older ? "prompt" : "input";
    const json_t *input = json_object_get(body, key), *text;
    if (older && !whit_field_text(body, key, &text, reply)) return; /* like Ollama, which reads one text there */
    /* without a text the request only opens the model, and the reply has no vectors */
    if (input && !json_is_number(input) && !whit_field_is_given(input)) {
        json_t *empty = older
            ? json_pack("{s:[]}", "embedding")
            : json_pack("{s:s, s:[], s:I, s:i, s:i}", "model", api->name, "embeddings", "total_duration",
                        (json_int_t)(whit_now_ns() - begun_ns), "load_duration", 0, "prompt_eval_count", 0);
        whit_api_reply(reply, empty);
        return;
    }
    if (!whit_api_embed(api, body, key, width, call->request->fd, &values, &n, &n_tokens, reply)) return;
    json_t *rest = older ? json_object()
                         : json_pack("{s:s, s:I, s:I, s:I}", "model", api->name, "total_duration",
                                     (json_int_t)(whit_now_ns() - begun_ns), "load_duration", (json_int_t)0,
                                     "prompt_eval_count", (json_int_t)n_tokens);
    whit_reply_vectors(reply, older ? WHIT_VECTORS_ONE : WHIT_VECTORS_OLLAMA, false, values, n, width, rest);
}

void whit_ollama_embed(whit_call *call)
{
    embed_call(call, false);
}

void whit_ollama_embeddings(whit_call *call)
{
    embed_call(call, true);
}

/* ---- facts about models ---------------------------------------------------------------------- */

/* Returns a number of parameters as Ollama writes it: 8.0B, 262.1K. */
static json_t *size_text(double n)
{
    static const char units[] = {0, 'K', 'M', 'B', 'T'};
    char text[32];
    size_t i = 0;
    for (; n >= 1000 && i + 1 < sizeof units; i++) n /= 1000;
    snprintf(text, sizeof text, i ? "%.1f%c" : "%.0f", n, units[i]);
    return json_string(text);
}

static json_t *details_json(const char *family, double n_parameters, const char *weight_type)
{
    char type[16];
    size_t n = 0;
    for (; weight_type[n] && n + 1 < sizeof type; n++) type[n] = (char)toupper((unsigned char)weight_type[n]);
    type[n] = 0;
    return json_pack("{s:s, s:s, s:s, s:[s], s:o, s:s}", "parent_model", "", "format", "ndf", "family", family,
                     "families", family, "parameter_size", size_text(n_parameters), "quantization_level", type);
}

/* Returns numbers of the model, such as its context size, under their keys in GGUF files. */
static json_t *model_info(const whit_model *model, const char *family)
{
    static const struct {
        const char *key, *name;
        bool is_real;
    } numbers[] = {{"block_count", "layers", false},
                   {"feed_forward_length", "feed_forward", false},
                   {"attention.head_count", "heads", false},
                   {"attention.head_count_kv", "kv_heads", false},
                   {"attention.key_length", "head_width", false},
                   {"attention.value_length", "head_width", false},
                   {"attention.sliding_window", "window", false},
                   {"attention.layer_norm_rms_epsilon", "norm_epsilon", true},
                   {"rope.freq_base", "rope_theta", true},
                   {"expert_count", "experts", false},
                   {"expert_used_count", "experts_used", false}};
    json_t *info = json_pack("{s:s, s:I}", "general.architecture", family, "general.parameter_count",
                             (json_int_t)whit_model_number(model, "parameters"));
    json_object_set_new(info, "general.bits_per_weight", json_real(whit_model_number(model, "bits")));
    json_t *lengths = json_pack("{s:o, s:o, s:o}", "context_length", json_integer(whit_model_context_size(model)),
                                "embedding_length", json_integer(whit_model_embedding_size(model)), "vocab_size",
                                json_integer(whit_model_vocab_size(model)));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        double value = whit_model_number(model, numbers[i].name);
        if (value > 0)
            json_object_set_new(lengths, numbers[i].key,
                                numbers[i].is_real ? json_real(value) : json_integer((json_int_t)value));
    }
    const char *key;
    json_t *value;
    json_object_foreach(lengths, key, value)
    {
        char full[128];
        snprintf(full, sizeof full, "%.60s.%s", family, key);
        json_object_set(info, full, value);
    }
    json_decref(lengths);
    return info;
}

/* Replies with a list of all models that the request's key may use or, if `open`, only of the open ones among them. */
static void list_models(const whit_call *call, bool open)
{
    whit_entry entry;
    json_t *list = json_array();
    for (size_t i = 0; whit_models_at(call->site, i, &entry); i++)
        if ((!open || entry.api) && whit_key_may_use(call->site, call->key, entry.options->name))
            json_array_append_new(
                list,
                json_pack("{s:s, s:s, s:o, s:I, s:s, s:o, s:i, s:s, s:I}", "name", entry.options->name, "model",
                          entry.options->name, "modified_at", changed_text(&entry), "size",
                          (json_int_t)entry.n_file_bytes, "digest", entry.digest, "details",
                          details_json(entry.family, entry.n_parameters, entry.weight_type), "size_vram", 0,
                          "expires_at", "9999-12-31T23:59:59Z", "context_length", (json_int_t)entry.n_ctx));
    whit_api_reply(call->reply, json_pack("{s:o}", "models", list));
}

void whit_ollama_version(whit_call *call)
{
    whit_api_reply(call->reply, json_pack("{s:s}", "version", whit_version()));
}

void whit_ollama_tags(whit_call *call)
{
    list_models(call, false);
}

void whit_ollama_ps(whit_call *call)
{
    list_models(call, true);
}

/* Returns the default sampling settings as text, one per line. */
static json_t *parameters_text(void)
{
    whit_sampler_options usual = whit_sampler_options_default();
    json_t *settings = whit_settings_json(&usual), *value;
    whit_buf text = {0};
    const char *key;
    json_object_foreach(settings, key, value)
    {
        if (json_is_real(value)) whit_buf_printf(&text, "%-20s %g\n", key, json_real_value(value));
        if (json_is_integer(value)) whit_buf_printf(&text, "%-20s %lld\n", key, (long long)json_integer_value(value));
    }
    json_t *result = whit_dialect_text(text.data, text.size_bytes ? text.size_bytes - 1 : 0);
    whit_buf_free(&text);
    json_decref(settings);
    return result;
}

/* Returns whether the source of a template contains a switch for thinking, or the mark that ends the thinking. */
static bool knows_thinking(const char *source, size_t n)
{
    return n && (memmem(source, n, "enable_thinking", 15) || memmem(source, n, "</think>", 8));
}

void whit_ollama_show(whit_call *call)
{
    const whit_api *api = call->api;
    const char *family = whit_model_metadata(api->model, "general.architecture");
    if (!family) family = "";
    size_t n = 0;
    const char *source = api->chat ? whit_chat_template_source(api->chat, &n) : NULL;
    json_t *capabilities = json_pack("[s]", "embedding");
    if (whit_model_makes_text(api->model)) json_array_insert_new(capabilities, 0, json_string("completion"));
    if (api->chat && whit_chat_template_takes_tools(api->chat))
        json_array_append_new(capabilities, json_string("tools"));
    if (knows_thinking(source, n)) json_array_append_new(capabilities, json_string("thinking"));
    json_t *details =
        details_json(family, whit_model_number(api->model, "parameters"), whit_model_weight_type(api->model));
    const char *licence = whit_model_metadata(api->model, "general.license");
    json_t *text = whit_dialect_text(source, n), *changed = NULL;
    whit_entry entry;
    for (size_t i = 0; !changed && whit_models_at(call->site, i, &entry); i++)
        if (strcmp(entry.options->name, api->name) == 0) changed = changed_text(&entry);
    if (!changed) changed = now_text();
    whit_api_reply(call->reply,
                   json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s*}", "modelfile",
                             json_sprintf("FROM %s\nTEMPLATE \"\"\"%s\"\"\"\n", api->name, json_string_value(text)),
                             "parameters", parameters_text(), "template", text, "details", details, "model_info",
                             model_info(api->model, family), "capabilities", capabilities, "modified_at", changed,
                             "license", licence));
}
