/* SPDX-License-Identifier: MIT */
#include "runtime/plain_tools.h"

#include "base/items.h"
#include "base/json.h"
#include "runtime/message_values.h"

enum { TEXT_BYTES_MAX = 1 << 30 };

static const char introduction[] =
    "You can call tools. To call one, write\n<tool_call>\n{\"name\": NAME, \"arguments\": {...}}\n</tool_call>\nand "
    "nothing after it; calls may follow each other. The results come in <tool_response>. Where no tool is needed, "
    "answer "
    "in plain text. The tools, one a line:\n";

/* Appends the description of a JSON list of tools (nothing for an empty list). The caller marks all of it as data, so
 * that no part becomes a special token. Returns false on failure, with the cause in *status and `error`. */
static bool describe_tools(const char *tools, size_t n_bytes, whit_buf *out, whit_error *error, whit_status *status)
{
    whit_json json = {0};
    *status = whit_json_parse("tools", tools, n_bytes, out->allocator, &json, error);
    if (*status != WHIT_OK) return false;
    bool ok = whit_buf_append_str(out, introduction);
    if (whit_json_type_of(&json, WHIT_JSON_ROOT) != WHIT_JSON_ARRAY)
        *status = whit_fail(error, WHIT_ERROR_ARGUMENT, "tools: expected a JSON list");
    else if (!whit_json_count(&json, WHIT_JSON_ROOT))
        out->size_bytes = 0;
    for (uint32_t at = whit_json_first(&json, WHIT_JSON_ROOT); *status == WHIT_OK && ok && at != WHIT_JSON_NONE;
         at = whit_json_next(&json, WHIT_JSON_ROOT, at)) {
        const uint32_t function = whit_json_get(&json, at, "function");
        ok = whit_message_write_json(&json, function != WHIT_JSON_NONE ? function : at, true, out) &&
            whit_buf_append_str(out, "\n");
    }
    whit_json_close(&json);
    if (ok && *status == WHIT_OK) return true;
    if (*status == WHIT_OK) *status = whit_fail_memory(error, "the description of the tools", n_bytes);
    return false;
}

/* Converts a message with the result of a call to a user message. */
static bool turn_result(whit_datum_pool *pool, whit_datum *message)
{
    const whit_text *content = whit_message_text(message, "content");
    whit_builder b = whit_builder_begin(pool, TEXT_BYTES_MAX);
    whit_builder_bytes(&b, "<tool_response>\n", 16, true);
    if (content) whit_builder_text(&b, content);
    whit_builder_bytes(&b, "\n</tool_response>", 17, true);
    return whit_message_set_text(pool, message, "content", whit_builder_end(&b)) &&
        whit_message_set_text(pool, message, "role", whit_text_new(pool, "user", 4, false));
}

/* Appends the description `about` to the first message if it is a system message. Otherwise puts it in a new first
 * message; if the template accepts no system message, puts it before the text of the first user message. */
static bool add_description(const whit_tool_style *style, const whit_text *about, whit_datum_pool *pool,
                            whit_datum *items, size_t *n)
{
    if (*n && whit_message_has_role(&items[0], "system"))
        return whit_message_set_text(pool, &items[0], "content",
                                     whit_message_join(pool, whit_message_text(&items[0], "content"), "\n\n", about));
    for (size_t i = 0; !style->takes_system && i < *n; i++)
        if (whit_message_has_role(&items[i], "user"))
            return whit_message_set_text(pool, &items[i], "content",
                                         whit_message_join(pool, about, "\n", whit_message_text(&items[i], "content")));
    memmove(items + 1, items, *n * sizeof *items);
    ++*n;
    const char *role = style->takes_system ? "system" : "user";
    return whit_datum_dict(pool, &items[0]) &&
        whit_message_set_text(pool, &items[0], "role", whit_text_new(pool, role, style->takes_system ? 6 : 4, false)) &&
        whit_message_set_text(pool, &items[0], "content", about);
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
        bool is_result = whit_message_has_role(&message, "tool");
        if (is_result) ok = turn_result(pool, &message);
        /* A user message after a result is appended to the result, because many templates require alternating roles. */
        if (ok && was_result && whit_message_has_role(&message, "user"))
            ok = whit_message_set_text(pool, &items[n - 1], "content",
                                       whit_message_join(pool, whit_message_text(&items[n - 1], "content"), "\n",
                                                         whit_message_text(&message, "content")));
        else
            items[n++] = message;
        was_result = is_result;
    }
    if (ok && about.size_bytes)
        ok = add_description(style, whit_text_new(pool, whit_chars(&about), about.size_bytes, true), pool, items, &n);
    ok = ok && whit_datum_list(pool, items, n, messages);
    if (status == WHIT_OK && !ok) status = whit_fail_memory(error, "the conversation", n_bytes);
    whit_free(pool->allocator, items, (n_messages + 1) * sizeof *items);
    whit_buf_free(&about);
    return status;
}
