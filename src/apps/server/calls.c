/* SPDX-License-Identifier: MIT
 * Reads the tools of a request: which calls are allowed or required, and which grammar answers with calls must
 * follow. */
#include <stdlib.h>
#include <string.h>

#include "server/ask.h"
#include "server/fields.h"
#include "server/json_text.h"

enum { MOST_TOOLS = 200 };

static bool refuse_field(whit_web_reply *reply, const char *param, const char *what)
{
    whit_api_fail(reply, 400, "invalid_request_error", param, "%s: %s", param, what);
    return false;
}

/* Reads tool_choice: "none", "auto", "required", or one function by name. */
static bool read_choice(whit_ask_calls *calls, const json_t *choice, bool *none, whit_web_reply *reply)
{
    const char *word = json_string_value(choice), *type = json_string_value(json_object_get(choice, "type"));
    json_t *name = json_object_get(json_object_get(choice, "function"), "name");
    *none = word && !strcmp(word, "none");
    if (!choice || json_is_null(choice) || *none || (word && !strcmp(word, "auto"))) return true;
    calls->is_required = calls->is_held = true;
    if (json_is_string(name)) calls->name = name;
    return (word && !strcmp(word, "required")) || (type && !strcmp(type, "function") && calls->name) ||
        refuse_field(reply, "tool_choice",
                     "expected none, auto, required or {\"type\": \"function\", \"function\": {\"name\": ...}}");
}

bool whit_calls_read(whit_ask *ask, const json_t *body, whit_web_reply *reply)
{
    const json_t *tools = json_object_get(body, "tools"), *parallel = json_object_get(body, "parallel_tool_calls");
    whit_ask_calls calls = {.is_single = json_is_false(parallel)};
    const json_t *older = json_object_get(body, "functions"), *demanded = json_object_get(body, "function_call");
    bool none = false;
    if (json_array_size(older) || json_is_object(demanded))
        return whit_field_refuse(
            reply, json_array_size(older) ? "functions" : "function_call",
            "the older fields functions and function_call are not supported: send tools and tool_choice");
    if (tools && !json_is_null(tools) && !json_is_array(tools)) return refuse_field(reply, "tools", "expected a list");
    if (json_array_size(tools) > MOST_TOOLS) return refuse_field(reply, "tools", "expected at most 200 tools");
    if (parallel && !json_is_null(parallel) && !json_is_boolean(parallel))
        return refuse_field(reply, "parallel_tool_calls", "expected true or false");
    if (!read_choice(&calls, json_object_get(body, "tool_choice"), &none, reply)) return false;
    ask->tools = json_array_size(tools) > 0 && !none;
    if (!ask->tools && calls.is_required)
        return refuse_field(reply, "tool_choice",
                            "a call is required, but tools is empty: send tools, or another tool_choice");
    calls.is_held |= calls.is_single;
    for (size_t i = 0; i < json_array_size(tools); i++)
        calls.is_held |= json_is_true(json_object_get(json_object_get(json_array_get(tools, i), "function"), "strict"));
    /* A model whose chat template has no tools was not trained for calls, so a grammar ensures their form. */
    if (ask->api->chat && whit_chat_template_is_plain(ask->api->chat) && ask->api->vocabulary &&
        !json_object_get(body, "grammar"))
        calls.is_held = true;
    calls.is_held &= ask->tools;
    json_incref(calls.name);
    json_decref(ask->calls.name);
    ask->calls = calls;
    return true;
}

whit_status whit_calls_open(const whit_ask *ask, const json_t *body, const char *answer_schema, whit_grammar **grammar,
                            whit_error *error)
{
    whit_call_options options = whit_call_options_default();
    char *tools = whit_json_write(json_object_get(body, "tools"));
    options.tools = tools;
    options.tools_bytes = tools ? strlen(tools) : 0;
    options.name = json_string_value(ask->calls.name);
    options.choice = ask->calls.is_required ? WHIT_CALL_REQUIRED : WHIT_CALL_AUTO;
    options.single = ask->calls.is_single;
    options.answer_schema = answer_schema;
    options.answer_schema_bytes = answer_schema ? strlen(answer_schema) : 0;
    const whit_api *api = ask->api;
    whit_status status =
        whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                  "tool calls cannot be enforced with this model's tokenizer: use tool_choice auto, without strict");
    if (!tools)
        status = whit_fail_memory(error, "the tools of a request", 0);
    else if (api->vocabulary)
        status = whit_call_grammar_open(api->chat, ask->prompt,
                                        api->call_vocabulary ? api->call_vocabulary : api->vocabulary, &options,
                                        grammar, error);
    free(tools);
    return status;
}
