/* SPDX-License-Identifier: MIT
 * Asks a model at an endpoint. A server may refuse the member "tools" because its template lacks them or an option
 * is off. The system message then describes the tools, and the model calls them by JSON in its text. */
#include "agent/model.h"
#include "agent/plain.h"

#include "endpoint/stream.h"

#include <stdlib.h>
#include <string.h>

static whit_status post(whit_remote_model *remote, const json_t *messages, const json_t *tools, json_t **answer,
                        whit_error *error)
{
    json_t *request = json_pack("{s:O, s:O*, s:b, s:{s:b}, s:s*}", "messages", messages, "tools",
                                json_array_size(tools) ? tools : NULL, "stream", 1, "stream_options", "include_usage",
                                1, "model", remote->name);
    char *body = request ? json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    if (!body) return whit_fail_memory(error, "a request", 0);
    whit_sse stream = {.on_text = remote->takes_no_tools ? NULL : remote->on_text, .user = remote->user};
    const whit_endpoint_sink sink = whit_sse_sink(&stream);
    whit_status status = whit_endpoint_post(remote->endpoint, body, strlen(body), &sink, error);
    free(body);
    if (status == WHIT_OK) status = whit_sse_finish(&stream, answer, error);
    whit_sse_free(&stream);
    return status;
}

/* Parses the text of an answer into calls or text, and passes text to on_text. An answer without a message stays
 * unchanged. */
static whit_status read_plain(whit_remote_model *remote, json_t *answer, whit_error *error)
{
    json_t *choice = json_array_get(json_object_get(answer, "choices"), 0);
    const json_t *said = json_object_get(choice, "message"), *text = json_object_get(said, "content");
    bool is_formed;
    if (!json_is_object(said)) return WHIT_OK;
    json_t *message =
        whit_plain_answer(json_string_value(text), json_string_length(text), ++remote->n_answers, &is_formed);
    const json_t *shown = json_object_get(message, "content");
    if (json_string_length(shown) && remote->on_text)
        remote->on_text(remote->user, json_string_value(shown), json_string_length(shown));
    if (message && json_object_set_new(choice, "message", message) == 0) return WHIT_OK;
    return whit_fail_memory(error, "an answer", 0);
}

static whit_status post_plain(whit_remote_model *remote, const json_t *messages, const json_t *tools, json_t **answer,
                              whit_error *error)
{
    json_t *plain = whit_plain_messages(messages, tools);
    whit_status status = plain ? post(remote, plain, NULL, answer, error) : whit_fail_memory(error, "the messages", 0);
    json_decref(plain);
    return status == WHIT_OK ? read_plain(remote, *answer, error) : status;
}

/* Returns whether the error is the server's refusal of tools. */
static bool refuses_tools(whit_status status, const whit_error *error)
{
    const char *said = status == WHIT_ERROR_IO ? strstr(error->message, "the server says ") : NULL;
    return said && strcasestr(said, "tool");
}

static whit_status ask_endpoint(void *user, const json_t *messages, const json_t *tools, json_t **answer,
                                whit_error *error)
{
    whit_remote_model *remote = user;
    whit_error said;
    *answer = NULL;
    if (remote->takes_no_tools) return post_plain(remote, messages, tools, answer, error);
    whit_status status = post(remote, messages, tools, answer, &said);
    if (json_array_size(tools) && refuses_tools(status, &said)) {
        remote->takes_no_tools = true;
        status = post_plain(remote, messages, tools, answer, error);
        if (status == WHIT_OK && remote->on_note) remote->on_note(said.message);
        /* if the request without tools failed too, tools were not the cause */
        remote->takes_no_tools = status == WHIT_OK;
    } else if (status != WHIT_OK && error) {
        *error = said;
    }
    return status;
}

whit_agent_model whit_remote_as_model(whit_remote_model *remote)
{
    return (whit_agent_model){.ask = ask_endpoint, .user = remote};
}
