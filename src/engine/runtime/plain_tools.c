/* SPDX-License-Identifier: MIT */
#include "runtime/plain_tools.h"

#include "base/json.h"

enum { TEXT_BYTES_MAX = 1 << 30 };

static const char introduction[] =
    "You can call tools. To call one, write\n<tool_call>\n{\"name\": NAME, \"arguments\": {...}}\n</tool_call>\nand "
    "nothing after it; calls may follow each other. The results come in <tool_response>. Where no tool is needed, "
    "answer "
    "in plain text. The tools, one a line:\n";

/* The whole text is marked as data, so that no part of it becomes a special token. */
static bool describe_tools(const char *tools, size_t n_bytes, whit_buf *out, whit_error *error, whit_status *status)
{
    whit_json json = {0};
    *status = whit_json_parse("tools", tools, n_bytes, out->allocator, &json, error);
    if (*status != WHIT_OK) return false;
    bool ok = whit_buf_append_str(out, introduction);
    if (whit_json_type_of(&json, WHIT_JSON_ROOT) != WHIT_JSON_ARRAY)
        *status = whit_fail(error, WHIT_ERROR_ARGUMENT, "tools are a list");
    else if (!whit_json_count(&json, WHIT_JSON_ROOT))
        out->size_bytes = 0;
    for (uint32_t at = whit_json_first(&json, WHIT_JSON_ROOT); *status == WHIT_OK && ok && at != WHIT_JSON_NONE;
         at = whit_json_next(&json, WHIT_JSON_ROOT, at)) {
        size_t n;
        uint32_t function = whit_json_get(&json, at, "function");
        const char *text = whit_json_raw(&json, function != WHIT_JSON_NONE ? function : at, &n);
        ok = whit_buf_append(out, text, n) && whit_buf_append_str(out, "\n");
    }
    whit_json_close(&json);
    if (ok && *status == WHIT_OK) return true;
    if (*status == WHIT_OK) *status = whit_fail_memory(error, "the description of the tools", n_bytes);
    return false;
}

static const whit_text *text_member(const whit_datum *message, const char *key)
{
    const whit_datum *value = whit_dict_get_str(message->dict, key);
    return value && whit_datum_is_str(*value) ? value->text : NULL;
}

static bool has_role(const whit_datum *message, const char *role)
{
    const whit_text *own = text_member(message, "role");
    return own && whit_text_is(own, role);
}

static bool set_text(whit_datum_pool *pool, whit_datum *message, const char *key, const whit_text *text)
{
    return text && whit_dict_set_str(pool, message->dict, key, whit_datum_text(text));
}

/* Returns first + between + second; NULL if out of memory. */
static const whit_text *join_texts(whit_datum_pool *pool, const whit_text *first, const char *between,
                                   const whit_text *second)
{
    whit_builder b = whit_builder_begin(pool, TEXT_BYTES_MAX);
    if (first) whit_builder_text(&b, first);
    whit_builder_bytes(&b, between, strlen(between), true);
    if (second) whit_builder_text(&b, second);
    return whit_builder_end(&b);
}

/* Turns the result of a call into a user message. */
static bool turn_result(whit_datum_pool *pool, whit_datum *message)
{
    const whit_text *content = text_member(message, "content");
    whit_builder b = whit_builder_begin(pool, TEXT_BYTES_MAX);
    whit_builder_bytes(&b, "<tool_response>\n", 16, true);
    if (content) whit_builder_text(&b, content);
    whit_builder_bytes(&b, "\n</tool_response>", 17, true);
    return set_text(pool, message, "content", whit_builder_end(&b)) &&
        set_text(pool, message, "role", whit_text_new(pool, "user", 4, false));
}

/* Adds the description to the list's first message, or in a new message before it. */
static bool add_description(const whit_tool_style *style, const whit_text *about, whit_datum_pool *pool,
                            whit_datum *items, size_t *n)
{
    if (*n && has_role(&items[0], "system"))
        return set_text(pool, &items[0], "content", join_texts(pool, text_member(&items[0], "content"), "\n\n", about));
    for (size_t i = 0; !style->takes_system && i < *n; i++)
        if (has_role(&items[i], "user"))
            return set_text(pool, &items[i], "content",
                            join_texts(pool, about, "\n", text_member(&items[i], "content")));
    memmove(items + 1, items, *n * sizeof *items);
    ++*n;
    return whit_datum_dict(pool, &items[0]) &&
        set_text(pool, &items[0], "role",
                 whit_text_new(pool, style->takes_system ? "system" : "user", style->takes_system ? 6 : 4, false)) &&
        set_text(pool, &items[0], "content", about);
}

whit_status whit_plain_tools_write(const whit_tool_style *style, const char *tools, size_t n_bytes,
                                   whit_datum_pool *pool, whit_datum *messages, whit_error *error)
{
    whit_buf about = {.allocator = pool->allocator};
    whit_status status = WHIT_OK;
    size_t n = 0, n_messages = messages->list->n;
    whit_datum *items = whit_alloc(pool->allocator, (n_messages + 1) * sizeof *items);
    bool ok = items != NULL, was_result = false;
    if (tools && !describe_tools(tools, n_bytes, &about, error, &status)) ok = false;
    for (size_t i = 0; ok && i < n_messages; i++) {
        whit_datum message = messages->list->items[i];
        bool is_result = has_role(&message, "tool");
        if (is_result) ok = turn_result(pool, &message);
        /* Many templates want roles to alternate. */
        if (ok && was_result && has_role(&message, "user"))
            ok = set_text(
                pool, &items[n - 1], "content",
                join_texts(pool, text_member(&items[n - 1], "content"), "\n", text_member(&message, "content")));
        else
            items[n++] = message;
        was_result = is_result;
    }
    if (ok && about.size_bytes)
        ok = add_description(style, whit_text_new(pool, (const char *)about.data, about.size_bytes, true), pool, items,
                             &n);
    ok = ok && whit_datum_list(pool, items, n, messages);
    if (status == WHIT_OK && !ok) status = whit_fail_memory(error, "the conversation", n_bytes);
    whit_free(pool->allocator, items, (n_messages + 1) * sizeof *items);
    whit_buf_free(&about);
    return status;
}
