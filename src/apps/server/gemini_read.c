/* SPDX-License-Identifier: MIT
 * Reads requests of the Gemini API, https://ai.google.dev/api/generate-content: contents, which consist of parts;
 * function declarations, whose schemas have OpenAPI's form; settings. */
#include <ctype.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/phrase.h"
#include "base/utf8.h"
#include "server/dialect.h"
#include "server/json_text.h"
#include "server/gemini.h"

enum { NAME_BYTES_MAX = 64, DEPTH_MAX = 100 };

json_t *whit_gemini_get(const json_t *object, const char *name)
{
    char snake[NAME_BYTES_MAX];
    json_t *found = json_object_get(object, name);
    size_t n = 0;
    if (found) return json_is_null(found) ? NULL : found;
    for (; *name && n + 2 < sizeof snake; name++) {
        if (isupper((unsigned char)*name)) snake[n++] = '_';
        snake[n++] = (char)tolower((unsigned char)*name);
    }
    snake[n] = 0;
    found = json_object_get(object, snake);
    return json_is_null(found) ? NULL : found;
}

json_t *whit_gemini_list(const json_t *object, const char *name)
{
    json_t *found = whit_gemini_get(object, name);
    return json_is_object(found) ? json_pack("[O]", found) : json_incref(found);
}

static bool refuse_field(whit_web_reply *reply, const char *param, const char *what)
{
    whit_api_fail(reply, 400, "invalid_request_error", param, "%s: %s", param, what);
    return false;
}

static bool refuse_part(whit_web_reply *reply, size_t i, size_t k, const char *what)
{
    whit_api_fail(reply, 400, "invalid_request_error", "contents", "contents[%zu].parts[%zu]: %s", i, k, what);
    return false;
}

/* ---- schemas ------------------------------------------------------------------------------------- */

static json_t *schema_at(const json_t *schema, int depth);

/* Returns a schema's type in small letters; if `nullable`, a list of this type and "null". A type that is not a string
 * stays unchanged. */
static json_t *schema_type(const json_t *type, bool nullable)
{
    char text[16];
    size_t n = 0;
    if (!json_is_string(type)) return json_incref((json_t *)type);
    for (const char *c = json_string_value(type); *c && n + 1 < sizeof text; c++)
        text[n++] = (char)tolower((unsigned char)*c);
    text[n] = 0;
    return nullable ? json_pack("[s, s]", text, "null") : json_string(text);
}

/* Returns a number in a schema. The protocol writes 64-bit integers as strings, which are converted to numbers. */
static json_t *schema_number(const json_t *value)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    long long number = text ? strtoll(text, &end, 10) : 0;
    return text && end != text && !*end ? json_integer(number) : json_incref((json_t *)value);
}

static json_t *schema_list(const json_t *list, int depth)
{
    json_t *result = json_array(), *one;
    size_t i;
    json_array_foreach((json_t *)list, i, one) json_array_append_new(result, schema_at(one, depth));
    return result;
}

static json_t *schema_map(const json_t *map, int depth)
{
    json_t *result = json_object(), *one;
    const char *key;
    json_object_foreach((json_t *)map, key, one) json_object_set_new(result, key, schema_at(one, depth));
    return result;
}

static bool is_among(const char *key, const char *const *list)
{
    while (*list && strcmp(key, *list) != 0) list++;
    return *list != NULL;
}

static json_t *schema_at(const json_t *schema, int depth)
{
    static const char *const dropped[] = {"propertyOrdering", "property_ordering", "nullable", "example", NULL};
    static const char *const counts[] = {"minItems",  "maxItems",      "minLength",     "maxLength", "min_items",
                                         "max_items", "minProperties", "maxProperties", NULL};
    const char *key;
    json_t *value, *result = json_object();
    bool nullable = json_is_true(json_object_get(schema, "nullable"));
    if (!json_is_object(schema) || depth > DEPTH_MAX) {
        json_decref(result);
        return json_incref((json_t *)schema);
    }
    json_object_foreach((json_t *)schema, key, value)
    {
        /* a separate variable, because the loop needs `key` to find the next member */
        const char *name = !strcmp(key, "any_of") ? "anyOf" : key;
        if (is_among(key, dropped)) continue;
        if (!strcmp(key, "type"))
            value = schema_type(value, nullable);
        else if (!strcmp(key, "properties"))
            value = schema_map(value, depth + 1);
        else if (!strcmp(key, "items") || !strcmp(key, "additionalProperties"))
            value = schema_at(value, depth + 1);
        else if (!strcmp(name, "anyOf"))
            value = schema_list(value, depth + 1);
        else if (is_among(key, counts))
            value = schema_number(value);
        else if (!strcmp(key, "format") && json_is_string(value) && !strcmp(json_string_value(value), "enum"))
            continue;
        else
            json_incref(value);
        json_object_set_new(result, name, value);
    }
    return result;
}

/* Converts a schema from OpenAPI's form (types in capitals, `nullable`) to JSON Schema; the caller owns the result. */
static json_t *gemini_schema(const json_t *schema)
{
    return schema_at(schema, 0);
}

/* ---- contents ------------------------------------------------------------------------------------ */

/* Texts, calls and results read so far from the parts of one content, which becomes one or more messages. */
struct content {
    bool is_model;
    size_t i;
    whit_buf text, thinking;
    json_t *calls, *results; /* calls: function calls of the model; results: messages with OpenAI's role "tool" */
    json_t *open;            /* list of [id, name] for the calls of all contents so far that have no result yet */
};

/* Appends the text of an inline file, which is in base64. Refuses files that are not text. */
static bool append_data(struct content *c, const json_t *data, size_t k, whit_web_reply *reply)
{
    const char *type = json_string_value(whit_gemini_get(data, "mimeType"));
    const json_t *coded = whit_gemini_get(data, "data");
    if (!type || (strncmp(type, "text/", 5) && strcmp(type, "application/json") != 0))
        return refuse_part(reply, c->i, k,
                           type && !strncmp(type, "image/", 6)
                               ? "an image, but only text is supported: leave the part out"
                               : "data that is not text, which is not supported: leave the part out");
    size_t n = json_string_length(coded), n_bytes = 0;
    uint8_t *bytes = malloc(n + 1);
    bool ok = bytes && json_is_string(coded) &&
        sodium_base642bin(bytes, n + 1, json_string_value(coded), n, "\r\n", &n_bytes, NULL,
                          sodium_base64_VARIANT_ORIGINAL) == 0 &&
        whit_utf8_valid_bytes(bytes, n_bytes) == n_bytes && !memchr(bytes, 0, n_bytes) &&
        whit_buf_append(&c->text, bytes, n_bytes);
    free(bytes);
    return ok || refuse_part(reply, c->i, k, "expected text in base64");
}

static bool read_call(struct content *c, const json_t *call, size_t k, whit_web_reply *reply)
{
    json_t *name = whit_gemini_get(call, "name"), *args = whit_gemini_get(call, "args");
    json_t *id = whit_gemini_get(call, "id");
    char *arguments = args ? whit_json_write(args) : NULL;
    bool ok = json_is_string(name) && (!args || arguments);
    id = json_is_string(id) ? json_incref(id) : json_sprintf("call_%zu_%zu", c->i, k);
    if (ok) {
        json_array_append_new(c->calls,
                              json_pack("{s:O, s:s, s:{s:O, s:s}}", "id", id, "type", "function", "function", "name",
                                        name, "arguments", arguments ? arguments : "{}"));
        json_array_append_new(c->open, json_pack("[O, O]", id, name));
    }
    json_decref(id);
    free(arguments);
    return ok || refuse_part(reply, c->i, k, "a functionCall needs a name, a text");
}

/* Finds the call that a function's response answers, removes it from the list `open` and returns its id: the call with
 * this id or, if the response has no id, the first call with this name. The caller owns the result. If no call is
 * found, returns `id` or an empty string. */
static json_t *take_call(json_t *open, const json_t *id, const json_t *name)
{
    size_t i;
    json_t *entry;
    json_array_foreach(open, i, entry)
    {
        if (!json_equal(json_array_get(entry, !id), id ? id : name)) continue;
        json_t *found = json_incref(json_array_get(entry, 0));
        json_array_remove(open, i);
        return found;
    }
    return id ? json_incref((json_t *)id) : json_string("");
}

/* Returns a function's response as text. Clients often send an object with only the string `output`: its text is
 * returned then. */
static json_t *response_text(const json_t *response)
{
    const json_t *output = json_object_get(response, "output");
    if (json_object_size(response) == 1 && json_is_string(output)) return json_incref((json_t *)output);
    char *text = response ? whit_json_write(response) : NULL;
    json_t *result = json_string(whit_or_empty(text));
    free(text);
    return result;
}

static bool read_response(struct content *c, const json_t *response, size_t k, whit_web_reply *reply)
{
    const json_t *name = whit_gemini_get(response, "name"), *id = whit_gemini_get(response, "id");
    if (!json_is_string(name)) return refuse_part(reply, c->i, k, "a functionResponse needs a name, a text");
    if (json_array_size(whit_gemini_get(response, "parts")))
        return refuse_part(reply, c->i, k,
                           "a functionResponse with parts is not supported: give its text in `response`");
    json_array_append_new(c->results,
                          json_pack("{s:s, s:o, s:O, s:o}", "role", "tool", "tool_call_id",
                                    take_call(c->open, json_is_string(id) ? id : NULL, name), "name", name, "content",
                                    response_text(whit_gemini_get(response, "response"))));
    return true;
}

static bool read_part(struct content *c, const json_t *part, size_t k, whit_web_reply *reply)
{
    static const char *const server_run[] = {"executableCode", "codeExecutionResult", "toolCall", "toolResponse"};
    const json_t *text = whit_gemini_get(part, "text"), *call = whit_gemini_get(part, "functionCall");
    const json_t *response = whit_gemini_get(part, "functionResponse"), *data = whit_gemini_get(part, "inlineData");
    bool is_thought = json_is_true(whit_gemini_get(part, "thought"));
    if (call && c->is_model) return read_call(c, call, k, reply);
    if (response && !c->is_model) return read_response(c, response, k, reply);
    if (json_is_string(text)) {
        whit_buf *out = is_thought ? &c->thinking : &c->text;
        /* Texts of the user are joined by line feeds, texts of the model without. */
        if (!c->is_model && out->size_bytes) whit_buf_append_str(out, "\n");
        return whit_buf_append(out, json_string_value(text), json_string_length(text)) || whit_api_fail_memory(reply);
    }
    if (data) return append_data(c, data, k, reply);
    for (size_t n = 0; n < sizeof server_run / sizeof server_run[0]; n++)
        if (whit_gemini_get(part, server_run[n]))
            return refuse_part(reply, c->i, k,
                               "parts executableCode and codeExecutionResult are not supported: send them as text");
    if (whit_gemini_get(part, "fileData"))
        return refuse_part(reply, c->i, k, "this server stores no files: send the file's text");
    if (json_is_string(whit_gemini_get(part, "thoughtSignature"))) return true;
    return refuse_part(reply, c->i, k,
                       "this kind of part is not supported; text, function calls and their responses are");
}

static bool read_content(const json_t *content, size_t i, json_t *open, json_t *messages, whit_web_reply *reply)
{
    const char *role = json_string_value(whit_gemini_get(content, "role"));
    json_t *parts = whit_gemini_list(content, "parts");
    struct content c = {.is_model = role && !strcmp(role, "model"),
                        .i = i,
                        .calls = json_array(),
                        .results = json_array(),
                        .open = open};
    bool ok = json_is_array(parts) || refuse_field(reply, "contents", "expected contents with a list of parts");
    for (size_t k = 0; ok && k < json_array_size(parts); k++) ok = read_part(&c, json_array_get(parts, k), k, reply);
    if (ok && (c.text.failed || c.thinking.failed)) ok = whit_api_fail_memory(reply);
    if (ok) {
        json_t *message = json_pack("{s:s, s:o}", "role", c.is_model ? "assistant" : "user", "content",
                                    whit_dialect_text(c.text.data, c.text.size_bytes));
        if (c.thinking.size_bytes)
            json_object_set_new(message, "reasoning_content",
                                whit_dialect_text(c.thinking.data, c.thinking.size_bytes));
        if (json_array_size(c.calls)) json_object_set(message, "tool_calls", c.calls);
        json_array_extend(messages, c.results);
        if (c.is_model || c.text.size_bytes || !json_array_size(c.results)) json_array_append(messages, message);
        json_decref(message);
    }
    json_decref(c.calls), json_decref(c.results), json_decref(parts);
    whit_buf_free(&c.text), whit_buf_free(&c.thinking);
    return ok;
}

static bool read_contents(const json_t *body, json_t *messages, whit_web_reply *reply)
{
    json_t *system = whit_gemini_get(body, "systemInstruction"), *contents = whit_gemini_list(body, "contents");
    json_t *open = json_array();
    bool ok = true;
    if (json_is_string(system)) {
        json_array_append_new(messages, json_pack("{s:s, s:O}", "role", "system", "content", system));
    } else if (system && !json_is_object(system)) {
        ok = refuse_field(reply, "systemInstruction", "expected a text, or a content with parts");
    } else if (whit_gemini_get(system, "parts")) {
        ok = read_content(system, 0, open, messages, reply);
        json_object_set_new(json_array_get(messages, 0), "role", json_string("system"));
        if (!json_string_length(json_object_get(json_array_get(messages, 0), "content"))) json_array_clear(messages);
    }
    if (ok && !json_array_size(contents))
        ok = refuse_field(reply, "contents", "expected a list of at least one content with parts");
    for (size_t i = 0; ok && i < json_array_size(contents); i++)
        ok = read_content(json_array_get(contents, i), i, open, messages, reply);
    json_decref(open), json_decref(contents);
    return ok;
}

/* ---- tools --------------------------------------------------------------------------------------- */

static bool read_declaration(const json_t *declaration, bool strict, json_t *list, whit_web_reply *reply)
{
    json_t *name = whit_gemini_get(declaration, "name"), *about = whit_gemini_get(declaration, "description");
    json_t *schema = whit_gemini_get(declaration, "parametersJsonSchema");
    const json_t *parameters = whit_gemini_get(declaration, "parameters");
    if (!json_is_string(name)) return refuse_field(reply, "tools", "a function declaration needs a name, a text");
    json_t *function = json_pack("{s:O}", "name", name);
    if (about) json_object_set(function, "description", about);
    if (schema)
        json_object_set(function, "parameters", schema);
    else if (parameters)
        json_object_set_new(function, "parameters", gemini_schema(parameters));
    if (strict) json_object_set_new(function, "strict", json_true());
    json_array_append_new(list, json_pack("{s:s, s:o}", "type", "function", "function", function));
    return true;
}

static bool is_allowed(const json_t *names, const json_t *tool)
{
    json_t *name = json_object_get(json_object_get(tool, "function"), "name"), *one;
    size_t i;
    json_array_foreach((json_t *)names, i, one)
    {
        if (json_equal(one, name)) return true;
    }
    return !json_array_size(names);
}

/* Reads the tools. Tools that Google's server runs itself, such as googleSearch, are ignored, as if the model did not
 * call them; computerUse is refused. */
static bool read_tools(const json_t *body, json_t *chat, whit_web_reply *reply)
{
    static const char *const modes[] = {"AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED", NULL};
    json_t *tools = whit_gemini_list(body, "tools");
    const json_t *config = whit_gemini_get(whit_gemini_get(body, "toolConfig"), "functionCallingConfig");
    const json_t *names = whit_gemini_get(config, "allowedFunctionNames");
    const char *mode = json_string_value(whit_gemini_get(config, "mode"));
    if (!mode) mode = "AUTO";
    json_t *list = json_array(), *allowed = json_array();
    bool ok = (!tools || json_is_array(tools) || refuse_field(reply, "tools", "expected a list")) &&
        (is_among(mode, modes) || refuse_field(reply, "toolConfig", "expected the mode AUTO, ANY, NONE or VALIDATED"));
    for (size_t i = 0; ok && i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        json_t *declared = whit_gemini_list(tool, "functionDeclarations");
        if (whit_gemini_get(tool, "computerUse"))
            ok = refuse_field(reply, "tools", "computerUse needs images, which are not supported: leave it out");
        for (size_t k = 0; ok && k < json_array_size(declared); k++)
            ok = read_declaration(json_array_get(declared, k), !strcmp(mode, "VALIDATED"), list, reply);
        json_decref(declared);
    }
    for (size_t i = 0; i < json_array_size(list); i++)
        if (is_allowed(names, json_array_get(list, i))) json_array_append(allowed, json_array_get(list, i));
    if (ok && json_array_size(allowed)) json_object_set(chat, "tools", allowed);
    if (ok && !strcmp(mode, "NONE")) json_object_set_new(chat, "tool_choice", json_string("none"));
    if (ok && !strcmp(mode, "ANY")) {
        json_object_set_new(chat, "tool_choice", json_string("required"));
        if (!json_array_size(allowed))
            ok = refuse_field(reply, "toolConfig", "a call is required, but tools has no function that may be called");
    }
    json_decref(list), json_decref(allowed), json_decref(tools);
    return ok;
}

/* ---- settings ------------------------------------------------------------------------------------ */

/* Makes a grammar by which the answer is exactly one of the schema's enum texts. */
static bool read_choices(const json_t *schema, json_t *chat, whit_web_reply *reply)
{
    json_t *one;
    whit_buf grammar = {0};
    size_t i, n_texts = 0;
    json_array_foreach(json_object_get(schema, "enum"), i, one)
    {
        if (!json_is_string(one)) continue;
        whit_buf_append_str(&grammar, n_texts++ ? " | \"" : "root ::= \"");
        for (const char *c = json_string_value(one); *c; c++) {
            if (*c == '\n') {
                whit_buf_append_str(&grammar, "\\n");
                continue;
            }
            if (*c == '"' || *c == '\\') whit_buf_append_str(&grammar, "\\");
            whit_buf_append(&grammar, c, 1);
        }
        whit_buf_append_str(&grammar, "\"");
    }
    if (n_texts) json_object_set_new(chat, "grammar", whit_dialect_text(grammar.data, grammar.size_bytes));
    whit_buf_free(&grammar);
    return n_texts || refuse_field(reply, "responseSchema", "text/x.enum needs a schema with an enum of texts");
}

static bool read_format(const json_t *config, json_t *chat, whit_web_reply *reply)
{
    const char *type = json_string_value(whit_gemini_get(config, "responseMimeType"));
    json_t *schema = whit_gemini_get(config, "responseJsonSchema");
    const json_t *other = whit_gemini_get(config, "responseSchema");
    const json_t *kinds = whit_gemini_get(config, "responseModalities");
    for (size_t i = 0; i < json_array_size(kinds); i++) {
        const char *kind = json_string_value(json_array_get(kinds, i));
        if (!kind || strcmp(kind, "TEXT") != 0)
            return refuse_field(reply, "responseModalities", "only TEXT is supported: leave the others out");
    }
    if (!type || !*type || !strcmp(type, "text/plain")) return true;
    if (!strcmp(type, "text/x.enum")) return read_choices(schema ? schema : other, chat, reply);
    if (strcmp(type, "application/json") != 0)
        return refuse_field(reply, "responseMimeType", "expected text/plain, application/json or text/x.enum");
    if (schema)
        schema = json_incref(schema);
    else if (other)
        schema = gemini_schema(other);
    else
        schema = NULL;
    json_object_set_new(chat, "response_format",
                        schema ? json_pack("{s:s, s:{s:o}}", "type", "json_schema", "json_schema", "schema", schema)
                               : json_pack("{s:s}", "type", "json_object"));
    return true;
}

static void read_thinking(const json_t *config, json_t *chat, bool *shows_thoughts)
{
    const json_t *thinking = whit_gemini_get(config, "thinkingConfig");
    const json_t *budget = whit_gemini_get(thinking, "thinkingBudget");
    const char *level = json_string_value(whit_gemini_get(thinking, "thinkingLevel"));
    *shows_thoughts = json_is_true(whit_gemini_get(thinking, "includeThoughts"));
    if (json_is_integer(budget) && json_integer_value(budget) >= 0) /* -1: the model decides */
        json_object_set_new(chat, "chat_template_kwargs",
                            json_pack("{s:b}", "enable_thinking", json_integer_value(budget) > 0));
    if (json_integer_value(budget) > 0) json_object_set(chat, "thinking_budget", (json_t *)budget);
    if (level) {
        char text[16];
        size_t n = 0;
        for (; level[n] && n + 1 < sizeof text; n++) text[n] = (char)tolower((unsigned char)level[n]);
        text[n] = 0;
        json_object_set_new(chat, "reasoning_effort", json_string(text));
    }
}

json_t *whit_gemini_read(const json_t *body, bool *shows_thoughts, whit_web_reply *reply)
{
    static const char *const settings[][2] = {{"temperature", "temperature"},
                                              {"topP", "top_p"},
                                              {"topK", "top_k"},
                                              {"maxOutputTokens", "max_tokens"},
                                              {"stopSequences", "stop"},
                                              {"seed", "seed"},
                                              {"presencePenalty", "presence_penalty"},
                                              {"frequencyPenalty", "frequency_penalty"}};
    const json_t *config = whit_gemini_get(body, "generationConfig"), *n = whit_gemini_get(config, "candidateCount");
    json_t *chat = json_object(), *messages = json_array();
    bool ok = read_contents(body, messages, reply) && read_tools(body, chat, reply) && read_format(config, chat, reply);
    if (ok && n && json_integer_value(n) != 1)
        ok = refuse_field(reply, "candidateCount", "only one candidate is supported: send 1, or leave the field out");
    if (ok && json_is_true(whit_gemini_get(config, "responseLogprobs")))
        ok = refuse_field(reply, "responseLogprobs",
                          "log-probabilities are not supported by this API; /v1/chat/completions has them");
    if (ok && whit_gemini_get(body, "cachedContent"))
        ok = refuse_field(reply, "cachedContent", "this server stores no contents; send the contents themselves");
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        json_t *value = whit_gemini_get(config, settings[i][0]);
        if (value) json_object_set(chat, settings[i][1], value);
    }
    json_t *model = json_object_get(body, "model"); /* the name of the path; it may be that of an adapter */
    if (model) json_object_set(chat, "model", model);
    read_thinking(config, chat, shows_thoughts);
    json_object_set_new(chat, "messages", messages);
    const json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    if (ok && role && !strcmp(role, "assistant") && !json_object_get(last, "tool_calls"))
        json_object_set_new(chat, "continue_final_message", json_true());
    if (ok) return chat;
    json_decref(chat);
    return NULL;
}
