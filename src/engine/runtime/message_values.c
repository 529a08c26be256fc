/* SPDX-License-Identifier: MIT */
#include "runtime/message_values.h"

enum { TEXT_BYTES_MAX = 1 << 30 };

/* Writes a JSON string that escapes only quotes, backslashes and control characters. */
static bool write_short(const char *text, size_t n, whit_buf *out)
{
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    whit_buf_append_str(out, "\"");
    for (size_t i = 0; i < n; i++) {
        const char *at = text[i] ? strchr(named, text[i]) : NULL;
        if (at)
            whit_buf_printf(out, "\\%c", letters[at - named]);
        else if ((uint8_t)text[i] < 0x20)
            whit_buf_printf(out, "\\u%04X", (uint8_t)text[i]);
        else
            whit_buf_append(out, text + i, 1);
    }
    return whit_buf_append_str(out, "\"");
}

/* Calls itself for each level of nesting, whose depth the JSON reader limits. */
bool whit_message_write_json(const whit_json *json, uint32_t at, bool compact, whit_buf *out)
{
    size_t n;
    const char *text = whit_json_string(json, at, &n);
    if (text) return compact ? write_short(text, n, out) : whit_json_write_string(out, text, n);
    const whit_json_type type = whit_json_type_of(json, at);
    if (type != WHIT_JSON_ARRAY && type != WHIT_JSON_OBJECT) {
        text = whit_json_raw(json, at, &n);
        return whit_buf_append(out, text, n);
    }
    const bool is_list = type == WHIT_JSON_ARRAY;
    const char *comma = compact ? "," : ", ";
    const char *colon = compact ? ":" : ": ";
    bool ok = whit_buf_append_str(out, is_list ? "[" : "{");
    for (uint32_t i = whit_json_first(json, at), first = i; ok && i != WHIT_JSON_NONE; i = whit_json_next(json, at, i))
        ok = (i == first || whit_buf_append_str(out, comma)) && whit_message_write_json(json, i, compact, out) &&
            (is_list || (whit_buf_append_str(out, colon) && whit_message_write_json(json, i + 1, compact, out)));
    return ok && whit_buf_append_str(out, is_list ? "]" : "}");
}

const whit_text *whit_message_text(const whit_datum *message, const char *key)
{
    const whit_datum *value = message->kind == WHIT_DATUM_DICT ? whit_dict_get_str(message->dict, key) : NULL;
    return value && whit_datum_is_str(*value) ? value->text : NULL;
}

bool whit_message_has_role(const whit_datum *message, const char *role)
{
    const whit_text *own = whit_message_text(message, "role");
    return own && whit_text_is(own, role);
}

bool whit_message_set_text(whit_datum_pool *pool, whit_datum *message, const char *key, const whit_text *text)
{
    return text && whit_dict_set_str(pool, message->dict, key, whit_datum_text(text));
}

const whit_text *whit_message_join(whit_datum_pool *pool, const whit_text *first, const char *between,
                                   const whit_text *second)
{
    whit_builder b = whit_builder_begin(pool, TEXT_BYTES_MAX);
    if (first) whit_builder_text(&b, first);
    whit_builder_bytes(&b, between, strlen(between), true);
    if (second) whit_builder_text(&b, second);
    return whit_builder_end(&b);
}

/* ---- system messages ------------------------------------------------------------------------ */

static bool is_system(const whit_datum *message)
{
    return whit_message_has_role(message, "system") || whit_message_has_role(message, "developer");
}

void whit_message_count_system(const whit_datum *messages, size_t *n_all, size_t *n_first)
{
    *n_all = *n_first = 0;
    for (size_t i = 0; i < messages->list->n; i++) {
        if (!is_system(&messages->list->items[i])) continue;
        *n_first += *n_first == i;
        ++*n_all;
    }
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Returns whether a prompt contains `text`; white space around the text is ignored, because templates remove it. */
static bool prompt_has(const char *prompt, size_t n_bytes, const whit_text *text)
{
    const char *begin = text->bytes;
    size_t n = text->n_bytes;
    while (n && is_blank(begin[n - 1])) n--;
    while (n && is_blank(*begin)) begin++, n--;
    return !n || (n_bytes && memmem(prompt, n_bytes, begin, n) != NULL);
}

bool whit_message_has_late_system(const whit_datum *messages, const char *prompt, size_t n_bytes)
{
    size_t n_all, n_first;
    whit_message_count_system(messages, &n_all, &n_first);
    for (size_t i = n_first; i < messages->list->n; i++) {
        const whit_datum *message = &messages->list->items[i];
        const whit_text *content = whit_message_text(message, "content");
        if (is_system(message) && content && !prompt_has(prompt, n_bytes, content)) return false;
    }
    return true;
}

/* Appends the text of `message` to the last of n messages if that one is a user message with a text; *joined is whether
 * it was appended. Returns false if memory runs out. */
static bool join_to_last(whit_datum_pool *pool, whit_datum *items, size_t n, const whit_datum *message, bool *joined)
{
    const whit_text *first = n ? whit_message_text(&items[n - 1], "content") : NULL;
    const whit_text *second = whit_message_text(message, "content");
    *joined = n && whit_message_has_role(&items[n - 1], "user") && first && second;
    return !*joined ||
        whit_message_set_text(pool, &items[n - 1], "content", whit_message_join(pool, first, "\n\n", second));
}

bool whit_message_fold_system(whit_datum_pool *pool, size_t n_kept, whit_datum *messages)
{
    whit_datum *items = messages->list->items;
    size_t n = 0;
    bool was_system = false;
    for (size_t i = 0; i < messages->list->n; i++) {
        whit_datum message = items[i];
        const bool is_turned = i >= n_kept && is_system(&message);
        const bool continues = was_system && whit_message_has_role(&message, "user");
        bool joined = false;
        if (is_turned &&
            !whit_message_set_text(pool, &message, "role", whit_text_new(pool, "user", strlen("user"), false)))
            return false;
        if ((is_turned || continues) && !join_to_last(pool, items, n, &message, &joined)) return false;
        if (!joined) items[n++] = message;
        was_system = is_turned || continues;
    }
    return whit_datum_list(pool, items, n, messages);
}
