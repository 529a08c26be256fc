/* SPDX-License-Identifier: MIT
 * OpenAI's Responses API, https://platform.openai.com/docs/api-reference/responses: texts, function calls,
 * reasoning. Nothing is stored: what refers to something stored is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/dialect.h"
#include "server/endpoints.h"

/* ---- requests ------------------------------------------------------------------------------------ */

static bool refuse(whit_web_reply *reply, const char *param, const char *what)
{
    whit_api_fail(reply, 400, "invalid_request_error", param, "%s: %s", param, what);
    return false;
}

/* A text, or a list of parts with texts; NULL: refused. */
static json_t *content_text(const json_t *content, whit_web_reply *reply)
{
    whit_buf text = {0};
    if (json_is_string(content)) return json_incref((json_t *)content);
    if (content && !json_is_null(content) && !json_is_array(content)) {
        refuse(reply, "input", "a content is a text or a list of parts");
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *part = json_array_get(content, i), *own = json_object_get(part, "text");
        if (!own) own = json_object_get(part, "refusal");
        if (!json_is_string(own) || !whit_buf_append(&text, json_string_value(own), json_string_length(own))) {
            refuse(reply, "input", "only parts with text are served");
            whit_buf_free(&text);
            return NULL;
        }
    }
    json_t *whole = whit_dialect_text(text.data, text.size_bytes);
    whit_buf_free(&text);
    return whole;
}

/* Calls that follow each other, or a text, belong to one message of the assistant. */
static void add_call(json_t *messages, const json_t *item)
{
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    json_t *call =
        json_pack("{s:O, s:s, s:{s:O, s:O}}", "id", json_object_get(item, "call_id"), "type", "function", "function",
                  "name", json_object_get(item, "name"), "arguments", json_object_get(item, "arguments"));
    if (role && !strcmp(role, "assistant")) {
        json_t *calls = json_object_get(last, "tool_calls");
        if (!calls) json_object_set_new(last, "tool_calls", calls = json_array());
        json_array_append_new(calls, call);
        return;
    }
    json_array_append_new(messages,
                          json_pack("{s:s, s:s, s:[o]}", "role", "assistant", "content", "", "tool_calls", call));
}

static bool read_item(const json_t *item, json_t *messages, whit_web_reply *reply)
{
    const char *type = json_string_value(json_object_get(item, "type"));
    const char *role = json_string_value(json_object_get(item, "role"));
    if (!type || !strcmp(type, "message")) {
        const json_t *content = json_object_get(item, "content");
        json_t *text = role ? content_text(content, reply) : NULL;
        if (!role) return refuse(reply, "input", "a message lacks its role");
        if (!text) return false;
        json_array_append_new(messages, json_pack("{s:s, s:O}", "role", role, "content", text));
        json_decref(text);
        return true;
    }
    if (!strcmp(type, "function_call")) {
        bool whole = json_is_string(json_object_get(item, "call_id")) &&
            json_is_string(json_object_get(item, "name")) && json_is_string(json_object_get(item, "arguments"));
        if (!whole) return refuse(reply, "input", "a function_call needs call_id, name and arguments");
        add_call(messages, item);
        return true;
    }
    if (!strcmp(type, "function_call_output")) {
        const json_t *id = json_object_get(item, "call_id");
        json_t *text = content_text(json_object_get(item, "output"), reply);
        if (!text) return false;
        bool ok = json_is_string(id);
        if (ok)
            json_array_append_new(messages,
                                  json_pack("{s:s, s:O, s:O}", "role", "tool", "tool_call_id", id, "content", text));
        json_decref(text);
        return ok || refuse(reply, "input", "a function_call_output needs its call_id");
    }
    if (!strcmp(type, "reasoning")) return true; /* templates leave out earlier thinking */
    return refuse(reply, "input", "messages, function_call, function_call_output and reasoning are served");
}

static bool read_input(const json_t *body, json_t *messages, whit_web_reply *reply)
{
    const json_t *input = json_object_get(body, "input"), *instructions = json_object_get(body, "instructions");
    if (json_string_length(instructions))
        json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "system", "content", instructions));
    if (json_is_string(input)) {
        json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "user", "content", input));
        return true;
    }
    if (!json_array_size(input)) return refuse(reply, "input", "expected a text or a list of items");
    for (size_t i = 0; i < json_array_size(input); i++)
        if (!read_item(json_array_get(input, i), messages, reply)) return false;
    return true;
}

static bool read_tools(const json_t *body, json_t *own, whit_web_reply *reply)
{
    const json_t *tools = json_object_get(body, "tools"), *choice = json_object_get(body, "tool_choice");
    if (tools && !json_is_null(tools) && !json_is_array(tools)) return refuse(reply, "tools", "expected a list");
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i), *name = json_object_get(tool, "name");
        const char *type = json_string_value(json_object_get(tool, "type"));
        static const char *const parts[] = {"description", "parameters", "strict"};
        if (!type || strcmp(type, "function") || !json_is_string(name)) {
            json_decref(list);
            return refuse(reply, "tools", "only functions are served, which need a name");
        }
        json_t *function = json_pack("{s:O}", "name", name);
        for (size_t k = 0; k < 3; k++) {
            json_t *part = json_object_get(tool, parts[k]);
            if (part && !json_is_null(part)) json_object_set(function, parts[k], part);
        }
        json_array_append_new(list, json_pack("{s:s, s:o}", "type", "function", "function", function));
    }
    if (json_array_size(list)) json_object_set(own, "tools", list);
    json_decref(list);
    if (json_is_object(choice) && json_object_get(choice, "name"))
        json_object_set_new(
            own, "tool_choice",
            json_pack("{s:s, s:{s:O}}", "type", "function", "function", "name", json_object_get(choice, "name")));
    else if (choice)
        json_object_set(own, "tool_choice", (json_t *)choice);
    return true;
}

static bool read_format(const json_t *body, json_t *own)
{
    const json_t *format = json_object_get(json_object_get(body, "text"), "format");
    const char *type = json_string_value(json_object_get(format, "type"));
    if (!type) return true;
    if (!strcmp(type, "json_schema"))
        json_object_set_new(
            own, "response_format",
            json_pack("{s:s, s:{s:O}}", "type", type, "json_schema", "schema",
                      json_object_get(format, "schema") ? json_object_get(format, "schema") : json_null()));
    else
        json_object_set_new(own, "response_format", json_pack("{s:s}", "type", type));
    return true;
}

static json_t *translate(const json_t *body, whit_web_reply *reply)
{
    static const char *const same[] = {"model",   "temperature",         "top_p",    "stream", "seed",
                                       "grammar", "parallel_tool_calls", "adapters", "lora",   "program"};
    json_t *own = json_object(), *messages = json_array();
    const json_t *most = json_object_get(body, "max_output_tokens"),
                 *before = json_object_get(body, "previous_response_id");
    static const struct {
        const char *name, *why;
    } missing[] = {{"conversation", "nothing is stored here; send what came before in input"},
                   {"prompt", "no prompts are stored here; send its text in input or instructions"},
                   {"background", "an answer comes with its own request; leave it out, or stream"}};
    const char *effort = json_string_value(json_object_get(json_object_get(body, "reasoning"), "effort"));
    bool ok = !json_is_string(before) ||
        refuse(reply, "previous_response_id", "nothing is stored here; send what came before in input");
    for (size_t i = 0; ok && i < sizeof missing / sizeof missing[0]; i++) {
        const json_t *value = json_object_get(body, missing[i].name);
        ok = !value || json_is_null(value) || json_is_false(value) || refuse(reply, missing[i].name, missing[i].why);
    }
    ok = ok && read_input(body, messages, reply) && read_tools(body, own, reply) && read_format(body, own);
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        json_t *value = json_object_get(body, same[i]);
        if (value && !json_is_null(value)) json_object_set(own, same[i], value);
    }
    json_object_set_new(own, "messages", messages);
    if (most && !json_is_null(most)) json_object_set(own, "max_tokens", (json_t *)most);
    if (effort) {
        json_object_set_new(own, "reasoning_effort", json_string(effort));
        json_object_set_new(own, "chat_template_kwargs",
                            json_pack("{s:b}", "enable_thinking", strcmp(effort, "none") != 0));
    }
    if (ok) return own;
    json_decref(own);
    return NULL;
}

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

/* Did a limit end the answer? Then its last item lacks its end. */
static bool is_cut(const whit_ask *ask)
{
    return ask->jobs[0]->finish != WHIT_FINISH_END && ask->jobs[0]->finish != WHIT_FINISH_STOP;
}

/* `output` is not taken; NULL: the response is still in progress. */
static json_t *response(const whit_ask *ask, json_t *output)
{
    bool cut = output && is_cut(ask);
    json_t *own =
        json_pack("{s:s, s:s, s:I, s:s, s:o, s:n, s:s, s:o, s:b}", "id", ask->id, "object", "response", "created_at",
                  (json_int_t)ask->created, "status",
                  !output   ? "in_progress"
                      : cut ? "incomplete"
                            : "completed",
                  "incomplete_details", cut ? json_pack("{s:s}", "reason", "max_output_tokens") : json_null(), "error",
                  "model", ask->api->name, "output", output ? json_incref(output) : json_array(), "store", 0);
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
                  {"tools", json_array()},
                  {"text", json_pack("{s:{s:s}}", "format", "type", "text")},
                  {"reasoning", json_null()}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        json_object_set_new(own, fields[i].name, field(ask, fields[i].name, fields[i].otherwise));
    json_object_set_new(own, "previous_response_id", json_null());
    json_object_set_new(own, "truncation", json_string("disabled"));
    if (output) json_object_set_new(own, "usage", usage(ask));
    return own;
}

/* The id of the i-th item. */
static json_t *item_id(const whit_ask *ask, const char *kind, int i)
{
    return json_sprintf("%s_%016llx_%d", kind, ask->number, i);
}

static json_t *text_part(json_t *text)
{
    return json_pack("{s:s, s:o, s:[]}", "type", "output_text", "text", text, "annotations");
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

static json_t *call_item(const whit_ask *ask, int i, json_t *name, json_t *arguments, const char *status)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:s}", "type", "function_call", "id", item_id(ask, "fc", i), "call_id",
                     item_id(ask, "call", i), "name", name, "arguments", arguments, "status", status);
}

static json_t *whole(whit_ask *ask, const json_t *choice)
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
        json_array_append_new(output,
                              call_item(ask, i, json_incref(json_object_get(function, "name")),
                                        json_incref(json_object_get(function, "arguments")), "completed"));
    }
    if (i && is_cut(ask))
        json_object_set_new(json_array_get(output, (size_t)i - 1), "status", json_string("incomplete"));
    json_t *own = response(ask, output);
    json_decref(output);
    return own;
}

/* ---- streams ------------------------------------------------------------------------------------- */

/* Takes the event over. */
static void send(whit_ask *ask, const char *type, json_t *event, whit_buf *out)
{
    json_object_set_new(event, "type", json_string(type));
    json_object_set_new(event, "sequence_number", json_integer((json_int_t)ask->state.n_events++));
    whit_dialect_send(out, event);
}

static void begin(whit_ask *ask, whit_buf *out)
{
    ask->state.output = json_array();
    send(ask, "response.created", json_pack("{s:o}", "response", response(ask, NULL)), out);
    send(ask, "response.in_progress", json_pack("{s:o}", "response", response(ask, NULL)), out);
}

static const char *kind_of(const whit_ask *ask)
{
    return ask->state.kind == WHIT_CHAT_TEXT ? "msg" : ask->state.kind == WHIT_CHAT_THINKING ? "rs" : "fc";
}

/* {"item_id", "output_index"} and, of what has parts, "content_index". */
static json_t *place(const whit_ask *ask)
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

static void close_item(whit_ask *ask, const char *status, whit_buf *out)
{
    whit_dialect_state *state = &ask->state;
    if (!state->open) return;
    json_t *text = whit_dialect_text(state->text.data, state->text.size_bytes), *item = NULL;
    if (state->kind == WHIT_CHAT_TEXT) {
        send(ask, "response.output_text.done",
             with(with(place(ask), "text", json_incref(text)), "logprobs", json_array()), out);
        send(ask, "response.content_part.done", with(place(ask), "part", text_part(json_incref(text))), out);
        item = message_item(ask, state->index, json_pack("[o]", text_part(json_incref(text))), status);
    } else if (state->kind == WHIT_CHAT_THINKING) {
        send(ask, "response.reasoning_text.done", with(place(ask), "text", json_incref(text)), out);
        send(ask, "response.content_part.done", with(place(ask), "part", thinking_part(json_incref(text))), out);
        item = thinking_item(ask, state->index, json_incref(text), status);
    } else {
        send(ask, "response.function_call_arguments.done",
             with(with(place(ask), "arguments", json_incref(text)), "name",
                  whit_dialect_text(state->name, strlen(state->name))),
             out);
        item = call_item(ask, state->index, whit_dialect_text(state->name, strlen(state->name)), json_incref(text),
                         status);
    }
    json_decref(text);
    json_array_append(state->output, item);
    send(ask, "response.output_item.done", json_pack("{s:i, s:o}", "output_index", state->index, "item", item), out);
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
    json_t *item = kind == WHIT_CHAT_TEXT ? message_item(ask, state->index, json_array(), "in_progress")
        : kind == WHIT_CHAT_THINKING      ? json_pack("{s:s, s:o, s:[], s:[]}", "type", "reasoning", "id",
                                                      item_id(ask, "rs", state->index), "summary", "content")
                                     : call_item(ask, state->index, whit_dialect_text(state->name, strlen(state->name)),
                                                 json_string(""), "in_progress");
    send(ask, "response.output_item.added", json_pack("{s:i, s:o}", "output_index", state->index, "item", item), out);
    /* OpenAI's libraries add a delta to a part, of thinking as of text. */
    json_t *part = kind == WHIT_CHAT_TEXT ? text_part(json_string(""))
        : kind == WHIT_CHAT_THINKING      ? thinking_part(json_string(""))
                                          : NULL;
    if (part) send(ask, "response.content_part.added", with(place(ask), "part", part), out);
}

static void event(whit_ask *ask, const whit_chat_event *event, whit_buf *out)
{
    whit_dialect_state *state = &ask->state;
    json_t *delta = whit_dialect_text(event->text, event->text_bytes);
    switch (event->kind) {
    case WHIT_CHAT_TEXT:
    case WHIT_CHAT_THINKING:
        if (!state->open || state->kind != event->kind) open_item(ask, event->kind, out);
        whit_buf_append(&state->text, event->text, event->text_bytes);
        if (event->kind == WHIT_CHAT_TEXT)
            send(ask, "response.output_text.delta",
                 with(with(place(ask), "delta", json_incref(delta)), "logprobs", json_array()), out);
        else
            send(ask, "response.reasoning_text.delta", with(place(ask), "delta", json_incref(delta)), out);
        break;
    case WHIT_CHAT_CALL_BEGIN:
        snprintf(state->name, sizeof state->name, "%.*s", (int)(event->text_bytes < 199 ? event->text_bytes : 199),
                 event->text);
        open_item(ask, WHIT_CHAT_CALL_BEGIN, out);
        break;
    case WHIT_CHAT_CALL_ARGUMENTS:
        whit_buf_append(&state->text, event->text, event->text_bytes);
        send(ask, "response.function_call_arguments.delta", with(place(ask), "delta", json_incref(delta)), out);
        break;
    case WHIT_CHAT_CALL_END: close_item(ask, !event->complete && is_cut(ask) ? "incomplete" : "completed", out); break;
    }
    json_decref(delta);
}

static void end(whit_ask *ask, whit_buf *out)
{
    close_item(ask, is_cut(ask) ? "incomplete" : "completed", out);
    json_t *own = response(ask, ask->state.output);
    bool cut = !strcmp(json_string_value(json_object_get(own, "status")), "incomplete");
    send(ask, cut ? "response.incomplete" : "response.completed", json_pack("{s:o}", "response", own), out);
}

static void fail(whit_ask *ask, const whit_error *error, whit_buf *out)
{
    json_t *own = response(ask, NULL);
    json_object_set_new(own, "status", json_string("failed"));
    json_object_set_new(own, "error", json_pack("{s:s, s:s}", "code", "server_error", "message", error->message));
    send(ask, "response.failed", json_pack("{s:o}", "response", own), out);
}

static const whit_dialect dialect = {whole, begin, event, end, fail};

void whit_responses_post(whit_call *call)
{
    json_t *own = translate(call->body, call->reply);
    whit_ask *ask = own ? whit_ask_open(call, own, true) : NULL;
    json_decref(own);
    if (!ask) return;
    ask->dialect = &dialect;
    ask->path = "responses";
    ask->state.request = json_incref((json_t *)call->body);
    snprintf(ask->id, sizeof ask->id, "resp_%016llx", ask->number);
    whit_ask_reply(ask, call->reply);
}
