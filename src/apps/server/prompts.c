/* SPDX-License-Identifier: MIT
 * Renders the messages of a request as a prompt, by the model's chat template. */
#include <stdlib.h>
#include <string.h>

#include "server/ask.h"
#include "base/items.h"
#include "server/fields.h"
#include "server/json_text.h"

/* Returns the template's variables: chat_template_kwargs, and OpenAI's reasoning_effort. The caller owns them.
 * *thinking gets the value of enable_thinking, which is removed from the variables; without it, OFF if the effort is
 * "none", else AUTO. Returns NULL after refusing the request. */
static json_t *read_variables(const json_t *body, whit_thinking *thinking, whit_web_reply *reply)
{
    const json_t *given, *effort;
    if (!whit_field_object(body, "chat_template_kwargs", &given, reply) ||
        !whit_field_text(body, "reasoning_effort", &effort, reply))
        return NULL;
    json_t *own = given ? json_copy((json_t *)given) : json_object();
    const json_t *think = json_object_get(own, "enable_thinking");
    *thinking = WHIT_THINKING_AUTO;
    if (json_is_string(effort) && !json_object_get(own, "reasoning_effort"))
        json_object_set(own, "reasoning_effort", (json_t *)effort);
    if (json_is_string(effort) && !strcmp(json_string_value(effort), "none")) *thinking = WHIT_THINKING_OFF;
    if (json_is_boolean(think)) {
        *thinking = json_is_true(think) ? WHIT_THINKING_ON : WHIT_THINKING_OFF;
        json_object_del(own, "enable_thinking");
    }
    return own;
}

/* ---- rendering ----------------------------------------------------------------------------------- */

/* JSON texts that a template needs. */
struct texts {
    char *tools, *variables; /* NULL if the request has no such text */
    whit_chat_request request;
};

static whit_status render(const whit_api *api, struct texts *texts, const json_t *messages, whit_chat_prompt **prompt,
                          whit_error *error)
{
    char *text = whit_json_write(messages);
    *prompt = NULL;
    if (!text) return whit_fail_memory(error, "the messages of a request", 0);
    texts->request.messages = text;
    texts->request.messages_bytes = strlen(text);
    whit_status status = whit_chat_render(api->chat, &texts->request, prompt, error);
    free(text);
    return status;
}

/* Rendering is assumed to need RENDER_BYTES bytes of memory per byte of the request: for values, text, ranges and
 * tokens. */
enum { RENDER_BYTES = 12 };

static bool claim_rendering(const struct texts *texts, const json_t *messages, whit_web_reply *reply)
{
    size_t n = json_dumpb(messages, NULL, 0, JSON_COMPACT) + texts->request.tools_bytes;
    return whit_reply_claim(reply, RENDER_BYTES * (n + texts->request.variables_bytes));
}

/* Returns a copy of the messages in which the text parts of the last one are joined without line feeds, because the
 * model will continue it. The caller owns the result. */
static json_t *join_last_parts(const json_t *messages)
{
    json_t *list = json_copy((json_t *)messages), *last = json_array_get(list, json_array_size(list) - 1);
    const json_t *parts = json_object_get(last, "content");
    whit_buf text = {0};
    bool ok = json_is_array(parts);
    for (size_t i = 0; ok && i < json_array_size(parts); i++) {
        const json_t *own = json_object_get(json_array_get(parts, i), "text");
        ok = json_is_string(own) && whit_buf_append(&text, json_string_value(own), json_string_length(own));
    }
    if (ok) {
        json_t *joined = json_copy(last);
        json_object_set_new(joined, "content", json_stringn(text.data ? whit_chars(&text) : "", text.size_bytes));
        json_array_set_new(list, json_array_size(list) - 1, joined);
    }
    whit_buf_free(&text);
    return list;
}

bool whit_ask_render(const whit_api *api, const json_t *body, bool with_tools, whit_chat_prompt **prompt,
                     whit_web_reply *reply)
{
    const json_t *messages = json_object_get(body, "messages"), *tools = json_object_get(body, "tools");
    if (!api->chat)
        return whit_field_refuse(
            reply, "messages",
            "the model has no chat template; use /v1/completions, or start the server with --chat-template");
    if (!json_is_array(messages) || json_array_size(messages) == 0)
        return whit_field_refuse(reply, "messages", "expected a list of messages");
    struct texts texts = {.request = whit_chat_request_default()};
    json_t *variables = read_variables(body, &texts.request.thinking, reply);
    if (!variables) return false;
    if (with_tools) texts.tools = whit_json_write(tools);
    if (json_object_size(variables)) texts.variables = whit_json_write(variables);
    json_decref(variables);
    whit_error error;
    texts.request.tools = texts.tools;
    texts.request.tools_bytes = texts.tools ? strlen(texts.tools) : 0;
    texts.request.variables = texts.variables;
    texts.request.variables_bytes = texts.variables ? strlen(texts.variables) : 0;
    bool begins_answer = true;
    bool ok = whit_field_switch(body, "continue_final_message", &texts.request.continue_last, reply) &&
        whit_field_switch(body, "add_generation_prompt", &begins_answer, reply) &&
        claim_rendering(&texts, messages, reply);
    texts.request.no_answer = !begins_answer;
    json_t *joined = ok && texts.request.continue_last ? join_last_parts(messages) : NULL;
    whit_status status = WHIT_OK;
    if (ok) status = render(api, &texts, joined ? joined : messages, prompt, &error);
    json_decref(joined);
    free(texts.tools);
    free(texts.variables);
    if (status != WHIT_OK) whit_api_fail(reply, 400, "invalid_request_error", "messages", "%s", error.message);
    return ok && status == WHIT_OK;
}
