/* SPDX-License-Identifier: MIT
 * Values of tagged arguments. */
#include "runtime/call_values.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

bool whit_call_value_is_text(const whit_json *json, uint32_t schema)
{
    uint32_t type = whit_json_get(json, schema, "type"), values = whit_json_get(json, schema, "enum");
    if (type != WHIT_JSON_NONE)
        return whit_json_is(json, type, "string") &&
            !whit_json_bool(json, whit_json_get(json, schema, "nullable"), false);
    if (whit_json_type_of(json, whit_json_get(json, schema, "const")) == WHIT_JSON_STRING) return true;
    bool any = false;
    for (uint32_t k = whit_json_first(json, values); k != WHIT_JSON_NONE; k = whit_json_next(json, values, k)) {
        if (whit_json_type_of(json, k) != WHIT_JSON_STRING) return false;
        any = true;
    }
    return any;
}

/* Returns the value of a member whose name is not zero-terminated. */
static uint32_t member_of(const whit_json *json, uint32_t object, const char *name, size_t n_name)
{
    for (uint32_t k = whit_json_first(json, object); k != WHIT_JSON_NONE; k = whit_json_next(json, object, k)) {
        size_t n;
        const char *key = whit_json_string(json, k, &n);
        if (key && n == n_name && memcmp(key, name, n) == 0) return k + 1;
    }
    return WHIT_JSON_NONE;
}

uint32_t whit_call_parameter(const whit_json *tools, const char *name, size_t n_name, const char *key, size_t n_key)
{
    for (uint32_t at = whit_json_first(tools, WHIT_JSON_ROOT); at != WHIT_JSON_NONE;
         at = whit_json_next(tools, WHIT_JSON_ROOT, at)) {
        uint32_t function = whit_json_get(tools, at, "function");
        size_t n;
        const char *own = whit_json_string(tools, whit_json_get(tools, function, "name"), &n);
        if (!own || n != n_name || memcmp(own, name, n) != 0) continue;
        uint32_t properties = whit_json_get(tools, whit_json_get(tools, function, "parameters"), "properties");
        if (whit_json_type_of(tools, properties) != WHIT_JSON_OBJECT) return WHIT_JSON_NONE;
        return member_of(tools, properties, key, n_key);
    }
    return WHIT_JSON_NONE;
}

bool whit_call_value_write(const char *text, size_t n_bytes, bool is_text, whit_buf *out)
{
    static const char *const words[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
    whit_json json = {0};
    if (is_text) return whit_json_write_string(out, text, n_bytes);
    const char *value = text;
    size_t n = n_bytes;
    while (n && is_blank(value[0])) value++, n--;
    while (n && is_blank(value[n - 1])) n--;
    for (int i = 0; i < 3; i++)
        if (n == strlen(words[i][0]) && memcmp(value, words[i][0], n) == 0)
            return whit_buf_append_str(out, words[i][1]);
    bool constant = n && (value[0] == 'N' || value[0] == 'I' || (n > 1 && value[0] == '-' && value[1] == 'I'));
    if (!constant && whit_json_parse("value", value, n, out->allocator, &json, NULL) == WHIT_OK) {
        whit_json_close(&json);
        return whit_buf_append(out, value, n);
    }
    return whit_json_write_string(out, text, n_bytes);
}

bool whit_call_value_is_open(const char *text, size_t n_bytes)
{
    size_t i = 0;
    bool in_string = false;
    while (i < n_bytes && is_blank(text[i])) i++;
    if (i == n_bytes || !strchr("{[\"", text[i])) return false;
    for (; i < n_bytes; i++) {
        if (in_string && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            in_string = !in_string;
    }
    return in_string;
}
