/* SPDX-License-Identifier: MIT
 * Writes answers in the form of OpenAI's Responses API, https://platform.openai.com/docs/api-reference/responses:
 * texts, calls and reasoning, whole or as events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/dialect.h"
#include "server/endpoints.h"
#include "server/responses.h"

/* ---- the response as an object ------------------------------------------------------------------- */

static json_t *usage(const whit_ask *ask)
{
    const whit_job *job = ask->jobs[0];
    return json_pack("{s:I, s:{s:I, s:i}, s:I, s:{s:i}, s:I}", "input_tokens", (json_int_t)job->n_ids,
                     "input_tokens_details", "cached_tokens", (json_int_t)job->n_cached, "cache_write_tokens", 0,
                     "output_tokens", (json_int_t)job->n_generated, "output_tokens_details", "reasoning_tokens", 0,
                     "total_tokens", (json_int_t)job->n_ids + job->n_generated);
}

static json_t *field(const whit_ask *ask, const char *name, json_t *otherwise)
{
    json_t *own = json_object_get(ask->state.request, name);
    if (!own || json_is_null(own)) return otherwise;
    json_decref(otherwise);
    return json_incref(own);
}

/* Returns the tools as the request has listed them. Functions without `strict` or `parameters` get these as null, as
 * OpenAI's schema requires. */
static json_t *repeated_tools(const whit_ask *ask)
{
    size_t i;
    json_t *tool, *list = json_array();
    json_array_foreach(json_object_get(ask->state.request, "tools"), i, tool)
    {
        const char *type = json_string_value(json_object_get(tool, "type"));
        json_t *copy = json_copy(tool);
        if (type && !strcmp(type, "function")) {
            static const char *const wanted[] = {"strict", "parameters"};
            for (size_t k = 0; k < 2; k++)
                if (!json_object_get(copy, wanted[k])) json_object_set_new(copy, wanted[k], json_null());
        }
        json_array_append_new(list, copy);
    }
    return list;
}

/* Returns whether a limit ended the answer, so that its last item is incomplete. */
static bool is_cut(const whit_ask *ask)
{
    return ask->jobs[0]->finish != WHIT_FINISH_END && ask->jobs[0]->finish != WHIT_FINISH_STOP;
}

/* Makes a response object. output: its items, which the caller still owns; NULL: the response is in progress. */
static json_t *response(const whit_ask *ask, json_t *output)
{
    bool cut = output && is_cut(ask);
    const char *status = "completed";
    if (!output)
        status = "in_progress";
    else if (cut)
        status = "incomplete";
    json_t *details = cut ? json_pack("{s:s}", "reason", "max_output_tokens") : json_null();
    json_t *items = output ? json_incref(output) : json_array();
    json_t *own = json_pack("{s:s, s:s, s:I, s:s, s:o, s:n, s:s, s:o, s:b}", "id", ask->id, "object", "response",
                            "created_at", (json_int_t)ask->created, "status", status, "incomplete_details", details,
                            "error", "model", ask->api->name, "output", items, "store", 0);
    const struct {
        const char *name;
        json_t *otherwise;
    } fields[] = {{"instructions", json_null()},
                  {"max_output_tokens", json_null()},
                  {"metadata", json_object()},
                  {"temperature", json_null()},
                  {"top_p", json_null()},
                  {"tool_choice", json_string("auto")},
                  {"parallel_tool_calls", json_true()},
                  {"text", json_pack("{s:{s:s}}", "format", "type", "text")},
                  {"reasoning", json_null()}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        json_object_set_new(own, fields[i].name, field(ask, fields[i].name, fields[i].otherwise));
    json_object_set_new(own, "tools", repeated_tools(ask));
    json_object_set_new(own, "previous_response_id", json_null());
    json_object_set_new(own, "truncation", json_string("disabled"));
    if (output) json_object_set_new(own, "usage", usage(ask));
    return own;
}

/* Makes the id of the i-th item of the output. */
static json_t *item_id(const whit_ask *ask, const char *kind, int i)
{
    return json_sprintf("%s_%016llx_%d", kind, ask->number, i);
}

static json_t *text_part(json_t *text)
{
    return json_pack("{s:s, s:o, s:[], s:[]}", "type", "output_text", "text", text, "annotations", "logprobs");
}

static json_t *thinking_part(json_t *text)
{
    return json_pack("{s:s, s:o}", "type", "reasoning_text", "text", text);
}

static json_t *thinking_item(const whit_ask *ask, int i, json_t *text, const char *status)
{
    return json_pack("{s:s, s:o, s:[], s:[o], s:s}", "type", "reasoning", "id", item_id(ask, "rs", i), "summary",
                     "content", thinking_part(text), "status", status);
}

static json_t *message_item(const whit_ask *ask, int i, json_t *content, const char *status)
{
    return json_pack("{s:s, s:o, s:s, s:s, s:o}", "type", "message", "id", item_id(ask, "msg", i), "status", status,
                     "role", "assistant", "content", content);
}

/* Makes the item of a call; `name` is the function's name as offered to the model. */
static json_t *call_item(const whit_ask *ask, int i, const char *name, const void *arguments, size_t n_arguments,
                         const char *status)
{
    json_t *item = whit_response_call_item(ask->state.kinds, name, arguments, n_arguments);
    json_object_set_new(item, "id", item_id(ask, "fc", i));
    json_object_set_new(item, "call_id", item_id(ask, "call", i));
    const char *type = json_string_value(json_object_get(item, "type"));
    /* In OpenAI's API an apply_patch_call cannot have the status "incomplete". */
    bool has_no_end = type && !strcmp(type, "apply_patch_call") && !strcmp(status, "incomplete");
    json_object_set_new(item, "status", json_string(has_no_end ? "in_progress" : status));
    return item;
}

static json_t *whole_answer(whit_ask *ask, const json_t *choice)
{
    const json_t *message = json_object_get(choice, "message");
    json_t *text = json_object_get(message, "content"), *thinking = json_object_get(message, "reasoning_content");
    json_t *calls = json_object_get(message, "tool_calls"), *output = json_array();
    int i = 0;
    if (json_string_length(thinking))
        json_array_append_new(output, thinking_item(ask, i++, json_incref(thinking), "completed"));
    if (json_string_length(text))
        json_array_append_new(output,
                              message_item(ask, i++, json_pack("[o]", text_part(json_incref(text))), "completed"));
    for (size_t k = 0; k < json_array_size(calls); k++, i++) {
        const json_t *function = json_object_get(json_array_get(calls, k), "function");
        const json_t *arguments = json_object_get(function, "arguments");
        json_array_append_new(output,
                              call_item(ask, i, json_string_value(json_object_get(function, "name")),
                                        json_string_value(arguments), json_string_length(arguments), "completed"));
    }
    if (i && is_cut(ask))
        json_object_set_new(json_array_get(output, (size_t)i - 1), "status", json_string("incomplete"));
    json_t *own = response(ask, output);
    json_decref(output);
    return own;
}

/* ---- streamed responses -------------------------------------------------------------------------- */

/* Sends an event of this type; takes ownership of `event`. */
static void send_event(whit_ask *ask, const char *type, json_t *event, whit_buf *out)
{
    json_object_set_new(event, "type", json_string(type));
    json_object_set_new(event, "sequence_number", json_integer((json_int_t)ask->state.n_events++));
    whit_dialect_send(out, event);
}

static void begin_stream(whit_ask *ask, whit_buf *out)
{
    ask->state.output = json_array();
    send_event(ask, "response.created", json_pack("{s:o}", "response", response(ask, NULL)), out);
    send_event(ask, "response.in_progress", json_pack("{s:o}", "response", response(ask, NULL)), out);
}

static const char *kind_of(const whit_ask *ask)
{
    if (ask->state.kind == WHIT_CHAT_TEXT) return "msg";
    return ask->state.kind == WHIT_CHAT_THINKING ? "rs" : "fc";
}

/* Makes the members "item_id" and "output_index" of an event and, for items with parts, "content_index". */
static json_t *place_of_event(const whit_ask *ask)
{
    json_t *own = json_pack("{s:o, s:i}", "item_id", item_id(ask, kind_of(ask), ask->state.index), "output_index",
                            ask->state.index);
    if (ask->state.kind == WHIT_CHAT_TEXT || ask->state.kind == WHIT_CHAT_THINKING)
        json_object_set_new(own, "content_index", json_integer(0));
    return own;
}

static json_t *with(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
    return object;
}

/* Sends the event that ends the arguments of a function call. For a call of a custom tool, sends its whole input at
 * once. */
static void close_call(whit_ask *ask, const json_t *item, whit_buf *out)
{
    if (whit_response_is_function(ask->state.kinds, ask->state.name)) {
        send_event(ask, "response.function_call_arguments.done",
                   with(with(place_of_event(ask), "arguments", json_incref(json_object_get(item, "arguments"))), "name",
                        json_incref(json_object_get(item, "name"))),
                   out);
    } else if (whit_response_is_custom(ask->state.kinds, ask->state.name)) {
        json_t *input = json_object_get(item, "input");
        send_event(ask, "response.custom_tool_call_input.delta", with(place_of_event(ask), "delta", json_incref(input)),
                   out);
        send_event(ask, "response.custom_tool_call_input.done", with(place_of_event(ask), "input", json_incref(input)),
                   out);
    }
}

static void close_item(whit_ask *ask, const char *status, whit_buf *out)
{
    whit_dialect_state *state = &ask->state;
    if (!state->open) return;
    json_t *text = whit_dialect_text(state->text.data, state->text.size_bytes), *item = NULL;
    if (state->kind == WHIT_CHAT_TEXT) {
        send_event(ask, "response.output_text.done",
                   with(with(place_of_event(ask), "text", json_incref(text)), "logprobs", json_array()), out);
        send_event(ask, "response.content_part.done", with(place_of_event(ask), "part", text_part(json_incref(text))),
                   out);
        item = message_item(ask, state->index, json_pack("[o]", text_part(json_incref(text))), status);
    } else if (state->kind == WHIT_CHAT_THINKING) {
        send_event(ask, "response.reasoning_text.done", with(place_of_event(ask), "text", json_incref(text)), out);
        send_event(ask, "response.content_part.done",
                   with(place_of_event(ask), "part", thinking_part(json_incref(text))), out);
        item = thinking_item(ask, state->index, json_incref(text), status);
    } else {
        item = call_item(ask, state->index, state->name, state->text.data, state->text.size_bytes, status);
        close_call(ask, item, out);
    }
    json_decref(text);
    json_array_append(state->output, item);
    send_event(ask, "response.output_item.done", json_pack("{s:i, s:o}", "output_index", state->index, "item", item),
               out);
    state->text.size_bytes = 0;
    state->index++;
    state->open = false;
}

static void open_item(whit_ask *ask, whit_chat_event_kind kind, whit_buf *out)
{
    whit_dialect_state *state = &ask->state;
    close_item(ask, "completed", out);
    state->open = true;
    state->kind = kind;
    json_t *item;
    if (kind == WHIT_CHAT_TEXT)
        item = message_item(ask, state->index, json_array(), "in_progress");
    else if (kind == WHIT_CHAT_THINKING)
        item = json_pack("{s:s, s:o, s:[], s:[]}", "type", "reasoning", "id", item_id(ask, "rs", state->index),
                         "summary", "content");
    else
        item = call_item(ask, state->index, state->name, "", 0, "in_progress");
    send_event(ask, "response.output_item.added", json_pack("{s:i, s:o}", "output_index", state->index, "item", item),
               out);
    /* OpenAI's client libraries add deltas to a part of the item, so texts and thinking need a part. */
    json_t *part = NULL;
    if (kind == WHIT_CHAT_TEXT)
        part = text_part(json_string(""));
    else if (kind == WHIT_CHAT_THINKING)
        part = thinking_part(json_string(""));
    if (part) send_event(ask, "response.content_part.added", with(place_of_event(ask), "part", part), out);
}

static void write_event(whit_ask *ask, const whit_chat_event *event, whit_buf *out)
{
    whit_dialect_state *state = &ask->state;
    json_t *delta = whit_dialect_text(event->text, event->text_bytes), *place;
    switch (event->kind) {
    case WHIT_CHAT_TEXT:
    case WHIT_CHAT_THINKING:
        if (!state->open || state->kind != event->kind) open_item(ask, event->kind, out);
        whit_buf_append(&state->text, event->text, event->text_bytes);
        place = with(place_of_event(ask), "delta", json_incref(delta));
        if (ask->times_tokens && ask->jobs[0]->first_ns) with(place, "timings", whit_ask_timings(ask));
        if (event->kind == WHIT_CHAT_TEXT)
            send_event(ask, "response.output_text.delta", with(place, "logprobs", json_array()), out);
        else
            send_event(ask, "response.reasoning_text.delta", place, out);
        break;
    case WHIT_CHAT_CALL_BEGIN:
        snprintf(state->name, sizeof state->name, "%.*s", (int)(event->text_bytes < 199 ? event->text_bytes : 199),
                 event->text);
        open_item(ask, WHIT_CHAT_CALL_BEGIN, out);
        break;
    case WHIT_CHAT_CALL_ARGUMENTS:
        whit_buf_append(&state->text, event->text, event->text_bytes);
        if (whit_response_is_function(ask->state.kinds, state->name))
            send_event(ask, "response.function_call_arguments.delta",
                       with(place_of_event(ask), "delta", json_incref(delta)), out);
        break;
    case WHIT_CHAT_CALL_END: close_item(ask, !event->complete && is_cut(ask) ? "incomplete" : "completed", out); break;
    }
    json_decref(delta);
}

static void end_stream(whit_ask *ask, whit_buf *out)
{
    close_item(ask, is_cut(ask) ? "incomplete" : "completed", out);
    json_t *own = response(ask, ask->state.output);
    bool cut = !strcmp(json_string_value(json_object_get(own, "status")), "incomplete");
    send_event(ask, cut ? "response.incomplete" : "response.completed", json_pack("{s:o}", "response", own), out);
}

static void write_failure(whit_ask *ask, const whit_error *error, whit_buf *out)
{
    json_t *own = response(ask, NULL);
    json_object_set_new(own, "status", json_string("failed"));
    json_object_set_new(own, "error", json_pack("{s:s, s:s}", "code", "server_error", "message", error->message));
    send_event(ask, "response.failed", json_pack("{s:o}", "response", own), out);
}

static const whit_dialect dialect = {whole_answer, begin_stream, write_event, end_stream, write_failure};

void whit_responses_post(whit_call *call)
{
    json_t *kinds, *chat = whit_responses_read(call->body, &kinds, call->reply);
    whit_ask *ask = whit_ask_open_own(call, chat, kinds, true);
    if (!ask) return;
    ask->dialect = &dialect;
    ask->path = "responses";
    ask->state.request = json_incref((json_t *)call->body);
    snprintf(ask->id, sizeof ask->id, "resp_%016llx", ask->number);
    whit_ask_reply(ask, call->reply);
}

void whit_responses_count(whit_call *call)
{
    json_t *kinds, *chat = whit_responses_read(call->body, &kinds, call->reply);
    size_t n_tokens;
    if (chat && whit_ask_count(call->api, chat, &n_tokens, call->reply))
        whit_api_reply(
            call->reply,
            json_pack("{s:s, s:I}", "object", "response.input_tokens", "input_tokens", (json_int_t)n_tokens));
    json_decref(chat), json_decref(kinds);
}
