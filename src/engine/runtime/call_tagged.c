/* SPDX-License-Identifier: MIT
 * Builds the grammar of tagged arguments. */
#include "runtime/call_tagged.h"
#include "base/items.h"

#include "grammar/schema.h"
#include "runtime/call_values.h"

enum { NAME_MAX_BYTES = 64, PROPERTIES_MAX = 256 };

static const char end_tag[] = "</parameter>";

/* Builds the rule of any number of parameters with arbitrary texts and with names of letters, digits, -, . and _. */
static whit_status any_parameters(whit_automaton *g, const char *name, uint32_t *rule, whit_error *error)
{
    static const char schema[] = "{\"type\": \"string\"}";
    whit_byte_set set = {0};
    uint32_t text;
    WHIT_TRY(whit_json_schema_compile_texts(g, name, schema, sizeof schema - 1, end_tag, &text, error));
    for (uint8_t c = '-'; c <= 'z'; c++)
        if (c <= '9' || c == '_' || (c >= 'A' && c <= 'Z') || c >= 'a') whit_byte_add(&set, c);
    set.bits['/' / 64] &= ~(UINT64_C(1) << '/' % 64);
    uint32_t end = whit_automaton_literal(g, "\n</parameter>\n", WHIT_AUTOMATON_RET);
    uint32_t value = whit_automaton_literal(g, ">\n", whit_automaton_call(g, text, end));
    uint32_t key = whit_automaton_repeat(g, whit_automaton_set(g, &set, WHIT_AUTOMATON_RET), 1, NAME_MAX_BYTES, value);
    *rule = whit_automaton_rule(g);
    whit_automaton_define(g, *rule,
                          whit_automaton_repeat(g, whit_automaton_literal(g, "<parameter=", key), 0,
                                                WHIT_AUTOMATON_UNBOUNDED, WHIT_AUTOMATON_RET));
    return WHIT_OK;
}

whit_status whit_call_leaf_rule(whit_automaton *g, const whit_json *json, uint32_t parameters, const char *pointer,
                                const char *mark, const char *name, uint32_t *rule, whit_error *error)
{
    size_t n;
    const char *whole = whit_json_raw(json, parameters, &n);
    whit_buf text = {.allocator = g->allocator};
    whit_buf_printf(&text, "{\"$ref\": \"whit:arguments#%s\"", pointer);
    whit_buf_append_str(&text, ", \"$defs\": {\"p\": {\"$id\": \"whit:arguments\", ");
    /* if the schema has its own $id, that one counts, because it comes last: references then find nothing and are
     * refused */
    whit_buf_append(&text, whole + 1, n - 1);
    whit_buf_append_str(&text, "}}");
    whit_status status = text.failed ? whit_fail_memory(error, "a schema of arguments", n) : WHIT_OK;
    const char *schema = whit_chars(&text);
    if (status == WHIT_OK)
        status = mark ? whit_json_schema_compile_texts(g, name, schema, text.size_bytes, mark, rule, error)
                      : whit_json_schema_compile(g, name, schema, text.size_bytes, rule, error);
    /* Changes the place in the error message to the place in the caller's schema. */
    char *moved = status != WHIT_OK && error ? strstr(error->message, "#/$defs/p/") : NULL;
    if (moved) memmove(moved + 1, moved + 9, strlen(moved + 9) + 1);
    whit_buf_free(&text);
    return status;
}

/* Builds the rule of one property's value. */
static whit_status value_rule(whit_automaton *g, const whit_json *json, uint32_t parameters, uint32_t key,
                              const char *name, uint32_t *rule, whit_error *error)
{
    size_t n_key;
    const char *own = whit_json_string(json, key, &n_key);
    whit_buf pointer = {.allocator = g->allocator};
    whit_buf_append_str(&pointer, "/properties/");
    for (size_t i = 0; i < n_key; i++) {
        bool plain = (own[i] >= 'a' && own[i] <= 'z') || (own[i] >= 'A' && own[i] <= 'Z') ||
            (own[i] >= '0' && own[i] <= '9') || own[i] == '_';
        whit_buf_printf(&pointer, plain ? "%c" : "%%%02X", (uint8_t)own[i]);
    }
    whit_buf_append_zeros(&pointer, 1);
    whit_status status;
    if (pointer.failed)
        status = whit_fail_memory(error, "a schema of arguments", n_key);
    else
        status = whit_call_leaf_rule(g, json, parameters, whit_chars(&pointer),
                                     whit_call_value_is_text(json, key + 1) ? end_tag : NULL, name, rule, error);
    whit_buf_free(&pointer);
    return status;
}

static bool is_required(const whit_json *json, uint32_t parameters, uint32_t key)
{
    uint32_t list = whit_json_get(json, parameters, "required");
    size_t n, m;
    const char *name = whit_json_string(json, key, &n);
    for (uint32_t k = whit_json_first(json, list); k != WHIT_JSON_NONE; k = whit_json_next(json, list, k)) {
        const char *own = whit_json_string(json, k, &m);
        if (own && n == m && memcmp(own, name, n) == 0) return true;
    }
    return false;
}

/* Fails for keywords of the arguments' schema that the grammar would not enforce, and for required properties that are
 * not in `properties`. */
static whit_status check_keywords(const whit_json *json, uint32_t parameters, const char *name, whit_error *error)
{
    static const char *const refused[] = {"anyOf",
                                          "oneOf",
                                          "allOf",
                                          "not",
                                          "if",
                                          "$ref",
                                          "minProperties",
                                          "maxProperties",
                                          "dependentRequired",
                                          "dependentSchemas",
                                          "dependencies",
                                          "enum",
                                          "const",
                                          "patternProperties",
                                          "propertyNames",
                                          "$id"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (whit_json_get(json, parameters, refused[i]) != WHIT_JSON_NONE)
            return whit_fail(
                error, WHIT_ERROR_UNSUPPORTED,
                "%s: #/%s: keyword not supported for this model's tool calls: leave it out of the parameters", name,
                refused[i]);
    uint32_t list = whit_json_get(json, parameters, "required"), known = whit_json_get(json, parameters, "properties");
    for (uint32_t k = whit_json_first(json, list); k != WHIT_JSON_NONE; k = whit_json_next(json, list, k)) {
        bool found = false;
        for (uint32_t p = whit_json_first(json, known); p != WHIT_JSON_NONE && !found;
             p = whit_json_next(json, known, p)) {
            size_t n, m;
            const char *a = whit_json_string(json, k, &n), *b = whit_json_string(json, p, &m);
            found = a && b && n == m && memcmp(a, b, n) == 0;
        }
        if (!found)
            return whit_fail(error, WHIT_ERROR_UNSUPPORTED,
                             "%s: #/required: a required name is missing from properties: add it there", name);
    }
    return WHIT_OK;
}

/* Returns whether a name can be written verbatim between "=" and ">". */
static bool is_plain_name(const char *text, size_t n)
{
    bool ok = n > 0 && n <= 256;
    for (size_t i = 0; i < n && ok; i++) ok = (uint8_t)text[i] >= 0x20 && text[i] != '>';
    return ok;
}

whit_status whit_call_tagged_rule(whit_automaton *g, const whit_json *json, uint32_t parameters, bool held,
                                  const char *name, uint32_t *rule, whit_error *error)
{
    if (!held) return any_parameters(g, name, rule, error);
    uint32_t keys[PROPERTIES_MAX], n = 0, known = WHIT_JSON_NONE;
    if (whit_json_type_of(json, parameters) == WHIT_JSON_OBJECT) {
        uint32_t type = whit_json_get(json, parameters, "type");
        if (type != WHIT_JSON_NONE && !whit_json_is(json, type, "object"))
            return whit_fail(error, WHIT_ERROR_FORMAT, "%s: #/type: the arguments of a function must be an object",
                             name);
        WHIT_TRY(check_keywords(json, parameters, name, error));
        known = whit_json_get(json, parameters, "properties");
    } else if (whit_json_type_of(json, parameters) > WHIT_JSON_NULL) {
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: a schema must be an object", name);
    }
    for (uint32_t k = whit_json_first(json, known); k != WHIT_JSON_NONE; k = whit_json_next(json, known, k)) {
        size_t n_key;
        const char *key = whit_json_string(json, k, &n_key);
        if (n == PROPERTIES_MAX || !key || !is_plain_name(key, n_key))
            return whit_fail(
                error, WHIT_ERROR_UNSUPPORTED, "%s: #/properties: %s", name,
                n == PROPERTIES_MAX
                    ? "the object has more than 256 properties, the limit of this model's tool calls"
                    : "a name must have 1 to 256 bytes, no > and no control character: rename the property");
        keys[n++] = k;
    }
    uint32_t begin = WHIT_AUTOMATON_RET;
    while (n--) {
        uint32_t value;
        size_t n_key;
        const char *key = whit_json_string(json, keys[n], &n_key);
        WHIT_TRY(value_rule(g, json, parameters, keys[n], name, &value, error));
        uint32_t way = whit_automaton_literal(
            g, ">\n", whit_automaton_call(g, value, whit_automaton_literal(g, "\n</parameter>\n", begin)));
        way = whit_automaton_literal(g, "<parameter=", whit_automaton_text(g, key, n_key, way));
        uint32_t ways[] = {way, begin};
        begin = is_required(json, parameters, keys[n]) ? way : whit_automaton_split(g, ways, 2);
    }
    *rule = whit_automaton_rule(g);
    whit_automaton_define(g, *rule, begin);
    return WHIT_OK;
}
