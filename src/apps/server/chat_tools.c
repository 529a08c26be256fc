/* SPDX-License-Identifier: MIT */
#include "server/chat_tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/dialect.h"
#include "server/json_text.h"
#include "server/responses.h"

static bool refuse_at(whit_web_reply *reply, const char *list, size_t i, const char *what)
{
    whit_api_fail(reply, 400, "invalid_request_error", list, "%s[%zu]%s", list, i, what);
    return false;
}

static bool has_type(const json_t *object, const char *type)
{
    const char *given = json_string_value(json_object_get(object, "type"));
    return given && !strcmp(given, type);
}

/* Returns the member "name" of a tool, a call or a tool_choice; NULL if absent. */
static json_t *name_in(const json_t *object)
{
    const json_t *within = json_object_get(object, has_type(object, "custom") ? "custom" : "function");
    json_t *name = json_object_get(within, "name");
    return json_is_string(name) ? name : NULL;
}

/* ---- tools ---------------------------------------------------------------------------------------- */

static bool read_tools(json_t *chat, json_t **kinds, whit_web_reply *reply)
{
    json_t *tools = json_object_get(chat, "tools"), *tool, *list = json_array();
    bool ok = true;
    size_t i;
    json_array_foreach(tools, i, tool)
    {
        const char *type = json_string_value(json_object_get(tool, "type"));
        if (type && whit_response_is_server_run(type)) continue;
        ok = name_in(tool) || refuse_at(reply, "tools", i, ": expected a function or a custom tool, with a name");
        if (!ok) break;
        if (has_type(tool, "custom")) {
            if (!*kinds) *kinds = json_object();
            ok = whit_response_custom_read(json_object_get(tool, "custom"), list, *kinds, reply);
        } else {
            ok = whit_response_may_offer(list, *kinds, name_in(tool), NULL, reply);
            json_array_append(list, tool);
        }
        if (!ok) break;
    }
    if (ok && json_is_array(tools)) json_object_set(chat, "tools", list);
    json_decref(list);
    return ok;
}

/* ---- tool_choice ---------------------------------------------------------------------------------- */

/* Returns a list of the items of `tools` that the list `allowed` names. */
static json_t *keep_allowed(const json_t *tools, const json_t *allowed)
{
    json_t *kept = json_array(), *tool, *one;
    size_t i, k;
    json_array_foreach((json_t *)tools, i, tool)
    {
        json_array_foreach((json_t *)allowed, k, one)
        {
            if (!json_equal(name_in(one), name_in(tool))) continue;
            json_array_append(kept, tool);
            break;
        }
    }
    return kept;
}

/* Converts a tool_choice that names a custom tool or a list of allowed tools; other values stay unchanged. */
static bool read_choice(json_t *chat, const json_t *kinds, whit_web_reply *reply)
{
    const json_t *choice = json_object_get(chat, "tool_choice"), *within = json_object_get(choice, "allowed_tools");
    json_t *name = name_in(choice), *mode = json_object_get(within, "mode");
    if (has_type(choice, "custom") && name && json_object_get(kinds, json_string_value(name)))
        json_object_set_new(chat, "tool_choice",
                            json_pack("{s:s, s:{s:O}}", "type", "function", "function", "name", name));
    if (!has_type(choice, "allowed_tools")) return true;
    if (!json_is_string(mode) || !json_is_array(json_object_get(within, "tools"))) {
        whit_api_fail(reply, 400, "invalid_request_error", "tool_choice",
                      "tool_choice.allowed_tools: expected a mode, auto or required, and a list of tools");
        return false;
    }
    json_t *kept = keep_allowed(json_object_get(chat, "tools"), json_object_get(within, "tools"));
    json_incref(mode);
    json_object_set_new(chat, "tools", kept);
    json_object_set_new(chat, "tool_choice", mode);
    return true;
}

/* ---- messages ------------------------------------------------------------------------------------- */

/* Converts a call of a custom tool to a call of a function; the caller owns the result. Returns NULL if it is not a
 * call of a custom tool, or lacks a member. */
static json_t *plain_call(const json_t *call)
{
    json_t *name = name_in(call), *input = json_object_get(json_object_get(call, "custom"), "input");
    if (!has_type(call, "custom") || !name || !json_is_string(input)) return NULL;
    json_t *arguments = json_pack("{s:O}", "input", input);
    char *text = whit_json_write(arguments);
    json_t *result = json_pack("{s:O*, s:s, s:{s:O, s:s}}", "id", json_object_get(call, "id"), "type", "function",
                               "function", "name", name, "arguments", text ? text : "");
    free(text);
    json_decref(arguments);
    return result;
}

static bool read_calls(json_t *message, size_t i_message, whit_web_reply *reply)
{
    json_t *calls = json_object_get(message, "tool_calls"), *call, *list = json_array();
    bool ok = true;
    size_t i;
    json_array_foreach(calls, i, call)
    {
        json_t *plain = plain_call(call);
        ok = plain || !has_type(call, "custom") ||
            refuse_at(reply, "messages", i_message, ".tool_calls: a custom call needs a name and an input, a text");
        if (!ok) break;
        json_array_append_new(list, plain ? plain : json_incref(call));
    }
    if (ok && json_is_array(calls)) json_object_set(message, "tool_calls", list);
    json_decref(list);
    return ok;
}

/* Converts one message of the request in place. last_id: the id made for the last call in the older form,
 * "function_call", to which a message with role "function" is the answer. */
static bool read_message(json_t *message, size_t i, char last_id[32], whit_web_reply *reply)
{
    const json_t *role = json_object_get(message, "role"), *older = json_object_get(message, "function_call");
    const json_t *sound = json_object_get(message, "audio");
    const char *name = role ? json_string_value(role) : NULL;
    if (name && !strcmp(name, "assistant") && sound && !json_is_null(sound))
        return refuse_at(reply, "messages", i, ".audio: this server stores no audio: send its transcript as content");
    if (name && !strcmp(name, "function")) {
        json_object_set_new(message, "role", json_string("tool"));
        json_object_set_new(message, "tool_call_id", json_string(last_id));
    }
    if (json_is_object(older) && !json_array_size(json_object_get(message, "tool_calls"))) {
        snprintf(last_id, 32, "call_%zu", i);
        json_object_set_new(message, "tool_calls",
                            json_pack("[{s:s, s:s, s:O}]", "id", last_id, "type", "function", "function", older));
        json_object_del(message, "function_call");
    }
    return read_calls(message, i, reply);
}

static bool read_messages(json_t *chat, whit_web_reply *reply)
{
    json_t *messages = json_object_get(chat, "messages"), *message;
    char last_id[32] = "";
    size_t i;
    if (!json_is_array(messages)) return true; /* whit_ask_render refuses messages that are not a list */
    json_t *list = json_array();
    bool ok = true;
    json_array_foreach(messages, i, message)
    {
        json_t *copy = json_copy(message);
        ok = read_message(copy, i, last_id, reply);
        json_array_append_new(list, copy);
        if (!ok) break;
    }
    if (ok) json_object_set(chat, "messages", list);
    json_decref(list);
    return ok;
}

json_t *whit_chat_tools_read(const json_t *body, json_t **kinds, whit_web_reply *reply)
{
    json_t *chat = json_copy((json_t *)body);
    *kinds = NULL;
    if (read_tools(chat, kinds, reply) && read_choice(chat, *kinds, reply) && read_messages(chat, reply)) return chat;
    json_decref(chat), json_decref(*kinds);
    *kinds = NULL;
    return NULL;
}

/* ---- answers -------------------------------------------------------------------------------------- */

bool whit_chat_is_custom(const json_t *kinds, const char *name, size_t n_name)
{
    return kinds && json_object_getn(kinds, name, n_name);
}

void whit_chat_name_custom(const json_t *kinds, json_t *calls)
{
    json_t *call;
    size_t i;
    json_array_foreach(calls, i, call)
    {
        const json_t *function = json_object_get(call, "function");
        json_t *name = name_in(call), *text = json_object_get(function, "arguments");
        if (!name || !whit_chat_is_custom(kinds, json_string_value(name), json_string_length(name))) continue;
        json_t *values = whit_dialect_arguments(text), *input = json_object_get(values, "input");
        /* The answer was cut off within the call, so its arguments are no complete object with "input". */
        if (!json_is_string(input)) input = text;
        json_object_set_new(call, "custom", json_pack("{s:O, s:O}", "name", name, "input", input));
        json_object_set_new(call, "type", json_string("custom"));
        json_object_del(call, "function");
        json_decref(values);
    }
}
