/* SPDX-License-Identifier: MIT
 * Reads requests of Anthropic's Messages API: contents, which consist of blocks, and tools, including the types of
 * tools that the vendor defines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/dialect.h"
#include "server/fields.h"
#include "server/messages.h"
#include "server/json_text.h"

static bool refuse_request(whit_web_reply *reply, const char *what)
{
    whit_api_fail(reply, 400, "invalid_request_error", NULL, "%s", what);
    return false;
}

/* ---- contents ------------------------------------------------------------------------------------ */

/* The path of a content within the request, for error messages, such as messages[2].content or system. */
typedef struct place {
    const json_t *outer; /* the block around this content, if the content is itself part of a block; otherwise NULL */
    size_t i_message, i_outer;
    bool is_system;
} place;

static bool refuse_block(whit_web_reply *reply, const place *at, size_t i, const char *why)
{
    char text[96];
    if (at->is_system)
        snprintf(text, sizeof text, "system[%zu]", i);
    else if (at->outer)
        snprintf(text, sizeof text, "messages[%zu].content[%zu].content[%zu]", at->i_message, at->i_outer, i);
    else
        snprintf(text, sizeof text, "messages[%zu].content[%zu]", at->i_message, i);
    whit_api_fail(reply, 400, "invalid_request_error", NULL, "%s: %s", text, why);
    return false;
}

static bool has_type(const json_t *block, const char *type)
{
    const char *given = json_string_value(json_object_get(block, "type"));
    return given && !strcmp(given, type);
}

static bool append_string(const json_t *text, whit_buf *out)
{
    return json_is_string(text) && whit_buf_append(out, json_string_value(text), json_string_length(text));
}

/* Appends the line "name: value" for a member of a block, such as a document's title; appends nothing if it is
 * empty. */
static void append_label(const json_t *block, const char *name, whit_buf *out)
{
    const json_t *value = json_object_get(block, name);
    if (!json_string_length(value)) return;
    whit_buf_printf(out, "%s: ", name);
    append_string(value, out);
    whit_buf_append_str(out, "\n");
}

/* Appends a text, or the texts of a list of blocks, one per line; returns false if `content` contains anything else. */
static bool append_texts(const json_t *content, whit_buf *out)
{
    size_t i;
    json_t *block;
    if (json_is_string(content)) return append_string(content, out);
    json_array_foreach((json_t *)content, i, block)
    {
        if (i) whit_buf_append_str(out, "\n");
        if (!append_string(json_object_get(block, "text"), out)) return false;
    }
    return json_is_array(content);
}

/* Reasons for refusing types of blocks that have no text. */
static const struct {
    const char *type, *why;
} unreadable[] = {
    {"image", "an image, but only text is supported: leave the part out"},
    {"container_upload", "an uploaded file, but this server stores no files: send its text"},
    {"server_tool_use", "a call that another server ran: send its result as text"},
    {"web_search_tool_result", "the result of another server's search: send it as text"},
    {"web_fetch_tool_result", "a page that another server fetched: send it as text"},
    {"code_execution_tool_result", "the result of another server's program: send it as text"},
    {"mcp_tool_use", "a call that another server ran: send its result as text"},
    {"mcp_tool_result", "the result of another server's call: send it as text"},
    {"bash_code_execution_tool_result", "the result of another server's program: send it as text"},
    {"text_editor_code_execution_tool_result", "the result of another server's program: send it as text"},
    {"tool_search_tool_result", "the result of another server's search: name the tools in `tools`"},
};

/* Appends the text of a block of a type that is allowed everywhere: text, document, search_result, or tool_reference,
 * whose text is the name of the tool. Returns false after refusing the block. */
static bool append_block(const json_t *block, const place *at, size_t i, whit_buf *out, whit_web_reply *reply)
{
    const json_t *source = json_object_get(block, "source");
    if (has_type(block, "text"))
        return append_string(json_object_get(block, "text"), out) ||
            refuse_block(reply, at, i, "text: expected a text");
    if (has_type(block, "document")) {
        append_label(block, "title", out);
        append_label(block, "context", out);
        if (has_type(source, "text"))
            return append_string(json_object_get(source, "data"), out) ||
                refuse_block(reply, at, i, "source.data: expected a text");
        if (has_type(source, "content"))
            return append_texts(json_object_get(source, "content"), out) ||
                refuse_block(reply, at, i, "source.content: expected a text, or a list of parts of type text");
        return refuse_block(reply, at, i, "a document whose source is neither text nor content: send a PDF's text");
    }
    if (has_type(block, "search_result")) {
        append_label(block, "title", out);
        append_label(block, "source", out);
        return append_texts(json_object_get(block, "content"), out) ||
            refuse_block(reply, at, i, "content: only text is supported");
    }
    if (has_type(block, "tool_reference"))
        return append_string(json_object_get(block, "tool_name"), out) ||
            refuse_block(reply, at, i, "tool_name: expected a text");
    for (size_t k = 0; k < sizeof unreadable / sizeof unreadable[0]; k++)
        if (has_type(block, unreadable[k].type)) return refuse_block(reply, at, i, unreadable[k].why);
    return refuse_block(
        reply, at, i,
        "this kind of content is not supported; texts, documents, search results and tool references are");
}

/* Returns the text of a content, which is a string or a list of blocks. Returns NULL after refusing the content. */
static json_t *content_text(const json_t *content, const place *at, whit_web_reply *reply)
{
    whit_buf text = {0};
    if (json_is_string(content)) return json_incref((json_t *)content);
    if (!json_is_array(content)) {
        refuse_request(reply, "content: expected a text or a list of blocks");
        return NULL;
    }
    for (size_t i = 0; i < json_array_size(content); i++) {
        if (i) whit_buf_append_str(&text, "\n");
        if (!append_block(json_array_get(content, i), at, i, &text, reply)) {
            whit_buf_free(&text);
            return NULL;
        }
    }
    json_t *whole = whit_dialect_text(text.data, text.size_bytes);
    whit_buf_free(&text);
    return whole;
}

/* ---- messages ------------------------------------------------------------------------------------ */

/* Texts, calls and results read so far from the blocks of one message. */
struct parts {
    const char *role;
    bool is_assistant;
    whit_buf text, thinking;
    size_t n_texts;          /* number of blocks that contributed to `text` */
    json_t *calls, *results; /* calls: tool calls of the assistant; results: messages with OpenAI's role "tool" */
    place at;
};

static bool read_call(struct parts *parts, const json_t *block, size_t i, whit_web_reply *reply)
{
    const json_t *id = json_object_get(block, "id"), *name = json_object_get(block, "name");
    const json_t *input = json_object_get(block, "input");
    char *arguments = json_is_object(input) ? whit_json_write(input) : NULL;
    bool ok = arguments && json_is_string(name) && json_is_string(id);
    if (ok)
        json_array_append_new(parts->calls,
                              json_pack("{s:O, s:s, s:{s:O, s:s}}", "id", id, "type", "function", "function", "name",
                                        name, "arguments", arguments));
    free(arguments);
    return ok || refuse_block(reply, &parts->at, i, "a tool_use needs an id, a name and an input, an object");
}

static bool read_result(struct parts *parts, const json_t *block, size_t i, whit_web_reply *reply)
{
    const json_t *id = json_object_get(block, "tool_use_id"), *content = json_object_get(block, "content");
    place within = parts->at;
    within.outer = block;
    within.i_outer = i;
    if (!json_is_string(id)) return refuse_block(reply, &parts->at, i, "a tool_result needs its tool_use_id");
    json_t *text = content && !json_is_null(content) ? content_text(content, &within, reply) : json_string("");
    if (!text) return false;
    json_array_append_new(parts->results,
                          json_pack("{s:s, s:O, s:o}", "role", "tool", "tool_call_id", id, "content", text));
    return true;
}

static bool read_block(struct parts *parts, const json_t *block, size_t i, whit_web_reply *reply)
{
    if (parts->is_assistant && has_type(block, "thinking"))
        return append_string(json_object_get(block, "thinking"), &parts->thinking) ||
            refuse_block(reply, &parts->at, i, "thinking: expected a text");
    if (parts->is_assistant && has_type(block, "redacted_thinking")) return true;
    if (parts->is_assistant && has_type(block, "compaction")) { /* a summary of earlier messages */
        parts->n_texts++;
        return append_string(json_object_get(block, "content"), &parts->text) ||
            refuse_block(reply, &parts->at, i, "content: expected a text");
    }
    if (parts->is_assistant && has_type(block, "tool_use")) return read_call(parts, block, i, reply);
    if (!parts->is_assistant && has_type(block, "tool_result")) return read_result(parts, block, i, reply);
    if (parts->text.size_bytes) whit_buf_append_str(&parts->text, "\n");
    parts->n_texts++;
    return append_block(block, &parts->at, i, &parts->text, reply);
}

/* Converts one message to one or more messages: each tool result becomes a separate message. */
static bool read_blocks(const json_t *blocks, const char *role, size_t i_message, json_t *messages,
                        whit_web_reply *reply)
{
    struct parts parts = {.role = role,
                          .is_assistant = !strcmp(role, "assistant"),
                          .calls = json_array(),
                          .results = json_array(),
                          .at = {.i_message = i_message}};
    json_t *message = json_pack("{s:s}", "role", role);
    bool ok = true;
    for (size_t i = 0; ok && i < json_array_size(blocks); i++)
        ok = read_block(&parts, json_array_get(blocks, i), i, reply);
    if (ok && (parts.text.failed || parts.thinking.failed))
        ok = refuse_request(reply, "messages: not enough memory for a message; try again later");
    if (ok) {
        json_array_extend(messages, parts.results);
        json_object_set_new(message, "content", whit_dialect_text(parts.text.data, parts.text.size_bytes));
        if (parts.thinking.size_bytes)
            json_object_set_new(message, "reasoning_content",
                                whit_dialect_text(parts.thinking.data, parts.thinking.size_bytes));
        if (json_array_size(parts.calls)) json_object_set(message, "tool_calls", parts.calls);
        /* A message with only tool results becomes only these; otherwise the message is added even if its text is
         * empty. */
        if (parts.is_assistant || parts.n_texts || !json_array_size(parts.results))
            json_array_append(messages, message);
    }
    json_decref(message), json_decref(parts.calls), json_decref(parts.results);
    whit_buf_free(&parts.text), whit_buf_free(&parts.thinking);
    return ok;
}

/* Returns whether a message may have this role. Coding agents send messages with role "system" also between the others,
 * as remarks of their program. */
static bool is_known_role(const char *role)
{
    return role && (!strcmp(role, "user") || !strcmp(role, "assistant") || !strcmp(role, "system"));
}

static bool read_messages(const json_t *body, json_t *messages, whit_web_reply *reply)
{
    const json_t *system = json_object_get(body, "system"), *list = json_object_get(body, "messages");
    if (system && !json_is_null(system)) {
        json_t *text = content_text(system, &(place){.is_system = true}, reply);
        if (!text) return false;
        if (json_string_length(text))
            json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "system", "content", text));
        json_decref(text);
    }
    if (!json_is_array(list) || !json_array_size(list))
        return refuse_request(reply, "messages: expected a list of messages");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i), *content = json_object_get(one, "content");
        const char *role = json_string_value(json_object_get(one, "role"));
        if (!is_known_role(role)) {
            whit_api_fail(reply, 400, "invalid_request_error", NULL,
                          "messages[%zu].role: expected user, assistant or system", i);
            return false;
        }
        if (json_is_string(content)) {
            json_array_append_new(messages, json_pack("{s:s, s:O}", "role", role, "content", content));
        } else if (!json_is_array(content)) {
            whit_api_fail(reply, 400, "invalid_request_error", NULL,
                          "messages[%zu].content: expected a text or a list of blocks", i);
            return false;
        } else if (!read_blocks(content, role, i, messages, reply)) {
            return false;
        }
    }
    return true;
}

/* ---- tools --------------------------------------------------------------------------------------- */

/* Tools whose schemas the vendor defines and whose calls the client runs. `type` is a prefix: in a request a date
 * follows it. */
static const struct {
    const char *type, *about, *schema;
} typed[] = {
    {"bash_", "Runs a command in a shell that stays open between calls.",
     "{\"type\":\"object\",\"properties\":{\"command\":{\"type\":\"string\"},"
     "\"restart\":{\"type\":\"boolean\"}}}"},
    {"text_editor_", "Looks at, creates and changes text files.",
     "{\"type\":\"object\",\"properties\":{\"command\":{\"enum\":[\"view\",\"create\",\"str_replace\","
     "\"insert\"]},\"path\":{\"type\":\"string\"},\"file_text\":{\"type\":\"string\"},"
     "\"old_str\":{\"type\":\"string\"},\"new_str\":{\"type\":\"string\"},"
     "\"insert_line\":{\"type\":\"integer\"},\"insert_text\":{\"type\":\"string\"},"
     "\"view_range\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}},\"required\":[\"command\","
     "\"path\"]}"},
    {"memory_", "Looks at, creates and changes files of notes that outlive the conversation.",
     "{\"type\":\"object\",\"properties\":{\"command\":{\"enum\":[\"view\",\"create\",\"str_replace\","
     "\"insert\",\"delete\",\"rename\"]},\"path\":{\"type\":\"string\"},"
     "\"file_text\":{\"type\":\"string\"},\"old_str\":{\"type\":\"string\"},"
     "\"new_str\":{\"type\":\"string\"},\"old_path\":{\"type\":\"string\"},"
     "\"new_path\":{\"type\":\"string\"},\"insert_line\":{\"type\":\"integer\"},"
     "\"insert_text\":{\"type\":\"string\"},\"view_range\":{\"type\":\"array\","
     "\"items\":{\"type\":\"integer\"}}},\"required\":[\"command\"]}"},
};

/* Tools that the vendor's server runs itself are ignored, as if the model did not call them. */
static const char *const server_run[] = {"web_search_", "web_fetch_", "code_execution_", "tool_search_tool_",
                                         "mcp_toolset"};

static bool begins_with(const char *text, const char *beginning)
{
    return !strncmp(text, beginning, strlen(beginning));
}

/* Adds a tool to the list as a function in OpenAI's form. */
static void add_tool(json_t *list, const json_t *tool, const json_t *name, const char *about, json_t *schema)
{
    const json_t *own_about = json_object_get(tool, "description");
    /* The order of the members is OpenAI's: templates write members in the given order, and models were trained with
     * that order. */
    json_t *function = json_pack("{s:O}", "name", name);
    if (json_is_string(own_about))
        json_object_set(function, "description", (json_t *)own_about);
    else if (about)
        json_object_set_new(function, "description", json_string(about));
    json_object_set_new(function, "parameters", schema);
    if (json_is_boolean(json_object_get(tool, "strict")))
        json_object_set(function, "strict", json_object_get(tool, "strict"));
    json_array_append_new(list, json_pack("{s:s, s:o}", "type", "function", "function", function));
}

static bool read_tool(const json_t *tool, size_t i, json_t *list, whit_web_reply *reply)
{
    const json_t *name = json_object_get(tool, "name");
    json_t *schema = json_object_get(tool, "input_schema");
    const char *type = json_string_value(json_object_get(tool, "type"));
    if (json_is_string(name) && json_is_object(schema)) {
        add_tool(list, tool, name, NULL, json_incref(schema));
        return true;
    }
    for (size_t k = 0; type && k < sizeof server_run / sizeof server_run[0]; k++)
        if (begins_with(type, server_run[k])) return true;
    for (size_t k = 0; type && json_is_string(name) && k < sizeof typed / sizeof typed[0]; k++)
        if (begins_with(type, typed[k].type)) {
            add_tool(list, tool, name, typed[k].about, json_loads(typed[k].schema, 0, NULL));
            return true;
        }
    whit_api_fail(reply, 400, "invalid_request_error", NULL,
                  "tools[%zu]: expected a name and an input_schema, or the type bash_*, text_editor_* or memory_*", i);
    return false;
}

static bool has_tool(const json_t *list, const json_t *name)
{
    size_t i;
    json_t *tool;
    json_array_foreach((json_t *)list, i, tool)
    {
        if (json_equal(json_object_get(json_object_get(tool, "function"), "name"), name)) return true;
    }
    return false;
}

static bool read_choice(const json_t *choice, const json_t *list, json_t *own, whit_web_reply *reply)
{
    const char *type = json_string_value(json_object_get(choice, "type"));
    json_t *name = json_object_get(choice, "name");
    bool is_single = false;
    if (choice && !json_is_null(choice) && !type)
        return refuse_request(reply, "tool_choice: expected an object with a type");
    if (!whit_field_switch(choice, "disable_parallel_tool_use", &is_single, reply)) return false;
    if (is_single) json_object_set_new(own, "parallel_tool_calls", json_false());
    if (!type) return true;
    if (!strcmp(type, "any")) {
        json_object_set_new(own, "tool_choice", json_string("required"));
    } else if (!strcmp(type, "tool")) {
        if (!json_is_string(name)) return refuse_request(reply, "tool_choice: expected the name of a tool");
        if (!has_tool(list, name))
            return refuse_request(
                reply, "tool_choice: tools has no tool of that name (tools that a server would run are left out)");
        json_object_set_new(own, "tool_choice",
                            json_pack("{s:s, s:{s:O}}", "type", "function", "function", "name", name));
    } else if (!strcmp(type, "auto") || !strcmp(type, "none")) {
        json_object_set_new(own, "tool_choice", json_string(type));
    } else {
        return refuse_request(reply, "tool_choice: expected the type auto, any, tool or none");
    }
    return true;
}

static bool read_tools(const json_t *body, json_t *own, whit_web_reply *reply)
{
    const json_t *tools = json_object_get(body, "tools"), *servers = json_object_get(body, "mcp_servers");
    if (tools && !json_is_null(tools) && !json_is_array(tools)) return refuse_request(reply, "tools: expected a list");
    if (json_array_size(servers))
        return refuse_request(reply, "mcp_servers: this server makes no connections; let the client run their tools");
    json_t *list = json_array();
    bool ok = true;
    for (size_t i = 0; ok && i < json_array_size(tools); i++) ok = read_tool(json_array_get(tools, i), i, list, reply);
    ok = ok && read_choice(json_object_get(body, "tool_choice"), list, own, reply);
    if (json_array_size(list)) json_object_set(own, "tools", list);
    json_decref(list);
    return ok;
}

/* ---- other members of a request ------------------------------------------------------------------ */

/* Reads the schema of the answer: output_config.format, or its older name output_format. */
static bool read_format(const json_t *body, json_t *own, whit_web_reply *reply)
{
    const json_t *format = json_object_get(json_object_get(body, "output_config"), "format");
    if (!format || json_is_null(format)) format = json_object_get(body, "output_format");
    if (!format || json_is_null(format)) return true;
    const char *type = json_string_value(json_object_get(format, "type"));
    const json_t *schema = json_object_get(format, "schema");
    if (!type || strcmp(type, "json_schema") || !schema || json_is_null(schema))
        return refuse_request(reply, "output_config.format: expected the type json_schema, and a schema");
    json_object_set_new(own, "response_format",
                        json_pack("{s:s, s:{s:O}}", "type", type, "json_schema", "schema", schema));
    return true;
}

static bool check_thinking(const json_t *thinking, whit_web_reply *reply)
{
    static const char *const types[] = {"enabled", "disabled", "adaptive"};
    const char *type = json_string_value(json_object_get(thinking, "type"));
    bool known = !thinking;
    for (size_t i = 0; type && i < sizeof types / sizeof types[0]; i++) known |= !strcmp(type, types[i]);
    return known || whit_field_refuse(reply, "thinking", "expected a type, enabled, disabled or adaptive");
}

json_t *whit_anthropic_read(const json_t *body, bool counting, whit_web_reply *reply)
{
    static const char *const same[] = {"model", "temperature", "top_p",    "top_k", "stream",
                                       "seed",  "grammar",     "adapters", "lora",  "program"};
    json_t *own = json_object(), *messages = json_array();
    const json_t *most = json_object_get(body, "max_tokens"), *stops, *wanted;
    bool ok = whit_field_list(body, "stop_sequences", &stops, reply) &&
        whit_field_object(body, "thinking", &wanted, reply) && check_thinking(wanted, reply);
    const char *thinking = ok ? json_string_value(json_object_get(wanted, "type")) : NULL;
    ok = ok &&
        (counting || json_number_value(most) > 0 || refuse_request(reply, "max_tokens: expected a number above 0"));
    ok = ok && read_messages(body, messages, reply) && read_tools(body, own, reply) && read_format(body, own, reply);
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        json_t *value = json_object_get(body, same[i]);
        if (value) json_object_set(own, same[i], value);
    }
    json_object_set_new(own, "messages", messages);
    if (most) json_object_set(own, "max_tokens", (json_t *)most);
    if (stops) json_object_set(own, "stop", (json_t *)stops);
    if (thinking && strcmp(thinking, "adaptive") != 0) /* "adaptive": the model decides */
        json_object_set_new(own, "chat_template_kwargs",
                            json_pack("{s:b}", "enable_thinking", !strcmp(thinking, "enabled")));
    json_t *budget = json_object_get(wanted, "budget_tokens");
    if (thinking && !strcmp(thinking, "enabled") && budget) json_object_set(own, "thinking_budget", budget);
    /* If the last message is from the assistant, the model continues it. */
    const json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    if (ok && role && !strcmp(role, "assistant") && !json_object_get(last, "tool_calls"))
        json_object_set_new(own, "continue_final_message", json_true());
    if (ok) return own;
    json_decref(own);
    return NULL;
}
