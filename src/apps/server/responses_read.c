/* SPDX-License-Identifier: MIT
 * Reads requests of OpenAI's Responses API: converts items to messages, and settings to those of a chat request. The
 * server stores no items, so it refuses references to stored ones. */
#include <stdio.h>
#include <string.h>

#include "server/dialect.h"
#include "server/fields.h"
#include "server/responses.h"

static bool refuse_field(whit_web_reply *reply, const char *param, const char *what)
{
    whit_api_fail(reply, 400, "invalid_request_error", param, "%s: %s", param, what);
    return false;
}

static bool refuse_item(whit_web_reply *reply, size_t i, const char *what)
{
    whit_api_fail(reply, 400, "invalid_request_error", "input", "input[%zu]: %s", i, what);
    return false;
}

/* ---- contents ------------------------------------------------------------------------------------ */

/* Appends the text of one part of a content, or of one command's output in a shell's result. */
static bool append_part(const json_t *part, size_t i, size_t k, whit_buf *out, whit_web_reply *reply)
{
    static const char *const keys[] = {"text", "refusal", "stdout"};
    const char *type = json_string_value(json_object_get(part, "type")), *why = "only parts with text are served";
    const json_t *errors = json_object_get(part, "stderr");
    for (size_t n = 0; n < sizeof keys / sizeof keys[0]; n++) {
        const json_t *text = json_object_get(part, keys[n]);
        if (!json_is_string(text)) continue;
        bool ok = whit_buf_append(out, json_string_value(text), json_string_length(text));
        if (json_string_length(errors))
            ok = ok && whit_buf_append(out, json_string_value(errors), json_string_length(errors));
        return ok || whit_api_fail_memory(reply);
    }
    if (type && !strcmp(type, "input_image")) why = "an image, but only text is supported: leave the part out";
    if (type && !strcmp(type, "input_file")) why = "a file, but only text is supported: send its text";
    if (type && !strcmp(type, "input_audio")) why = "a sound, but only text is supported: leave the part out";
    whit_api_fail(reply, 400, "invalid_request_error", "input", "input[%zu].content[%zu]: %s", i, k, why);
    return false;
}

/* Returns the text of a content, which is a string or a list of parts. Returns NULL after refusing the content. */
static json_t *content_text(const json_t *content, size_t i, whit_web_reply *reply)
{
    whit_buf text = {0};
    if (json_is_string(content)) return json_incref((json_t *)content);
    if (content && !json_is_null(content) && !json_is_array(content)) {
        refuse_item(reply, i, "content: expected a text or a list of parts");
        return NULL;
    }
    for (size_t k = 0; k < json_array_size(content); k++)
        if (!append_part(json_array_get(content, k), i, k, &text, reply)) {
            whit_buf_free(&text);
            return NULL;
        }
    json_t *whole = whit_dialect_text(text.data, text.size_bytes);
    whit_buf_free(&text);
    return whole;
}

/* ---- items --------------------------------------------------------------------------------------- */

/* Adds a call to the messages; takes ownership of it. If the last message is the assistant's, the call becomes part of
 * it; otherwise of a new message. */
static void add_call(json_t *messages, json_t *call)
{
    json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    if (role && !strcmp(role, "assistant")) {
        json_t *calls = json_object_get(last, "tool_calls");
        if (!calls) json_object_set_new(last, "tool_calls", calls = json_array());
        json_array_append_new(calls, call);
        return;
    }
    json_array_append_new(messages,
                          json_pack("{s:s, s:s, s:[o]}", "role", "assistant", "content", "", "tool_calls", call));
}

/* Adds a message with this role, call id (may be NULL) and content. Returns false after refusing the content. */
static bool add_message(json_t *messages, const char *role, const json_t *id, const json_t *content, size_t i,
                        whit_web_reply *reply)
{
    json_t *text = content_text(content, i, reply);
    if (!text) return false;
    json_array_append_new(messages, json_pack("{s:s, s:O*, s:o}", "role", role, "tool_call_id", id, "content", text));
    return true;
}

/* Returns whether an item can be omitted from the messages: thinking, and records of tools that OpenAI's server ran, if
 * they have no results. */
static bool is_passed_over(const char *type, const json_t *item)
{
    static const struct {
        const char *type, *result; /* result: name of the member with results; NULL: records of this type have no
                                    * results */
    } notes[] = {{"reasoning", NULL},
                 {"web_search_call", NULL},
                 {"mcp_list_tools", NULL},
                 {"file_search_call", "results"},
                 {"code_interpreter_call", "outputs"},
                 {"image_generation_call", "result"}};
    for (size_t i = 0; i < sizeof notes / sizeof notes[0]; i++)
        if (!strcmp(type, notes[i].type))
            return !notes[i].result || !whit_field_is_given(json_object_get(item, notes[i].result));
    return false;
}

static bool read_item(const json_t *item, size_t i, json_t *messages, whit_web_reply *reply)
{
    const char *type = json_string_value(json_object_get(item, "type")), *key;
    const char *role = json_string_value(json_object_get(item, "role"));
    json_t *call;
    if (!type || !strcmp(type, "message"))
        return role ? add_message(messages, role, NULL, json_object_get(item, "content"), i, reply)
                    : refuse_item(reply, i, "a message needs a role, such as user");
    if (whit_response_call_read(item, &call)) {
        if (call) add_call(messages, call);
        return call || refuse_item(reply, i, "a call needs call_id, name and its arguments, input or action");
    }
    if (whit_response_result_read(item, &key)) {
        const json_t *id = json_object_get(item, "call_id");
        if (!json_is_string(id)) id = json_object_get(item, "id");
        return json_is_string(id) ? add_message(messages, "tool", id, json_object_get(item, key), i, reply)
                                  : refuse_item(reply, i, "the output of a call needs its call_id");
    }
    if (!strcmp(type, "item_reference"))
        return refuse_item(reply, i, "this server stores no items: send the item itself");
    if (is_passed_over(type, item)) return true; /* templates do not write earlier thinking */
    whit_api_fail(reply, 400, "invalid_request_error", "input",
                  "input[%zu]: an item of the type %.60s; messages, calls of functions, custom tools and shells, their "
                  "outputs and reasoning are served",
                  i, type);
    return false;
}

static bool read_input(const json_t *body, json_t *messages, whit_web_reply *reply)
{
    const json_t *input = json_object_get(body, "input"), *instructions;
    if (!whit_field_text(body, "instructions", &instructions, reply)) return false;
    if (json_string_length(instructions))
        json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "system", "content", instructions));
    if (json_is_string(input)) {
        json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "user", "content", input));
        return true;
    }
    if (!json_array_size(input)) return refuse_field(reply, "input", "expected a text or a list of items");
    for (size_t i = 0; i < json_array_size(input); i++)
        if (!read_item(json_array_get(input, i), i, messages, reply)) return false;
    return true;
}

/* ---- settings ------------------------------------------------------------------------------------ */

static bool read_format(const json_t *body, json_t *own, whit_web_reply *reply)
{
    const json_t *text, *format;
    if (!whit_field_object(body, "text", &text, reply) || !whit_field_object(text, "format", &format, reply))
        return false;
    const char *type = json_string_value(json_object_get(format, "type"));
    if (!type) return !format || refuse_field(reply, "text", "format: expected an object with a type");
    if (!strcmp(type, "json_schema"))
        json_object_set_new(
            own, "response_format",
            json_pack("{s:s, s:{s:O}}", "type", type, "json_schema", "schema",
                      json_object_get(format, "schema") ? json_object_get(format, "schema") : json_null()));
    else
        json_object_set_new(own, "response_format", json_pack("{s:s}", "type", type));
    return true;
}

/* Checks `include`. Most values name parts that answers never have here, and are ignored. Log-probabilities are
 * refused, because the client would miss them. */
static bool check_included(const json_t *body, whit_web_reply *reply)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(body, "include"), i, one)
    {
        const char *name = json_string_value(one);
        if (name && !strcmp(name, "message.output_text.logprobs"))
            return refuse_field(reply, "include",
                                "log-probabilities are not supported by this API; /v1/chat/completions has them");
    }
    return true;
}

json_t *whit_responses_read(const json_t *body, json_t **kinds, whit_web_reply *reply)
{
    static const char *const same[] = {
        "model",    "temperature", "top_p",   "stream",           "seed", "grammar", "parallel_tool_calls",
        "adapters", "lora",        "program", "timings_per_token"};
    json_t *own = json_object(), *messages = json_array();
    *kinds = json_object();
    const json_t *most = json_object_get(body, "max_output_tokens"), *reasoning, *effort_text;
    static const whit_field_unserved missing[] = {
        {"previous_response_id", "this server stores no conversations; send the earlier messages in input"},
        {"conversation", "this server stores no conversations; send the earlier messages in input"},
        {"prompt", "this server stores no prompts; send the prompt's text in input or instructions"},
        {"background", "answers in the background are not supported; leave the field out, or stream"},
        {"top_logprobs", "this API gives no log-probabilities; /v1/chat/completions does"},
        {NULL, NULL}};
    bool ok = whit_fields_lack(body, missing, reply) && check_included(body, reply) &&
        whit_field_object(body, "reasoning", &reasoning, reply) &&
        whit_field_text(reasoning, "effort", &effort_text, reply);
    const char *effort = ok ? json_string_value(effort_text) : NULL;
    ok = ok && read_input(body, messages, reply) && whit_response_tools_read(body, own, *kinds, reply) &&
        read_format(body, own, reply);
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
    json_decref(own), json_decref(*kinds);
    *kinds = NULL;
    return NULL;
}
