/* SPDX-License-Identifier: MIT
 * Converts the tools of the Responses API. The model is offered functions only; the table lists how other kinds of
 * tools are offered, and how their calls are converted back.
 *
 *     function in a namespace   the function NAMESPACE__NAME
 *     custom                    a function with one string parameter, `input`
 *     local_shell, shell, ...   a function of that name; its arguments become a member of the item */
#include <stdlib.h>
#include <string.h>

#include "base/phrase.h"
#include "server/dialect.h"
#include "server/json_text.h"
#include "server/responses.h"

static bool refuse_field(whit_web_reply *reply, const char *param, const char *what)
{
    whit_api_fail(reply, 400, "invalid_request_error", param, "%s: %s", param, what);
    return false;
}

/* Tools that the client runs and for which the vendor defines the schema. member: the member of a call's item that has
 * the arguments; least: what this member must contain at least, even if the call is incomplete. */
static const struct {
    const char *type, *call, *output, *member, *least, *about, *schema;
} known[] = {
    {"local_shell", "local_shell_call", "local_shell_call_output", "action",
     "{\"type\":\"exec\",\"command\":[],\"env\":{}}", "Runs a command on the person's machine.",
     "{\"type\":\"object\",\"properties\":{\"command\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
     "\"working_directory\":{\"type\":\"string\"},\"timeout_ms\":{\"type\":\"integer\"}},\"required\":[\"command\"]}"},
    {"shell", "shell_call", "shell_call_output", "action",
     "{\"commands\":[],\"timeout_ms\":null,\"max_output_length\":null}",
     "Runs commands in a shell on the person's machine.",
     "{\"type\":\"object\",\"properties\":{\"commands\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
     "\"timeout_ms\":{\"type\":\"integer\"},\"max_output_length\":{\"type\":\"integer\"}},\"required\":[\"commands\"]"
     "}"},
    {"apply_patch", "apply_patch_call", "apply_patch_call_output", "operation",
     "{\"type\":\"update_file\",\"path\":\"\",\"diff\":\"\"}",
     "Creates, changes or deletes a file; `diff` is in the V4A form.",
     "{\"type\":\"object\",\"properties\":{\"type\":{\"enum\":[\"create_file\",\"update_file\",\"delete_file\"]},"
     "\"path\":{\"type\":\"string\"},\"diff\":{\"type\":\"string\"}},\"required\":[\"type\",\"path\"]}"},
};
enum { N_KNOWN = sizeof known / sizeof known[0] };

/* Tools that the vendor's server runs itself are ignored, as if the model did not call them. */
static const char *const server_run[] = {
    "web_search",  "web_search_preview", "web_search_2025_08_26", "web_search_preview_2025_03_11",
    "file_search", "code_interpreter",   "image_generation",      "mcp",
    "tool_search"};

bool whit_response_is_server_run(const char *type)
{
    for (size_t i = 0; i < sizeof server_run / sizeof server_run[0]; i++)
        if (!strcmp(type, server_run[i])) return true;
    return false;
}

static const char *type_of(const json_t *object)
{
    const char *type = json_string_value(json_object_get(object, "type"));
    return whit_or_empty(type);
}

static int find_known(const char *type)
{
    for (int i = 0; i < N_KNOWN; i++)
        if (!strcmp(type, known[i].type)) return i;
    return -1;
}

/* Returns the name under which a function of a namespace (may be empty) is offered to the model. */
static json_t *offered_name(const json_t *space, const json_t *name)
{
    return json_string_length(space) ? json_sprintf("%s__%s", json_string_value(space), json_string_value(name))
                                     : json_incref((json_t *)name);
}

/* ---- reading tools ------------------------------------------------------------------------------- */

static const json_t *offered(const json_t *list, const json_t *name)
{
    size_t i;
    json_t *tool;
    json_array_foreach((json_t *)list, i, tool)
    {
        if (name && json_equal(json_object_get(json_object_get(tool, "function"), "name"), name)) return tool;
    }
    return NULL;
}

bool whit_response_may_offer(const json_t *list, const json_t *kinds, const json_t *name, const json_t *kind,
                             whit_web_reply *reply)
{
    const json_t *before = json_object_get(kinds, json_string_value(name));
    if (!offered(list, name) || (!before && !kind) || json_equal(before, kind)) return true;
    whit_api_fail(reply, 400, "invalid_request_error", "tools",
                  "tools: two tools would have the name %.100s: rename one of them", json_string_value(name));
    return false;
}

/* Adds a function to the list. Takes ownership of `name` and `function`. */
static void add_function(json_t *list, json_t *name, json_t *function)
{
    json_object_set_new(function, "name", name);
    json_array_append_new(list, json_pack("{s:s, s:o}", "type", "function", "function", function));
}

static bool read_function(const json_t *tool, const json_t *space, json_t *list, json_t *kinds, whit_web_reply *reply)
{
    static const char *const parts[] = {"description", "parameters", "strict"};
    const json_t *name = json_object_get(tool, "name");
    if (!json_is_string(name)) return false;
    json_t *own_name = offered_name(space, name), *kind = NULL;
    if (json_string_length(space))
        kind = json_pack("{s:s, s:O, s:O}", "type", "namespace", "namespace", space, "name", name);
    if (!whit_response_may_offer(list, kinds, own_name, kind, reply)) {
        json_decref(own_name);
        json_decref(kind);
        return false;
    }
    json_t *function = json_object();
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
        json_t *part = json_object_get(tool, parts[k]);
        if (part && !json_is_null(part)) json_object_set(function, parts[k], part);
    }
    if (kind) json_object_set_new(kinds, json_string_value(own_name), kind);
    add_function(list, own_name, function);
    return true;
}

bool whit_response_custom_read(const json_t *tool, json_t *list, json_t *kinds, whit_web_reply *reply)
{
    json_t *name = json_object_get(tool, "name");
    const json_t *format = json_object_get(tool, "format"), *about = json_object_get(tool, "description");
    if (json_is_object(json_object_get(format, "grammar"))) format = json_object_get(format, "grammar");
    const json_t *definition = json_object_get(format, "definition"), *syntax = json_object_get(format, "syntax");
    whit_buf text = {0};
    if (!json_is_string(name)) return false;
    json_t *kind = json_pack("{s:s, s:O}", "type", "custom", "name", name);
    if (!whit_response_may_offer(list, kinds, name, kind, reply)) {
        json_decref(kind);
        return false;
    }
    if (json_is_string(about)) whit_buf_append(&text, json_string_value(about), json_string_length(about));
    if (json_is_string(definition)) {
        const char *form =
            json_is_string(syntax) && !strcmp(json_string_value(syntax), "regex") ? "regular expression" : "grammar";
        whit_buf_printf(&text, "%sThe input follows this %s:\n%s", text.size_bytes ? "\n" : "", form,
                        json_string_value(definition));
    }
    json_object_set_new(kinds, json_string_value(name), kind);
    add_function(list, json_incref(name),
                 json_pack("{s:o, s:{s:s, s:{s:{s:s}}, s:[s], s:b}}", "description",
                           whit_dialect_text(text.data, text.size_bytes), "parameters", "type", "object", "properties",
                           "input", "type", "string", "required", "input", "additionalProperties", 0));
    whit_buf_free(&text);
    return true;
}

static bool read_tool(const json_t *tool, size_t i, json_t *list, json_t *kinds, whit_web_reply *reply)
{
    const char *type = type_of(tool);
    int k = find_known(type);
    bool ok = false;
    if (!strcmp(type, "function"))
        ok = read_function(tool, NULL, list, kinds, reply);
    else if (!strcmp(type, "custom"))
        ok = whit_response_custom_read(tool, list, kinds, reply);
    else if (!strcmp(type, "namespace")) {
        const json_t *within = json_object_get(tool, "tools"), *space = json_object_get(tool, "name");
        ok = json_is_string(space) && json_is_array(within);
        for (size_t n = 0; ok && n < json_array_size(within); n++) {
            const json_t *one = json_array_get(within, n);
            ok = !strcmp(type_of(one), "function") ? read_function(one, space, list, kinds, reply)
                                                   : read_tool(one, i, list, kinds, reply);
            if (!ok && reply->status) return false;
        }
    } else if (k >= 0) {
        json_t *name = json_string(known[k].type), *kind = json_pack("{s:O}", "type", name);
        ok = whit_response_may_offer(list, kinds, name, kind, reply);
        if (ok) json_object_set(kinds, known[k].type, kind);
        if (ok)
            add_function(list, json_incref(name),
                         json_pack("{s:s, s:o}", "description", known[k].about, "parameters",
                                   json_loads(known[k].schema, 0, NULL)));
        json_decref(name);
        json_decref(kind);
    } else if (whit_response_is_server_run(type)) {
        ok = true;
    }
    if (ok || reply->status) return ok;
    whit_api_fail(reply, 400, "invalid_request_error", "tools",
                  "tools[%zu]: expected a function or custom tool with a name, a namespace of them, local_shell, shell "
                  "or apply_patch, not %.60s",
                  i, *type ? type : "a tool without a type");
    return false;
}

/* ---- tool_choice --------------------------------------------------------------------------------- */

/* Returns the name under which the chosen tool is offered; NULL if such tools are never offered. */
static json_t *chosen_name(const json_t *choice)
{
    const char *type = type_of(choice);
    const json_t *name = json_object_get(choice, "name");
    if (json_is_string(name) && (!strcmp(type, "function") || !strcmp(type, "custom") || !*type))
        return offered_name(json_object_get(choice, "namespace"), name);
    return find_known(type) >= 0 ? json_string(type) : NULL;
}

/* Removes all tools that a choice of type "allowed_tools" does not list, and sets tool_choice to the choice's mode.
 * Returns false after refusing a choice without a list. */
static bool keep_allowed(const json_t *choice, json_t **list, json_t *chat, whit_web_reply *reply)
{
    const json_t *names = json_object_get(choice, "tools"), *mode = json_object_get(choice, "mode");
    json_t *kept = json_array();
    for (size_t i = 0; i < json_array_size(names); i++) {
        json_t *name = chosen_name(json_array_get(names, i));
        const json_t *tool = offered(*list, name);
        if (tool) json_array_append(kept, (json_t *)tool);
        json_decref(name);
    }
    json_decref(*list);
    *list = kept;
    if (json_is_string(mode)) json_object_set(chat, "tool_choice", (json_t *)mode);
    return json_array_size(names) || refuse_field(reply, "tool_choice", "allowed_tools needs a list of tools");
}

static bool read_choice(const json_t *body, json_t **list, json_t *chat, whit_web_reply *reply)
{
    json_t *choice = json_object_get(body, "tool_choice");
    if (!choice || json_is_null(choice)) return true;
    if (!json_is_object(choice)) {
        json_object_set(chat, "tool_choice", choice);
        return true;
    }
    if (!strcmp(type_of(choice), "allowed_tools")) return keep_allowed(choice, list, chat, reply);
    json_t *name = chosen_name(choice);
    bool ok = name && offered(*list, name);
    if (ok)
        json_object_set_new(chat, "tool_choice",
                            json_pack("{s:s, s:{s:O}}", "type", "function", "function", "name", name));
    json_decref(name);
    return ok ||
        refuse_field(reply, "tool_choice",
                     "tools has no tool of that name (tools that a server would run are left out)");
}

bool whit_response_tools_read(const json_t *body, json_t *chat, json_t *kinds, whit_web_reply *reply)
{
    const json_t *tools = json_object_get(body, "tools");
    if (tools && !json_is_null(tools) && !json_is_array(tools)) return refuse_field(reply, "tools", "expected a list");
    json_t *list = json_array();
    bool ok = true;
    for (size_t i = 0; ok && i < json_array_size(tools); i++)
        ok = read_tool(json_array_get(tools, i), i, list, kinds, reply);
    ok = ok && read_choice(body, &list, chat, reply);
    if (json_array_size(list)) json_object_set(chat, "tools", list);
    json_decref(list);
    return ok;
}

/* ---- calls --------------------------------------------------------------------------------------- */

static json_t *json_text(const json_t *value)
{
    char *text = value ? whit_json_write(value) : NULL;
    json_t *result = json_string(text ? text : "{}");
    free(text);
    return result;
}

bool whit_response_call_read(const json_t *item, json_t **call)
{
    const char *type = type_of(item);
    json_t *id = json_object_get(item, "call_id"), *name = NULL, *arguments = NULL;
    const json_t *own_name = json_object_get(item, "name");
    bool found = true;
    *call = NULL;
    if (!json_is_string(id)) id = json_object_get(item, "id");
    if (!strcmp(type, "function_call")) {
        if (json_is_string(own_name)) name = offered_name(json_object_get(item, "namespace"), own_name);
        if (json_is_string(json_object_get(item, "arguments")))
            arguments = json_incref(json_object_get(item, "arguments"));
    } else if (!strcmp(type, "custom_tool_call")) {
        json_t *wrapped = json_pack("{s:O?}", "input", json_object_get(item, "input"));
        if (json_is_string(own_name)) name = json_incref((json_t *)own_name);
        if (json_is_string(json_object_get(item, "input"))) arguments = json_text(wrapped);
        json_decref(wrapped);
    } else {
        found = false;
        for (int k = 0; k < N_KNOWN && !found; k++) {
            if (strcmp(type, known[k].call) != 0) continue;
            json_t *action = json_copy(json_object_get(item, known[k].member));
            if (!strcmp(known[k].member, "action")) json_object_del(action, "type");
            name = json_string(known[k].type);
            if (action) arguments = json_text(action);
            json_decref(action);
            found = true;
        }
    }
    if (found && json_is_string(id) && name && arguments)
        *call = json_pack("{s:O, s:s, s:{s:O, s:O}}", "id", id, "type", "function", "function", "name", name,
                          "arguments", arguments);
    json_decref(name), json_decref(arguments);
    return found;
}

bool whit_response_result_read(const json_t *item, const char **output_key)
{
    const char *type = type_of(item);
    *output_key = "output";
    bool found = !strcmp(type, "function_call_output") || !strcmp(type, "custom_tool_call_output");
    for (int k = 0; k < N_KNOWN; k++) found |= !strcmp(type, known[k].output);
    return found;
}

bool whit_response_is_function(const json_t *kinds, const char *name)
{
    const char *type = type_of(json_object_get(kinds, name));
    return !*type || !strcmp(type, "namespace");
}

bool whit_response_is_custom(const json_t *kinds, const char *name)
{
    return !strcmp(type_of(json_object_get(kinds, name)), "custom");
}

json_t *whit_response_call_item(const json_t *kinds, const char *name, const char *arguments, size_t n_arguments)
{
    const json_t *kind = json_object_get(kinds, name);
    const char *type = type_of(kind);
    json_t *text = whit_dialect_text(arguments, n_arguments), *result = NULL;
    if (!*type) {
        result = json_pack("{s:s, s:s, s:O}", "type", "function_call", "name", name, "arguments", text);
    } else if (!strcmp(type, "namespace")) {
        result = json_pack("{s:s, s:O, s:O, s:O}", "type", "function_call", "name", json_object_get(kind, "name"),
                           "namespace", json_object_get(kind, "namespace"), "arguments", text);
    } else {
        json_t *values = whit_dialect_arguments(text);
        int k = find_known(type);
        if (k < 0) { /* a custom tool; if the arguments have no "input", their text is the input */
            json_t *input = json_object_get(values, "input");
            result = json_pack("{s:s, s:s, s:O}", "type", "custom_tool_call", "name", name, "input",
                               json_is_string(input) ? input : text);
        } else {
            json_t *least = json_loads(known[k].least, 0, NULL);
            if (!values) values = json_object();
            json_object_update_missing(values, least);
            result = json_pack("{s:s, s:O}", "type", known[k].call, known[k].member, values);
            if (!strcmp(known[k].type, "shell")) json_object_set_new(result, "environment", json_null());
            json_decref(least);
        }
        json_decref(values);
    }
    json_decref(text);
    return result;
}
