/* SPDX-License-Identifier: MIT
 * Removes keywords whose value is null. JSON Schema does not define them, but some clients write absent values like
 * this: in Go an empty list, such as `required`, becomes null. */
#include "grammar/schema_parts.h"

static bool is_one_of(const whit_json *json, uint32_t key, const char *const *names)
{
    while (*names && !whit_json_is(json, key, *names)) names++;
    return *names != NULL;
}

static bool write_raw(const whit_json *json, uint32_t at, whit_buf *out)
{
    size_t n;
    const char *text = whit_json_string(json, at, &n);
    if (text) return whit_json_write_string(out, text, n);
    text = whit_json_raw(json, at, &n);
    return whit_buf_append(out, text, n);
}

static bool write_schema(const whit_json *json, uint32_t at, whit_buf *out, bool *dropped);

/* Writes the members of an object. It is a schema, whose members with the value null are left out, except "const"; or,
 * if `is_map`, a map of arbitrary names to schemas, whose members are all written. *dropped becomes true if a member is
 * left out at any depth. */
static bool write_members(const whit_json *json, uint32_t object, bool is_map, whit_buf *out, bool *dropped)
{
    static const char *const maps[] = {"properties",  "patternProperties", "$defs",
                                       "definitions", "dependentSchemas",  NULL};
    static const char *const values[] = {"const", "enum", "default", "examples", "example", NULL};
    bool ok = whit_buf_append_str(out, "{"), is_first = true;
    for (uint32_t key = whit_json_first(json, object); ok && key != WHIT_JSON_NONE;
         key = whit_json_next(json, object, key)) {
        const bool is_value = !is_map && is_one_of(json, key, values);
        if (!is_map && whit_json_type_of(json, key + 1) == WHIT_JSON_NULL && !whit_json_is(json, key, "const")) {
            *dropped = true;
            continue;
        }
        ok =
            (is_first || whit_buf_append_str(out, ", ")) && write_raw(json, key, out) && whit_buf_append_str(out, ": ");
        is_first = false;
        bool holds_map = !is_map && is_one_of(json, key, maps) && whit_json_type_of(json, key + 1) == WHIT_JSON_OBJECT;
        if (ok && holds_map)
            ok = write_members(json, key + 1, true, out, dropped);
        else if (ok)
            ok = is_value ? write_raw(json, key + 1, out) : write_schema(json, key + 1, out, dropped);
    }
    return ok && whit_buf_append_str(out, "}");
}

/* Writes a schema, or each schema of a list, without keywords whose value is null. Other values are written
 * unchanged. */
static bool write_schema(const whit_json *json, uint32_t at, whit_buf *out, bool *dropped)
{
    if (whit_json_type_of(json, at) == WHIT_JSON_OBJECT) return write_members(json, at, false, out, dropped);
    if (whit_json_type_of(json, at) != WHIT_JSON_ARRAY) return write_raw(json, at, out);
    bool ok = whit_buf_append_str(out, "["), is_first = true;
    for (uint32_t k = whit_json_first(json, at); ok && k != WHIT_JSON_NONE; k = whit_json_next(json, at, k)) {
        ok = (is_first || whit_buf_append_str(out, ", ")) && write_schema(json, k, out, dropped);
        is_first = false;
    }
    return ok && whit_buf_append_str(out, "]");
}

bool whit_json_schema_drop_nulls(const whit_json *json, whit_buf *out, bool *dropped)
{
    *dropped = false;
    return write_schema(json, WHIT_JSON_ROOT, out, dropped);
}
