/* SPDX-License-Identifier: MIT
 * Anthropic's Messages API, https://docs.anthropic.com/en/api/messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/dialect.h"
#include "server/endpoints.h"

/* ---- shared by the dialects ---------------------------------------------------------------------- */

void whit_dialect_send(whit_buf *out, json_t *event)
{
    char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;
    if (text) whit_buf_printf(out, "event: %s\ndata: ", json_string_value(json_object_get(event, "type")));
    if (text && whit_buf_append_str(out, text)) whit_buf_append_str(out, "\n\n");
    free(text);
    json_decref(event);
}

json_t *whit_dialect_text(const void *text, size_t n)
{
    json_t *own = json_stringn(text ? text : "", text ? n : 0);
    return own ? own : json_string("");
}

json_t *whit_dialect_arguments(const json_t *text)
{
    const char *bytes = json_string_value(text);
    size_t n = json_string_length(text);
    if (bytes && (!n || !strcmp(bytes, "null"))) return json_object(); /* a call of a function that takes none */
    json_t *own = bytes ? json_loadb(bytes, n, JSON_ALLOW_NUL, NULL) : NULL;
    /* Integers of more than 64 bits are JSON, too. */
    if (bytes && !own) own = json_loadb(bytes, n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    if (json_is_object(own)) return own;
    json_decref(own);
    return NULL;
}

/* ---- requests ------------------------------------------------------------------------------------ */

static bool refuse(whit_web_reply *reply, const char *what)
{
    whit_api_fail(reply, 400, "invalid_request_error", NULL, "%s", what);
    return false;
}

/* The text of a content: a string, or text blocks. NULL: refused. */
static json_t *content_text(const json_t *content, whit_web_reply *reply)
{
    whit_buf text = {0};
    if (json_is_string(content)) return json_incref((json_t *)content);
    if (!json_is_array(content)) {
        refuse(reply, "content: expected a text or a list of blocks");
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *block = json_array_get(content, i), *own = json_object_get(block, "text");
        if (!json_is_string(own)) {
            refuse(reply, "content: only text can be read here");
            whit_buf_free(&text);
            return NULL;
        }
        if (i) whit_buf_append_str(&text, "\n");
        whit_buf_append(&text, json_string_value(own), json_string_length(own));
    }
    json_t *whole = whit_dialect_text(text.data, text.size_bytes);
    whit_buf_free(&text);
    return whole;
}

/* One message becomes one or more: results of tools are messages of their own. */
static bool read_blocks(const json_t *blocks, const char *role, json_t *messages, whit_web_reply *reply)
{
    bool assistant = !strcmp(role, "assistant");
    json_t *message = json_pack("{s:s}", "role", role), *calls = json_array();
    whit_buf text = {0}, thinking = {0};
    bool ok = message && calls;
    for (size_t i = 0; ok && i < json_array_size(blocks); i++) {
        const json_t *block = json_array_get(blocks, i);
        const char *type = json_string_value(json_object_get(block, "type"));
        if (type && !strcmp(type, "text")) {
            const json_t *own = json_object_get(block, "text");
            if (text.size_bytes) whit_buf_append_str(&text, "\n");
            ok = json_is_string(own) && whit_buf_append(&text, json_string_value(own), json_string_length(own));
        } else if (assistant && type && !strcmp(type, "thinking")) {
            const json_t *own = json_object_get(block, "thinking");
            ok = json_is_string(own) && whit_buf_append(&thinking, json_string_value(own), json_string_length(own));
        } else if (assistant && type && !strcmp(type, "redacted_thinking")) {
            continue;
        } else if (assistant && type && !strcmp(type, "tool_use")) {
            const json_t *id = json_object_get(block, "id"), *name = json_object_get(block, "name");
            const json_t *input = json_object_get(block, "input");
            char *arguments = json_is_object(input) ? json_dumps(input, JSON_COMPACT) : NULL;
            ok = arguments && json_is_string(name) && json_is_string(id);
            if (ok)
                json_array_append_new(calls,
                                      json_pack("{s:O, s:s, s:{s:O, s:s}}", "id", id, "type", "function", "function",
                                                "name", name, "arguments", arguments));
            free(arguments);
        } else if (!assistant && type && !strcmp(type, "tool_result")) {
            const json_t *id = json_object_get(block, "tool_use_id"), *content = json_object_get(block, "content");
            json_t *own = content && !json_is_null(content) ? content_text(content, reply) : json_string("");
            if (!own) goto refused;
            ok = json_is_string(id);
            if (ok)
                json_array_append_new(messages,
                                      json_pack("{s:s, s:O, s:O}", "role", "tool", "tool_call_id", id, "content", own));
            json_decref(own);
        } else {
            refuse(reply,
                   "messages: a kind of content that is not served; text, tool_use, tool_result and thinking are");
            goto refused;
        }
    }
    if (!ok || text.failed || thinking.failed) {
        refuse(reply, "messages: a block of content lacks what it needs");
        goto refused;
    }
    json_object_set_new(message, "content", whit_dialect_text(text.data, text.size_bytes));
    if (thinking.size_bytes)
        json_object_set_new(message, "reasoning_content", whit_dialect_text(thinking.data, thinking.size_bytes));
    if (json_array_size(calls)) json_object_set(message, "tool_calls", calls);
    if (assistant || text.size_bytes) json_array_append(messages, message);
    json_decref(message), json_decref(calls);
    whit_buf_free(&text), whit_buf_free(&thinking);
    return true;
refused:
    json_decref(message), json_decref(calls);
    whit_buf_free(&text), whit_buf_free(&thinking);
    return false;
}

static bool read_messages(const json_t *body, json_t *messages, whit_web_reply *reply)
{
    const json_t *system = json_object_get(body, "system"), *list = json_object_get(body, "messages");
    if (system && !json_is_null(system)) {
        json_t *text = content_text(system, reply);
        if (!text) return false;
        if (json_string_length(text))
            json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "system", "content", text));
        json_decref(text);
    }
    if (!json_is_array(list) || !json_array_size(list)) return refuse(reply, "messages: expected a list of messages");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i), *content = json_object_get(one, "content");
        const char *role = json_string_value(json_object_get(one, "role"));
        if (!role || (strcmp(role, "user") && strcmp(role, "assistant")))
            return refuse(reply, "messages: the role is user or assistant");
        if (json_is_string(content))
            json_array_append_new(messages, json_pack("{s:s, s:O}", "role", role, "content", content));
        else if (!json_is_array(content))
            return refuse(reply, "messages: the content is a text or a list of blocks");
        else if (!read_blocks(content, role, messages, reply))
            return false;
    }
    return true;
}

static bool read_tools(const json_t *body, json_t *own, whit_web_reply *reply)
{
    const json_t *tools = json_object_get(body, "tools"), *choice = json_object_get(body, "tool_choice");
    const char *type = json_string_value(json_object_get(choice, "type"));
    if (tools && !json_is_null(tools) && !json_is_array(tools)) return refuse(reply, "tools: expected a list");
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i), *name = json_object_get(tool, "name");
        const json_t *schema = json_object_get(tool, "input_schema"), *about = json_object_get(tool, "description");
        if (!json_is_string(name) || !json_is_object(schema)) {
            json_decref(list);
            return refuse(reply,
                          "tools: each needs a name and an input_schema; tools that the server runs are not served");
        }
        json_t *function = json_pack("{s:O, s:O}", "name", name, "parameters", schema);
        if (json_is_string(about)) json_object_set(function, "description", (json_t *)about);
        if (json_is_boolean(json_object_get(tool, "strict")))
            json_object_set(function, "strict", json_object_get(tool, "strict"));
        json_array_append_new(list, json_pack("{s:s, s:o}", "type", "function", "function", function));
    }
    if (json_array_size(list)) json_object_set(own, "tools", list);
    json_decref(list);
    if (json_is_true(json_object_get(choice, "disable_parallel_tool_use")))
        json_object_set_new(own, "parallel_tool_calls", json_false());
    if (!type) return true;
    if (!strcmp(type, "any"))
        json_object_set_new(own, "tool_choice", json_string("required"));
    else if (!strcmp(type, "tool"))
        json_object_set_new(own, "tool_choice",
                            json_pack("{s:s, s:{s:O}}", "type", "function", "function", "name",
                                      json_object_get(choice, "name") ? json_object_get(choice, "name") : json_null()));
    else
        json_object_set_new(own, "tool_choice", json_string(type));
    return true;
}

/* The form of the answer: output_config.format, or output_format, as it was called at first. */
static bool read_format(const json_t *body, json_t *own, whit_web_reply *reply)
{
    const json_t *format = json_object_get(json_object_get(body, "output_config"), "format");
    if (!format || json_is_null(format)) format = json_object_get(body, "output_format");
    if (!format || json_is_null(format)) return true;
    const char *type = json_string_value(json_object_get(format, "type"));
    const json_t *schema = json_object_get(format, "schema");
    if (!type || strcmp(type, "json_schema") || !schema || json_is_null(schema))
        return refuse(reply, "output_config.format: expected the type json_schema, and a schema");
    json_object_set_new(own, "response_format",
                        json_pack("{s:s, s:{s:O}}", "type", type, "json_schema", "schema", schema));
    return true;
}

/* As OpenAI has it; NULL: refused. */
static json_t *translate(const json_t *body, bool counting, whit_web_reply *reply)
{
    static const char *const same[] = {"model", "temperature", "top_p",    "top_k", "stream",
                                       "seed",  "grammar",     "adapters", "lora",  "program"};
    json_t *own = json_object(), *messages = json_array();
    const json_t *most = json_object_get(body, "max_tokens"), *stops = json_object_get(body, "stop_sequences");
    const char *thinking = json_string_value(json_object_get(json_object_get(body, "thinking"), "type"));
    bool ok = counting || (json_is_integer(most) && json_integer_value(most) > 0) ||
        refuse(reply, "max_tokens: expected a number above 0");
    ok = ok && read_messages(body, messages, reply) && read_tools(body, own, reply) && read_format(body, own, reply);
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        json_t *value = json_object_get(body, same[i]);
        if (value) json_object_set(own, same[i], value);
    }
    json_object_set_new(own, "messages", messages);
    if (most) json_object_set(own, "max_tokens", (json_t *)most);
    if (stops) json_object_set(own, "stop", (json_t *)stops);
    if (thinking && strcmp(thinking, "adaptive") != 0) /* which leaves it to the model */
        json_object_set_new(own, "chat_template_kwargs",
                            json_pack("{s:b}", "enable_thinking", !strcmp(thinking, "enabled")));
    /* An answer whose beginning is there already is gone on with. */
    const json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    if (ok && role && !strcmp(role, "assistant") && !json_object_get(last, "tool_calls"))
        json_object_set_new(own, "continue_final_message", json_true());
    if (ok) return own;
    json_decref(own);
    return NULL;
}

/* ---- replies ------------------------------------------------------------------------------------- */

/* Did the answer end by itself or at a stop string, rather than at a limit? */
static bool has_ended(const whit_job *job)
{
    return job->finish == WHIT_FINISH_END || job->finish == WHIT_FINISH_STOP;
}

static const char *stop_reason(const whit_ask *ask, bool calls)
{
    const whit_job *job = ask->jobs[0];
    if (!has_ended(job)) return "max_tokens";
    if (calls) return "tool_use";
    return job->stopped_by ? "stop_sequence" : "end_turn";
}

/* The person's stop string that ended the answer, where that is the reason. */
static json_t *stop_text(const whit_ask *ask, bool calls)
{
    const whit_job *job = ask->jobs[0];
    return has_ended(job) && !calls && job->stopped_by ? json_string(job->stopped_by) : json_null();
}

static json_t *usage(const whit_ask *ask)
{
    const whit_job *job = ask->jobs[0];
    return json_pack("{s:I, s:I, s:I, s:I, s:n, s:n, s:n, s:n, s:n, s:n}", "input_tokens",
                     (json_int_t)(job->n_ids - job->n_cached), "output_tokens", (json_int_t)job->n_generated,
                     "cache_read_input_tokens", (json_int_t)job->n_cached, "cache_creation_input_tokens", (json_int_t)0,
                     "cache_creation", "inference_geo", "output_tokens_details", "server_tool_use", "service_tier",
                     "speed");
}

static json_t *whole(whit_ask *ask, const json_t *choice)
{
    const json_t *message = json_object_get(choice, "message"), *text = json_object_get(message, "content");
    json_t *thinking = json_object_get(message, "reasoning_content"), *calls = json_object_get(message, "tool_calls");
    json_t *content = json_array();
    const char *reason = stop_reason(ask, json_array_size(calls) > 0);
    if (json_string_length(thinking))
        json_array_append_new(content,
                              json_pack("{s:s, s:O, s:s}", "type", "thinking", "thinking", thinking, "signature", ""));
    if (json_string_length(text))
        json_array_append_new(content, json_pack("{s:s, s:O, s:n}", "type", "text", "text", text, "citations"));
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i), *function = json_object_get(call, "function");
        json_t *input = whit_dialect_arguments(json_object_get(function, "arguments"));
        json_array_append_new(content,
                              json_pack("{s:s, s:O, s:O, s:o, s:{s:s}}", "type", "tool_use", "id",
                                        json_object_get(call, "id"), "name", json_object_get(function, "name"), "input",
                                        input ? input : json_object(), "caller", "type", "direct"));
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:n, s:n, s:n}", "id", ask->id, "type", "message",
                     "role", "assistant", "model", ask->api->name, "content", content, "stop_reason", reason,
                     "stop_sequence", stop_text(ask, json_array_size(calls) > 0), "usage", usage(ask), "stop_details",
                     "container", "diagnostics");
}

static void begin(whit_ask *ask, whit_buf *out)
{
    json_t *counts = usage(ask);
    json_object_set_new(counts, "output_tokens", json_integer(0));
    json_t *message = json_pack("{s:s, s:s, s:s, s:s, s:[], s:n, s:n, s:o, s:n, s:n, s:n}", "id", ask->id, "type",
                                "message", "role", "assistant", "model", ask->api->name, "content", "stop_reason",
                                "stop_sequence", "usage", counts, "stop_details", "container", "diagnostics");
    whit_dialect_send(out, json_pack("{s:s, s:o}", "type", "message_start", "message", message));
}

static void close_block(whit_ask *ask, whit_buf *out)
{
    whit_dialect_state *state = &ask->state;
    if (!state->open) return;
    whit_dialect_send(out, json_pack("{s:s, s:i}", "type", "content_block_stop", "index", state->index));
    state->index++;
    state->open = false;
}

static void open_block(whit_ask *ask, whit_chat_event_kind kind, json_t *block, whit_buf *out)
{
    whit_dialect_state *state = &ask->state;
    close_block(ask, out);
    state->open = true;
    state->kind = kind;
    whit_dialect_send(
        out,
        json_pack("{s:s, s:i, s:o}", "type", "content_block_start", "index", state->index, "content_block", block));
}

static void event(whit_ask *ask, const whit_chat_event *event, whit_buf *out)
{
    whit_dialect_state *state = &ask->state;
    json_t *text = whit_dialect_text(event->text, event->text_bytes), *delta = NULL;
    char id[80];
    switch (event->kind) {
    case WHIT_CHAT_TEXT:
        if (!state->open || state->kind != WHIT_CHAT_TEXT)
            open_block(ask, WHIT_CHAT_TEXT, json_pack("{s:s, s:s, s:n}", "type", "text", "text", "", "citations"), out);
        delta = json_pack("{s:s, s:O}", "type", "text_delta", "text", text);
        break;
    case WHIT_CHAT_THINKING:
        if (!state->open || state->kind != WHIT_CHAT_THINKING)
            open_block(ask, WHIT_CHAT_THINKING,
                       json_pack("{s:s, s:s, s:s}", "type", "thinking", "thinking", "", "signature", ""), out);
        delta = json_pack("{s:s, s:O}", "type", "thinking_delta", "thinking", text);
        break;
    case WHIT_CHAT_CALL_BEGIN:
        snprintf(id, sizeof id, "toolu_%s_%u", ask->id, event->i_call);
        state->n_calls++;
        open_block(ask, WHIT_CHAT_CALL_BEGIN,
                   json_pack("{s:s, s:s, s:O, s:{}, s:{s:s}}", "type", "tool_use", "id", id, "name", text, "input",
                             "caller", "type", "direct"),
                   out);
        break;
    case WHIT_CHAT_CALL_ARGUMENTS:
        delta = json_pack("{s:s, s:O}", "type", "input_json_delta", "partial_json", text);
        break;
    case WHIT_CHAT_CALL_END: close_block(ask, out); break;
    }
    json_decref(text);
    if (delta)
        whit_dialect_send(
            out, json_pack("{s:s, s:i, s:o}", "type", "content_block_delta", "index", state->index, "delta", delta));
}

static void end(whit_ask *ask, whit_buf *out)
{
    const char *reason = stop_reason(ask, ask->state.n_calls > 0);
    close_block(ask, out);
    whit_dialect_send(out,
                      json_pack("{s:s, s:{s:s, s:o, s:n, s:n}, s:o}", "type", "message_delta", "delta", "stop_reason",
                                reason, "stop_sequence", stop_text(ask, ask->state.n_calls > 0), "stop_details",
                                "container", "usage", usage(ask)));
    whit_dialect_send(out, json_pack("{s:s}", "type", "message_stop"));
}

static void fail(whit_ask *ask, const whit_error *error, whit_buf *out)
{
    (void)ask;
    whit_dialect_send(
        out,
        json_pack("{s:s, s:{s:s, s:s}}", "type", "error", "error", "type", "api_error", "message", error->message));
}

static const whit_dialect dialect = {whole, begin, event, end, fail};

void whit_messages_post(whit_call *call)
{
    json_t *own = translate(call->body, false, call->reply);
    whit_ask *ask = own ? whit_ask_open(call, own, true) : NULL;
    json_decref(own);
    if (!ask) return;
    ask->dialect = &dialect;
    ask->path = "messages";
    snprintf(ask->id, sizeof ask->id, "msg_%016llx", ask->number);
    whit_ask_reply(ask, call->reply);
}

void whit_messages_count(whit_call *call)
{
    json_t *own = translate(call->body, true, call->reply);
    size_t n_tokens;
    if (own && whit_ask_count(call->api, own, &n_tokens, call->reply))
        whit_api_reply(call->reply, json_pack("{s:I}", "input_tokens", (json_int_t)n_tokens));
    json_decref(own);
}
