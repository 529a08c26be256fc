/* SPDX-License-Identifier: MIT
 * Serves Google's Gemini API. An answer is one JSON object, a stream of events, or a stream that is a JSON list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/access.h"
#include "server/dialect.h"
#include "server/embeddings.h"
#include "server/endpoints.h"
#include "server/fields.h"
#include "server/gemini.h"
#include "server/json_text.h"
#include "server/models.h"

/* ---- replies ------------------------------------------------------------------------------------- */

static const char *finish_reason(const whit_job *job)
{
    return job->finish == WHIT_FINISH_END || job->finish == WHIT_FINISH_STOP ? "STOP" : "MAX_TOKENS";
}

static json_t *call_part(const whit_ask *ask, uint32_t i, json_t *name, json_t *arguments)
{
    return json_pack("{s:{s:o, s:O, s:o}}", "functionCall", "id", json_sprintf("call_%s_%u", ask->id, (unsigned)i),
                     "name", name, "args", arguments ? arguments : json_object());
}

/* Makes a response with these parts; takes ownership of them. finish: the reason why the answer ended; NULL: more
 * responses follow. */
static json_t *response(const whit_ask *ask, json_t *parts, const char *finish)
{
    const whit_job *job = ask->jobs[0];
    json_t *counts = json_pack("{s:I, s:I, s:I}", "promptTokenCount", (json_int_t)job->n_ids, "totalTokenCount",
                               (json_int_t)job->n_ids + (finish ? job->n_generated : 0), "cachedContentTokenCount",
                               (json_int_t)job->n_cached);
    if (finish) json_object_set_new(counts, "candidatesTokenCount", json_integer(job->n_generated));
    json_t *candidate = json_pack("{s:{s:o, s:s}, s:i}", "content", "parts", parts, "role", "model", "index", 0);
    if (finish) json_object_set_new(candidate, "finishReason", json_string(finish));
    return json_pack("{s:[o], s:o, s:s, s:s}", "candidates", candidate, "usageMetadata", counts, "modelVersion",
                     ask->api->name, "responseId", ask->id);
}

static json_t *whole_answer(whit_ask *ask, const json_t *choice)
{
    const json_t *message = json_object_get(choice, "message");
    json_t *text = json_object_get(message, "content"), *thinking = json_object_get(message, "reasoning_content");
    const json_t *calls = json_object_get(message, "tool_calls");
    json_t *parts = json_array();
    if (json_string_length(thinking) && ask->state.shows_thoughts)
        json_array_append_new(parts, json_pack("{s:O, s:b}", "text", thinking, "thought", 1));
    if (json_string_length(text)) json_array_append_new(parts, json_pack("{s:O}", "text", text));
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *function = json_object_get(json_array_get(calls, i), "function");
        json_array_append_new(parts,
                              call_part(ask, (uint32_t)i, json_object_get(function, "name"),
                                        whit_dialect_arguments(json_object_get(function, "arguments"))));
    }
    return response(ask, parts, finish_reason(ask->jobs[0]));
}

/* ---- streamed replies ---------------------------------------------------------------------------- */

/* Appends the event as a line "data: ..." or, if the stream is a list, as its next item. Takes ownership of the
 * event. */
static void send_event(whit_ask *ask, json_t *event, whit_buf *out)
{
    char *text = event ? whit_json_write(event) : NULL;
    bool first = ask->state.n_events++ == 0;
    if (text) {
        const char *begin = ",\r\n";
        if (!ask->state.is_list)
            begin = "data: ";
        else if (first)
            begin = "[";
        whit_buf_append_str(out, begin);
        whit_buf_append_str(out, text);
        if (!ask->state.is_list) whit_buf_append_str(out, "\r\n\r\n");
    }
    free(text);
    json_decref(event);
}

static void begin_stream(whit_ask *ask, whit_buf *out)
{
    (void)ask, (void)out;
}

static void write_event(whit_ask *ask, const whit_chat_event *event, whit_buf *out)
{
    whit_dialect_state *state = &ask->state;
    json_t *text = whit_dialect_text(event->text, event->text_bytes);
    switch (event->kind) {
    case WHIT_CHAT_TEXT: send_event(ask, response(ask, json_pack("[{s:O}]", "text", text), NULL), out); break;
    case WHIT_CHAT_THINKING:
        if (state->shows_thoughts)
            send_event(ask, response(ask, json_pack("[{s:O, s:b}]", "text", text, "thought", 1), NULL), out);
        break;
    case WHIT_CHAT_CALL_BEGIN:
        json_decref(state->output);
        state->output = json_incref(text);
        state->text.size_bytes = 0;
        break;
    case WHIT_CHAT_CALL_ARGUMENTS: whit_buf_append(&state->text, event->text, event->text_bytes); break;
    case WHIT_CHAT_CALL_END: { /* a call is sent when all its arguments are there */
        json_t *written = whit_dialect_text(state->text.data, state->text.size_bytes);
        json_t *part = call_part(ask, event->i_call, state->output, whit_dialect_arguments(written));
        send_event(ask, response(ask, json_pack("[o]", part), NULL), out);
        json_decref(written);
        break;
    }
    }
    json_decref(text);
}

static void end_stream(whit_ask *ask, whit_buf *out)
{
    send_event(ask, response(ask, json_pack("[{s:s}]", "text", ""), finish_reason(ask->jobs[0])), out);
    if (ask->state.is_list) whit_buf_append_str(out, "]");
}

static void write_failure(whit_ask *ask, const whit_error *error, whit_buf *out)
{
    send_event(ask,
               json_pack("{s:{s:i, s:s, s:s}}", "error", "code", 500, "message", error->message, "status", "INTERNAL"),
               out);
    if (ask->state.is_list) whit_buf_append_str(out, "]");
}

static const whit_dialect events = {whole_answer, begin_stream,  write_event,
                                    end_stream,   write_failure, .ping = ": still at work\n\n"},
                          list = {whole_answer, begin_stream,  write_event,
                                  end_stream,   write_failure, .type = "application/json",
                                  .ping = " "};

/* ---- endpoints ----------------------------------------------------------------------------------- */

static void answer_call(whit_call *call, bool stream)
{
    bool shows_thoughts;
    const char *form = whit_web_query(call->request, "alt");
    json_t *chat = whit_gemini_read(call->body, &shows_thoughts, call->reply);
    if (chat) json_object_set_new(chat, "stream", json_boolean(stream));
    whit_ask *ask = whit_ask_open_own(call, chat, NULL, true);
    if (!ask) return;
    ask->state.is_list = !form || strcmp(form, "sse") != 0;
    ask->state.shows_thoughts = shows_thoughts;
    ask->dialect = ask->state.is_list ? &list : &events;
    ask->path = "gemini";
    whit_ask_reply(ask, call->reply);
}

void whit_gemini_generate(whit_call *call)
{
    answer_call(call, false);
}

void whit_gemini_stream(whit_call *call)
{
    answer_call(call, true);
}

void whit_gemini_count(whit_call *call)
{
    const json_t *within = whit_gemini_get(call->body, "generateContentRequest");
    bool shows_thoughts;
    size_t n;
    json_t *chat = whit_gemini_read(within ? within : call->body, &shows_thoughts, call->reply);
    if (chat && whit_ask_count(call->api, chat, &n, call->reply))
        whit_api_reply(call->reply,
                       json_pack("{s:I, s:[{s:s, s:I}]}", "totalTokens", (json_int_t)n, "promptTokensDetails",
                                 "modality", "TEXT", "tokenCount", (json_int_t)n));
    json_decref(chat);
}

/* ---- embeddings ---------------------------------------------------------------------------------- */

/* Returns the text to embed of the i-th request: its title, if any, and the texts of its content's parts, one per line.
 * The caller owns it. Returns NULL after refusing the request. */
static json_t *text_to_embed(const json_t *request, size_t i, whit_web_reply *reply)
{
    const json_t *title = whit_gemini_get(request, "title");
    json_t *parts = whit_gemini_list(whit_gemini_get(request, "content"), "parts");
    whit_buf text = {0};
    bool ok = json_array_size(parts) > 0;
    if (json_string_length(title)) whit_buf_printf(&text, "%s\n", json_string_value(title));
    for (size_t k = 0; ok && k < json_array_size(parts); k++) {
        const json_t *one = whit_gemini_get(json_array_get(parts, k), "text");
        if (k) whit_buf_append_str(&text, "\n");
        ok = json_is_string(one) && whit_buf_append(&text, json_string_value(one), json_string_length(one));
    }
    json_t *result = ok ? whit_dialect_text(text.data, text.size_bytes) : NULL;
    if (!ok)
        whit_api_fail(reply, 400, "invalid_request_error", "content",
                      "requests[%zu].content: expected a list of parts with texts", i);
    whit_buf_free(&text);
    json_decref(parts);
    return result;
}

/* Replies with the vectors of all requests. They all have the number of dimensions that the first request names. */
static void embed_requests(whit_call *call, const json_t *requests, whit_vectors_form form)
{
    size_t width = whit_model_embedding_size(call->api->model), n, n_tokens;
    double n_dimensions = (double)width;
    json_t *texts = json_array(), *model = json_object_get(call->body, "model");
    json_t *body = json_pack("{s:o, s:O*}", "input", texts, "model", model);
    const json_t *first = whit_gemini_get(json_array_get(requests, 0), "outputDimensionality");
    bool ok = true;
    float *values;
    for (size_t i = 0; ok && i < json_array_size(requests); i++) {
        const json_t *request = json_array_get(requests, i);
        json_t *wanted = whit_gemini_get(request, "outputDimensionality"),
               *text = text_to_embed(request, i, call->reply);
        ok = text &&
            (wanted == first || json_equal(wanted, first) ||
             whit_field_refuse(call->reply, "outputDimensionality",
                               "outputDimensionality: expected the same number in all requests"));
        if (ok && wanted) json_object_set(body, "outputDimensionality", wanted);
        if (text) json_array_append_new(texts, text);
    }
    ok = ok && (json_array_size(texts) || whit_field_refuse(call->reply, "requests", "expected a list of requests")) &&
        whit_field_count(body, "outputDimensionality", 1, (double)width, &n_dimensions, call->reply);
    width = (size_t)n_dimensions;
    if (ok && whit_api_embed(call->api, body, "input", width, call->request->fd, &values, &n, &n_tokens, call->reply))
        whit_reply_vectors(call->reply, form, false, values, n, width, json_object());
    json_decref(body);
}

void whit_gemini_embed(whit_call *call)
{
    json_t *requests = json_pack("[O]", call->body);
    embed_requests(call, requests, WHIT_VECTORS_GEMINI_ONE);
    json_decref(requests);
}

void whit_gemini_embed_batch(whit_call *call)
{
    json_t *requests = whit_gemini_list(call->body, "requests");
    embed_requests(call, requests, WHIT_VECTORS_GEMINI);
    json_decref(requests);
}

/* ---- models -------------------------------------------------------------------------------------- */

static json_t *model_json(const whit_entry *entry)
{
    return json_pack("{s:o, s:s, s:s, s:I, s:I, s:[s, s, s, s, s]}", "name",
                     json_sprintf("models/%s", entry->options->name), "displayName", entry->options->name, "version",
                     entry->digest, "inputTokenLimit", (json_int_t)entry->n_ctx, "outputTokenLimit",
                     (json_int_t)entry->n_ctx, "supportedGenerationMethods", "generateContent", "streamGenerateContent",
                     "countTokens", "embedContent", "batchEmbedContents");
}

void whit_gemini_models(whit_call *call)
{
    json_t *models = json_array();
    whit_entry entry;
    for (size_t i = 0; whit_models_at(call->site, i, &entry); i++)
        if (whit_key_may_use(call->site, call->key, entry.options->name))
            json_array_append_new(models, model_json(&entry));
    whit_api_reply(call->reply, json_pack("{s:o}", "models", models));
}

void whit_gemini_model(whit_call *call)
{
    whit_entry entry;
    for (size_t i = 0; whit_models_at(call->site, i, &entry); i++)
        if (strlen(entry.options->name) == call->n_rest && !memcmp(entry.options->name, call->rest, call->n_rest) &&
            whit_key_may_use(call->site, call->key, entry.options->name)) {
            whit_api_reply(call->reply, model_json(&entry));
            return;
        }
    whit_api_fail(call->reply, 404, "not_found_error", "model", "there is no model %.*s; GET /v1beta/models lists them",
                  (int)(call->n_rest < 100 ? call->n_rest : 100), call->rest);
}
