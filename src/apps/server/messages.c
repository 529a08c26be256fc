/* SPDX-License-Identifier: MIT
 * Serves Anthropic's Messages API, https://docs.anthropic.com/en/api/messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/phrase.h"
#include "server/body.h"
#include "server/dialect.h"
#include "server/endpoints.h"
#include "server/messages.h"
#include "server/json_text.h"

/* ---- shared with the other vendors' APIs --------------------------------------------------------- */

void whit_dialect_send(whit_buf *out, json_t *event)
{
    char *text = event ? whit_json_write(event) : NULL;
    if (text) whit_buf_printf(out, "event: %s\ndata: ", json_string_value(json_object_get(event, "type")));
    if (text && whit_buf_append_str(out, text)) whit_buf_append_str(out, "\n\n");
    free(text);
    json_decref(event);
}

json_t *whit_dialect_text(const void *text, size_t n)
{
    json_t *own = json_stringn(whit_or_empty(text), text ? n : 0);
    return own ? own : json_string("");
}

json_t *whit_dialect_arguments(const json_t *text)
{
    const char *bytes = json_string_value(text);
    size_t n = json_string_length(text);
    /* a function without parameters may be called with empty arguments */
    if (bytes && (!n || !strcmp(bytes, "null"))) return json_object();
    json_error_t ignored;
    json_t *own = bytes ? whit_json_read(bytes, n, &ignored) : NULL;
    if (json_is_object(own)) return own;
    json_decref(own);
    return NULL;
}

/* ---- replies ------------------------------------------------------------------------------------- */

/* Returns whether the answer ended by itself or at a stop string, and not at a limit. */
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

/* Returns the request's stop string that ended the answer; null if another cause ended it, or if the answer has
 * calls. */
static json_t *stop_text(const whit_ask *ask, bool calls)
{
    const whit_job *job = ask->jobs[0];
    return has_ended(job) && !calls && job->stopped_by ? json_string(job->stopped_by) : json_null();
}

static json_t *usage(const whit_ask *ask, uint32_t n_generated)
{
    const whit_job *job = ask->jobs[0];
    return json_pack("{s:I, s:I, s:I, s:I, s:n, s:n, s:n, s:n, s:n, s:n}", "input_tokens",
                     (json_int_t)(job->n_ids - job->n_cached), "output_tokens", (json_int_t)n_generated,
                     "cache_read_input_tokens", (json_int_t)job->n_cached, "cache_creation_input_tokens", (json_int_t)0,
                     "cache_creation", "inference_geo", "output_tokens_details", "server_tool_use", "service_tier",
                     "speed");
}

/* Makes the id of the i-th call; complete and streamed answers use the same ids. */
static json_t *call_id(const whit_ask *ask, uint32_t i)
{
    return json_sprintf("toolu_%s_%u", ask->id, (unsigned)i);
}

static json_t *whole_answer(whit_ask *ask, const json_t *choice)
{
    const json_t *message = json_object_get(choice, "message"), *text = json_object_get(message, "content");
    json_t *thinking = json_object_get(message, "reasoning_content"), *calls = json_object_get(message, "tool_calls");
    json_t *content = json_array();
    const char *reason = stop_reason(ask, json_array_size(calls) > 0);
    if (json_string_length(thinking))
        json_array_append_new(content,
                              json_pack("{s:s, s:O, s:s}", "type", "thinking", "thinking", thinking, "signature", ""));
    if (json_string_length(text))
        json_array_append_new(content, json_pack("{s:s, s:O, s:[]}", "type", "text", "text", text, "citations"));
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i), *function = json_object_get(call, "function");
        json_t *input = whit_dialect_arguments(json_object_get(function, "arguments"));
        json_array_append_new(content,
                              json_pack("{s:s, s:o, s:O, s:o, s:{s:s}}", "type", "tool_use", "id",
                                        call_id(ask, (uint32_t)i), "name", json_object_get(function, "name"), "input",
                                        input ? input : json_object(), "caller", "type", "direct"));
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:n, s:n, s:n}", "id", ask->id, "type", "message",
                     "role", "assistant", "model", ask->api->name, "content", content, "stop_reason", reason,
                     "stop_sequence", stop_text(ask, json_array_size(calls) > 0), "usage",
                     usage(ask, ask->jobs[0]->n_generated), "stop_details", "container", "diagnostics");
}

static void begin_stream(whit_ask *ask, whit_buf *out)
{
    json_t *counts = usage(ask, 0);
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

static void write_event(whit_ask *ask, const whit_chat_event *event, whit_buf *out)
{
    whit_dialect_state *state = &ask->state;
    json_t *text = whit_dialect_text(event->text, event->text_bytes), *delta = NULL;
    switch (event->kind) {
    case WHIT_CHAT_TEXT:
        if (!state->open || state->kind != WHIT_CHAT_TEXT)
            open_block(ask, WHIT_CHAT_TEXT, json_pack("{s:s, s:s, s:[]}", "type", "text", "text", "", "citations"),
                       out);
        delta = json_pack("{s:s, s:O}", "type", "text_delta", "text", text);
        break;
    case WHIT_CHAT_THINKING:
        if (!state->open || state->kind != WHIT_CHAT_THINKING)
            open_block(ask, WHIT_CHAT_THINKING,
                       json_pack("{s:s, s:s, s:s}", "type", "thinking", "thinking", "", "signature", ""), out);
        delta = json_pack("{s:s, s:O}", "type", "thinking_delta", "thinking", text);
        break;
    case WHIT_CHAT_CALL_BEGIN:
        state->n_calls++;
        open_block(ask, WHIT_CHAT_CALL_BEGIN,
                   json_pack("{s:s, s:o, s:O, s:{}, s:{s:s}}", "type", "tool_use", "id", call_id(ask, event->i_call),
                             "name", text, "input", "caller", "type", "direct"),
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

static void end_stream(whit_ask *ask, whit_buf *out)
{
    const char *reason = stop_reason(ask, ask->state.n_calls > 0);
    close_block(ask, out);
    whit_dialect_send(out,
                      json_pack("{s:s, s:{s:s, s:o, s:n, s:n}, s:o}", "type", "message_delta", "delta", "stop_reason",
                                reason, "stop_sequence", stop_text(ask, ask->state.n_calls > 0), "stop_details",
                                "container", "usage", usage(ask, ask->jobs[0]->n_generated)));
    whit_dialect_send(out, json_pack("{s:s}", "type", "message_stop"));
}

static void write_failure(whit_ask *ask, const whit_error *error, whit_buf *out)
{
    (void)ask;
    whit_dialect_send(
        out,
        json_pack("{s:s, s:{s:s, s:s}}", "type", "error", "error", "type", "api_error", "message", error->message));
}

static const whit_dialect dialect = {whole_answer, begin_stream, write_event, end_stream, write_failure};

void whit_anthropic_post(whit_call *call)
{
    json_t *own = whit_anthropic_read(call->body, false, call->reply);
    whit_ask *ask = whit_ask_open_own(call, own, NULL, true);
    if (!ask) return;
    ask->dialect = &dialect;
    ask->path = "messages";
    snprintf(ask->id, sizeof ask->id, "msg_%016llx", ask->number);
    whit_ask_reply(ask, call->reply);
}

void whit_anthropic_count(whit_call *call)
{
    json_t *own = whit_anthropic_read(call->body, true, call->reply);
    size_t n_tokens;
    if (own && whit_ask_count(call->api, own, &n_tokens, call->reply))
        whit_api_reply(call->reply, json_pack("{s:I}", "input_tokens", (json_int_t)n_tokens));
    json_decref(own);
}
