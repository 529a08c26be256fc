/* SPDX-License-Identifier: MIT */
#include "agent/plain.h"

#include "base/items.h"
#include "base/mem.h"
#include "base/phrase.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_MAX 64
#define TRIES_MAX 256 /* maximum number of '{' in an answer at which an object is parsed */

static void add_turn(json_t *list, const char *role, const char *text)
{
    size_t n = json_array_size(list);
    json_t *last = n ? json_array_get(list, n - 1) : NULL;
    const char *own = json_string_value(json_object_get(last, "role"));
    /* consecutive messages of the user are joined, since chat templates require alternating roles */
    if (own && strcmp(own, role) == 0 && strcmp(role, "user") == 0) {
        json_object_set_new(last, "content",
                            json_sprintf("%s\n%s", json_string_value(json_object_get(last, "content")), text));
        return;
    }
    json_array_append_new(list, json_pack("{s:s, s:s}", "role", role, "content", text));
}

static void add_tools(whit_buf *text, const json_t *tools)
{
    size_t i;
    json_t *tool;
    whit_buf_append_str(text,
                        "\n\nAnswer with one JSON object and nothing else: {\"tool\":NAME,\"arguments\":{...}} "
                        "calls a tool, {\"answer\":TEXT} ends the task. The tools:\n");
    json_array_foreach((json_t *)(uintptr_t)tools, i, tool)
    {
        const json_t *function = json_object_get(tool, "function");
        char *properties =
            json_dumps(json_object_get(json_object_get(function, "parameters"), "properties"), JSON_COMPACT);
        whit_buf_printf(text, "%s %s: %s\n", json_string_value(json_object_get(function, "name")),
                        properties ? properties : "{}", json_string_value(json_object_get(function, "description")));
        free(properties);
    }
}

json_t *whit_plain_messages(const json_t *messages, const json_t *tools)
{
    json_t *list = json_array(), *message;
    size_t i, k;
    json_array_foreach((json_t *)(uintptr_t)messages, i, message)
    {
        const char *role = json_string_value(json_object_get(message, "role"));
        const char *content = json_string_value(json_object_get(message, "content"));
        json_t *calls = json_object_get(message, "tool_calls"), *call;
        whit_buf text = {0};
        if (!role) continue;
        if (json_array_size(calls)) {
            json_array_foreach(calls, k, call)
            {
                const json_t *function = json_object_get(call, "function");
                whit_buf_printf(&text, "%s{\"tool\":\"%s\",\"arguments\":%s}", k ? "\n" : "",
                                json_string_value(json_object_get(function, "name")),
                                json_string_value(json_object_get(function, "arguments")));
            }
        } else if (strcmp(role, "tool") == 0) {
            whit_buf_printf(&text, "Result:\n%s", whit_or_empty(content));
        } else {
            whit_buf_append_str(&text, whit_or_empty(content));
        }
        if (strcmp(role, "system") == 0) add_tools(&text, tools);
        whit_buf_append(&text, "", 1);
        if (!text.failed) add_turn(list, strcmp(role, "tool") == 0 ? "user" : role, whit_chars(&text));
        whit_buf_free(&text);
    }
    return list;
}

/* Returns whether an answer contains a fenced patch; objects in such an answer are then text, not calls. An answer that
 * begins with '{' is JSON, and may contain a patch in a string. */
static bool is_patch(const char *text, size_t n)
{
    size_t first = 0;
    while (first < n && memchr(" \t\r\n", text[first], 4)) first++;
    if (first < n && text[first] == '{') return false;
    return memmem(text, n, "```patch", 8) || memmem(text, n, "```diff", 7);
}

/* Returns the calls in an answer, with ids made from `number`. *answer becomes the text of the last object {"answer":
 * text}. */
static json_t *find_calls(const char *text, size_t n, uint64_t number, json_t **answer)
{
    json_t *calls = json_array();
    size_t n_tries = 0;
    for (size_t at = 0; at < n && n_tries < TRIES_MAX && json_array_size(calls) < CALLS_MAX;) {
        const char *open = memchr(text + at, '{', n - at);
        json_error_t where;
        if (!open) break;
        at = (size_t)(open - text);
        n_tries++;
        json_t *object = json_loadb(open, n - at, JSON_DISABLE_EOF_CHECK, &where);
        const json_t *tool = json_object_get(object, "tool"), *arguments = json_object_get(object, "arguments");
        json_t *words = json_object_get(object, "answer");
        if (json_is_string(tool) && json_is_object(arguments)) {
            char id[48], *dumped = json_dumps(arguments, JSON_COMPACT);
            snprintf(id, sizeof id, "plain-%llu-%zu", (unsigned long long)number, json_array_size(calls));
            json_array_append_new(calls,
                                  json_pack("{s:s, s:s, s:{s:O, s:s*}}", "id", id, "type", "function", "function",
                                            "name", tool, "arguments", dumped));
            free(dumped);
        } else if (json_is_string(words)) {
            json_decref(*answer);
            *answer = json_incref(words);
        }
        at += object && where.position > 0 ? (size_t)where.position : 1;
        json_decref(object);
    }
    return calls;
}

json_t *whit_plain_answer(const char *text, size_t n_bytes, uint64_t number, bool *is_formed)
{
    json_t *answer = NULL, *message;
    json_t *calls = n_bytes && !is_patch(text, n_bytes) ? find_calls(text, n_bytes, number, &answer) : json_array();
    *is_formed = json_array_size(calls) || answer;
    if (json_array_size(calls)) {
        message = json_pack("{s:s, s:n, s:O}", "role", "assistant", "content", "tool_calls", calls);
    } else if (answer) {
        message = json_pack("{s:s, s:O}", "role", "assistant", "content", answer);
    } else {
        json_t *whole = json_stringn(n_bytes ? text : "", n_bytes);
        message = json_pack("{s:s, s:o}", "role", "assistant", "content", whole ? whole : json_string(""));
    }
    json_decref(answer);
    json_decref(calls);
    return message;
}
