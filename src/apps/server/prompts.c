/* SPDX-License-Identifier: MIT
 * Messages into prompts, and system messages at places where a template takes none. */
#include <stdlib.h>
#include <string.h>

#include "server/ask.h"
#include "server/fields.h"
#include "server/json_text.h"

/* The variables of a template: chat_template_kwargs, OpenAI's reasoning_effort. NULL: refused. */
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

/* ---- system messages ------------------------------------------------------------------------------ */

/* Coding agents put system messages between the others, which some templates refuse and others leave out: there they
 * are read as the person's. */

static bool has_role(const json_t *message, const char *role)
{
    const char *own = json_string_value(json_object_get(message, "role"));
    return own && !strcmp(own, role);
}

static bool is_system(const json_t *message)
{
    return has_role(message, "system") || has_role(message, "developer");
}

/* Counts the system messages at the beginning of the list. */
static size_t count_first(const json_t *messages)
{
    size_t n = 0;
    while (is_system(json_array_get(messages, n))) n++;
    return n;
}

/* Does the prompt contain the text, without the blanks around it that templates trim? */
static bool prompt_has(const whit_chat_prompt *prompt, const json_t *text)
{
    size_t n_prompt, n = json_string_length(text);
    const char *whole = whit_chat_prompt_text(prompt, &n_prompt), *begin = json_string_value(text);
    while (n && strchr(" \t\r\n", begin[n - 1])) n--;
    while (n && strchr(" \t\r\n", *begin)) begin++, n--;
    return !n || memmem(whole, n_prompt, begin, n) != NULL;
}

/* Whether the prompt has the texts of all system messages after the first others. */
static bool has_late_texts(const whit_chat_prompt *prompt, const json_t *messages)
{
    for (size_t i = count_first(messages); i < json_array_size(messages); i++) {
        const json_t *message = json_array_get(messages, i), *content = json_object_get(message, "content");
        if (is_system(message) && json_is_string(content) && !prompt_has(prompt, content)) return false;
    }
    return true;
}

/* Joins a message to the last one of the list, where both are texts of the person. */
static bool join_last(json_t *list, const json_t *message)
{
    json_t *last = json_array_get(list, json_array_size(list) - 1), *first = json_object_get(last, "content");
    const json_t *second = json_object_get(message, "content");
    if (!has_role(last, "user") || !json_is_string(first) || !json_is_string(second)) return false;
    json_object_set_new(last, "content", json_sprintf("%s\n\n%s", json_string_value(first), json_string_value(second)));
    return true;
}

/* A copy in which system messages from the n_kept-th message on are the person's, each joined to the person's message
 * before or after it: many templates want roles to alternate. NULL: out of memory. */
static json_t *as_persons(const json_t *messages, size_t n_kept)
{
    json_t *list = json_array();
    bool was_system = false;
    for (size_t i = 0; list && i < json_array_size(messages); i++) {
        json_t *message = json_copy(json_array_get(messages, i));
        bool turned = i >= n_kept && is_system(message);
        if (turned) json_object_set_new(message, "role", json_string("user"));
        if (!(turned || (was_system && has_role(message, "user"))) || !join_last(list, message))
            json_array_append(list, message);
        was_system = turned || (was_system && has_role(message, "user"));
        json_decref(message);
    }
    return list;
}

/* ---- rendering ----------------------------------------------------------------------------------- */

/* The texts of a request to the template. */
struct texts {
    char *tools, *variables; /* NULL: none */
    whit_chat_request request;
};

static whit_status render(const whit_api *api, struct texts *texts, const json_t *messages, whit_chat_prompt **prompt,
                          whit_error *error)
{
    char *text = whit_json_write(messages);
    *prompt = NULL;
    if (!text) return whit_fail(error, WHIT_ERROR_MEMORY, "out of memory");
    texts->request.messages = text;
    texts->request.messages_bytes = strlen(text);
    whit_status status = whit_chat_render(api->chat, &texts->request, prompt, error);
    free(text);
    return status;
}

/* Renders the messages as they are. If that fails or loses late system messages, these are given as the person's; if
 * that fails, too, all system messages are. */
static whit_status render_somehow(const whit_api *api, struct texts *texts, const json_t *messages,
                                  whit_chat_prompt **prompt, whit_error *error)
{
    whit_error ignored;
    size_t n_first = count_first(messages), n_system = 0, n_late = 0;
    for (size_t i = 0; i < json_array_size(messages); i++) n_system += is_system(json_array_get(messages, i));
    n_late = n_system - n_first;
    whit_status status = render(api, texts, messages, prompt, error);
    if (status == WHIT_OK && (!n_late || has_late_texts(*prompt, messages))) return WHIT_OK;
    for (int all = !n_late; all < 2 && n_system; all++) {
        whit_chat_prompt *other;
        json_t *turned = as_persons(messages, all ? 0 : n_first);
        whit_status next = render(api, texts, turned, &other, &ignored);
        json_decref(turned);
        if (next != WHIT_OK) continue;
        whit_chat_prompt_close(*prompt);
        *prompt = other;
        return WHIT_OK;
    }
    return status;
}

/* Bytes that rendering takes for each byte of a request: values, the text, its ranges and its tokens. */
enum { RENDER_BYTES = 12 };

static bool claim_rendering(const struct texts *texts, const json_t *messages, whit_web_reply *reply)
{
    size_t n = json_dumpb(messages, NULL, 0, JSON_COMPACT) + texts->request.tools_bytes;
    return whit_reply_claim(reply, RENDER_BYTES * (n + texts->request.variables_bytes));
}

/* A last message that is to be continued has its parts joined without a line feed between them. The caller's. */
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
        json_object_set_new(joined, "content", json_stringn(text.data ? (const char *)text.data : "", text.size_bytes));
        json_array_set_new(list, json_array_size(list) - 1, joined);
    }
    whit_buf_free(&text);
    return list;
}

bool whit_ask_render(const whit_api *api, const json_t *body, bool with_tools, whit_chat_prompt **prompt,
                     whit_web_reply *reply)
{
    const json_t *messages = json_object_get(body, "messages"), *tools = json_object_get(body, "tools");
    if (!api->chat) return whit_field_refuse(reply, "messages", "the model has no chat template; use /v1/completions");
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
    whit_status status = ok ? render_somehow(api, &texts, joined ? joined : messages, prompt, &error) : WHIT_OK;
    json_decref(joined);
    free(texts.tools);
    free(texts.variables);
    if (status != WHIT_OK) whit_api_fail(reply, 400, "invalid_request_error", "messages", "%s", error.message);
    return ok && status == WHIT_OK;
}
