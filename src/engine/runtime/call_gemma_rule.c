/* SPDX-License-Identifier: MIT
 * Builds the grammar of Gemma 4's notation of arguments. The rules of objects and lists are built here from their
 * schemas; strings are written verbatim, restricted by their schemas; numbers, booleans and null are as in JSON. */
#include "base/phrase.h"
#include "grammar/schema.h"
#include "base/items.h"
#include "runtime/call_gemma.h"
#include "runtime/call_tagged.h"

#include <stdio.h>
#include <strings.h>

enum { NAME_MAX_BYTES = 64, PROPERTIES_MAX = 256, VALUES_MAX = 512, POINTER_MAX_BYTES = 1024, NESTED_MAX = 32 };

struct builder {
    whit_automaton *g;
    const whit_json *json;
    uint32_t parameters;
    const char *name;
    /* rules for arbitrary values and members; WHIT_AUTOMATON_NONE until they are built */
    uint32_t any_value, any_pairs;
    struct value {
        uint32_t schema, rule;
    } values[VALUES_MAX]; /* schemas and their rules; a rule is entered before its values are built, so that
                           * references may be recursive */
    uint32_t n_values, n_nested;
    whit_error *error;
};

/* Place of a schema within the parameters: a JSON pointer in the form of a URI's fragment. */
struct place {
    char text[POINTER_MAX_BYTES];
};

static whit_status refuse_keyword(const struct builder *b, const struct place *at, const char *keyword, const char *why)
{
    return whit_fail(b->error, WHIT_ERROR_UNSUPPORTED, "%s: #%s%s%s: %s", b->name, at->text, keyword[0] ? "/" : "",
                     keyword, why);
}

/* Appends "/" and `text`, escaped, to the pointer; false if it becomes too long. */
static bool add_step(struct place *at, const char *text, size_t n_bytes)
{
    size_t n = strlen(at->text);
    for (size_t i = 0; i <= n_bytes; i++) {
        const char c = i ? text[i - 1] : '/';
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
        if (n + 4 > sizeof at->text) return false;
        if (plain || !i)
            n += (size_t)sprintf(at->text + n, "%c", c);
        else if (c == '~' || c == '/')
            n += (size_t)sprintf(at->text + n, c == '~' ? "~0" : "~1");
        else
            n += (size_t)sprintf(at->text + n, "%%%02X", (uint8_t)c);
    }
    return true;
}

/* Appends /KEYWORD, or /KEYWORD/NAME, to the pointer; false if it becomes too long. */
static bool descend(struct place *at, const char *keyword, const char *name, size_t n_name)
{
    return add_step(at, keyword, strlen(keyword)) && (!name || add_step(at, name, n_name));
}

/* ---- arbitrary values ------------------------------------------------------------------------ */

static uint32_t quoted(whit_automaton *g, uint32_t text_rule, uint32_t next)
{
    return whit_automaton_literal(g, WHIT_GEMMA_MARK,
                                  whit_automaton_call(g, text_rule, whit_automaton_literal(g, WHIT_GEMMA_MARK, next)));
}

/* Defines `rule` as any number of members KEY:VALUE with commas between them; a KEY consists of letters, digits, -, .
 * and _. */
static void define_pairs(whit_automaton *g, uint32_t rule, uint32_t value_rule)
{
    whit_byte_set set = {0};
    for (uint8_t c = '-'; c <= 'z'; c++)
        if ((c <= '9' && c != '/') || c == '_' || (c >= 'A' && c <= 'Z') || c >= 'a') whit_byte_add(&set, c);
    uint32_t key = whit_automaton_set(g, &set, WHIT_AUTOMATON_RET), pair = whit_automaton_rule(g);
    uint32_t value = whit_automaton_literal(g, ":", whit_automaton_call(g, value_rule, WHIT_AUTOMATON_RET));
    whit_automaton_define(g, pair, whit_automaton_repeat(g, key, 1, NAME_MAX_BYTES, value));
    uint32_t again = whit_automaton_literal(g, ",", whit_automaton_call(g, pair, WHIT_AUTOMATON_RET));
    uint32_t rest = whit_automaton_repeat(g, again, 0, WHIT_AUTOMATON_UNBOUNDED, WHIT_AUTOMATON_RET);
    uint32_t ways[] = {WHIT_AUTOMATON_RET, whit_automaton_call(g, pair, rest)};
    whit_automaton_define(g, rule, whit_automaton_split(g, ways, 2));
}

/* Builds a list, `min` to `max` values between brackets, followed by `next`. */
static uint32_t list_of(whit_automaton *g, uint32_t value_rule, uint32_t min, uint32_t max, uint32_t next)
{
    uint32_t end = whit_automaton_literal(g, "]", next), ways[2] = {end, end};
    if (max) {
        uint32_t again = whit_automaton_literal(g, ",", whit_automaton_call(g, value_rule, WHIT_AUTOMATON_RET));
        uint32_t most = max == WHIT_AUTOMATON_UNBOUNDED ? max : max - 1;
        ways[1] = whit_automaton_call(g, value_rule, whit_automaton_repeat(g, again, min ? min - 1 : 0, most, end));
    }
    uint32_t items;
    if (min)
        items = ways[1];
    else if (max)
        items = whit_automaton_split(g, ways, 2);
    else
        items = end;
    return whit_automaton_literal(g, "[", items);
}

static whit_status make_any(struct builder *b)
{
    static const char text[] = "{\"type\": \"string\"}", scalar[] = "{\"type\": [\"number\", \"boolean\", \"null\"]}";
    whit_automaton *g = b->g;
    uint32_t texts, scalars;
    if (b->any_value != WHIT_AUTOMATON_NONE) return WHIT_OK;
    WHIT_TRY(whit_json_schema_compile_texts(g, b->name, text, sizeof text - 1, WHIT_GEMMA_MARK, &texts, b->error));
    WHIT_TRY(whit_json_schema_compile(g, b->name, scalar, sizeof scalar - 1, &scalars, b->error));
    b->any_value = whit_automaton_rule(g);
    b->any_pairs = whit_automaton_rule(g);
    define_pairs(g, b->any_pairs, b->any_value);
    uint32_t ways[] = {
        quoted(g, texts, WHIT_AUTOMATON_RET), whit_automaton_call(g, scalars, WHIT_AUTOMATON_RET),
        whit_automaton_literal(
            g, "{", whit_automaton_call(g, b->any_pairs, whit_automaton_literal(g, "}", WHIT_AUTOMATON_RET))),
        list_of(g, b->any_value, 0, WHIT_AUTOMATON_UNBOUNDED, WHIT_AUTOMATON_RET)};
    whit_automaton_define(g, b->any_value, whit_automaton_split(g, ways, sizeof ways / sizeof *ways));
    return WHIT_OK;
}

/* ---- keywords -------------------------------------------------------------------------------- */

static bool is_one_of(const whit_json *json, uint32_t key, const char *const *words)
{
    for (; *words; words++)
        if (whit_json_is(json, key, *words)) return true;
    return false;
}

/* Returns whether a keyword only annotates a schema, and restricts no value. */
static bool is_annotation(const whit_json *json, uint32_t key)
{
    static const char *const words[] = {"title",    "description", "default",       "examples",  "example",
                                        "$comment", "deprecated",  "readOnly",      "writeOnly", "$schema",
                                        "$defs",    "definitions", "discriminator", NULL};
    size_t n;
    const char *name = whit_json_string(json, key, &n);
    return is_one_of(json, key, words) || (n > 2 && memcmp(name, "x-", 2) == 0);
}

/* Fails if a schema has a keyword that is neither an annotation nor in the list `known`. */
static whit_status check_keywords(const struct builder *b, uint32_t schema, const struct place *at,
                                  const char *const *known)
{
    for (uint32_t key = whit_json_first(b->json, schema); key != WHIT_JSON_NONE;
         key = whit_json_next(b->json, schema, key)) {
        size_t n;
        const char *name = whit_json_string(b->json, key, &n);
        char keyword[64];
        if (is_annotation(b->json, key) || is_one_of(b->json, key, known)) continue;
        snprintf(keyword, sizeof keyword, "%.*s", (int)(n < 60 ? n : 60), whit_or_empty(name));
        for (char *c = keyword; *c; c++)
            if ((uint8_t)*c < 0x20 || (uint8_t)*c > 0x7E) *c = '?';
        return refuse_keyword(b, at, keyword,
                              "keyword not supported for this model's tool calls: leave it out of the parameters");
    }
    return WHIT_OK;
}

/* ---- values by their schemas ----------------------------------------------------------------- */

static whit_status value_rule(struct builder *b, uint32_t schema, const struct place *at, uint32_t *rule);

/* Builds the rule of the strings that a schema accepts (is_text), or of its values as JSON. */
static whit_status leaf_rule(struct builder *b, const struct place *at, bool is_text, uint32_t *rule)
{
    return whit_call_leaf_rule(b->g, b->json, b->parameters, at->text, is_text ? WHIT_GEMMA_MARK : NULL, b->name, rule,
                               b->error);
}

static bool is_required(const whit_json *json, uint32_t schema, uint32_t key)
{
    uint32_t list = whit_json_get(json, schema, "required");
    size_t n, m;
    const char *name = whit_json_string(json, key, &n);
    for (uint32_t k = whit_json_first(json, list); k != WHIT_JSON_NONE; k = whit_json_next(json, list, k)) {
        const char *other = whit_json_string(json, k, &m);
        if (name && other && n == m && memcmp(other, name, n) == 0) return true;
    }
    return false;
}

/* Returns whether a property's name can be written without marks. */
static bool is_plain_name(const char *text, size_t n)
{
    bool ok = text && n > 0 && n <= 256 && text[0] != ' ';
    for (size_t i = 0; ok && i < n; i++) ok = (uint8_t)text[i] >= 0x20 && !strchr(":{}[],<\x7f", text[i]);
    return ok;
}

static whit_status check_required(const struct builder *b, uint32_t schema, uint32_t properties, const struct place *at)
{
    uint32_t list = whit_json_get(b->json, schema, "required");
    for (uint32_t k = whit_json_first(b->json, list); k != WHIT_JSON_NONE; k = whit_json_next(b->json, list, k)) {
        size_t n, m;
        const char *name = whit_json_string(b->json, k, &n);
        bool found = false;
        for (uint32_t p = whit_json_first(b->json, properties); p != WHIT_JSON_NONE && !found;
             p = whit_json_next(b->json, properties, p)) {
            const char *other = whit_json_string(b->json, p, &m);
            found = name && other && n == m && memcmp(name, other, n) == 0;
        }
        if (!found)
            return refuse_keyword(b, at, "required", "a required name is missing from properties: add it there");
    }
    return WHIT_OK;
}

/* Returns whether name a comes before name b in the template's order, which ignores case. */
static bool comes_before(const whit_json *json, uint32_t a, uint32_t b)
{
    size_t n, m;
    const char *x = whit_json_string(json, a, &n), *y = whit_json_string(json, b, &m);
    int order = strncasecmp(x, y, n < m ? n : m);
    return order ? order < 0 : n < m;
}

/* Builds the rule of an object's members, without the braces around them. */
static whit_status members_rule(struct builder *b, uint32_t schema, const struct place *at, uint32_t *rule)
{
    static const char *const known[] = {"type", "properties", "required", "additionalProperties", "nullable", NULL};
    whit_automaton *g = b->g;
    const whit_json *json = b->json;
    uint32_t keys[PROPERTIES_MAX], n = 0, properties = whit_json_get(json, schema, "properties"),
                                   others = whit_json_get(json, schema, "additionalProperties");
    WHIT_TRY(check_keywords(b, schema, at, known));
    WHIT_TRY(check_required(b, schema, properties, at));
    if (!whit_json_count(json, properties) && whit_json_bool(json, others, true)) {
        uint32_t value;
        struct place below = *at;
        WHIT_TRY(make_any(b));
        *rule = b->any_pairs;
        if (whit_json_type_of(json, others) != WHIT_JSON_OBJECT) return WHIT_OK;
        if (!descend(&below, "additionalProperties", NULL, 0))
            return refuse_keyword(b, at, "", "the path to this part of the schema has over 1,023 bytes: nest it less");
        WHIT_TRY(value_rule(b, others, &below, &value));
        *rule = whit_automaton_rule(g);
        define_pairs(g, *rule, value);
        return WHIT_OK;
    }
    for (uint32_t k = whit_json_first(json, properties); k != WHIT_JSON_NONE; k = whit_json_next(json, properties, k)) {
        size_t n_key;
        const char *key = whit_json_string(json, k, &n_key);
        if (n == PROPERTIES_MAX)
            return refuse_keyword(b, at, "properties",
                                  "the object has more than 256 properties, the limit of this model's tool calls");
        if (!is_plain_name(key, n_key))
            return refuse_keyword(
                b, at, "properties",
                "a name must have 1 to 256 bytes, none of :{}[],< and no space first: rename the property");
        uint32_t place = n++;
        for (; place && comes_before(json, k, keys[place - 1]); place--) keys[place] = keys[place - 1];
        keys[place] = k;
    }
    /* begins[0]: the members from here on if none was written before; begins[1]: the same after a member, so a comma
     * comes first. Members are added from the last one to the first. */
    uint32_t begins[2] = {WHIT_AUTOMATON_RET, WHIT_AUTOMATON_RET};
    while (n--) {
        uint32_t value;
        size_t n_key;
        struct place below = *at;
        const char *key = whit_json_string(json, keys[n], &n_key);
        if (!descend(&below, "properties", key, n_key))
            return refuse_keyword(b, at, "", "the path to this part of the schema has over 1,023 bytes: nest it less");
        WHIT_TRY(value_rule(b, keys[n] + 1, &below, &value));
        uint32_t member = whit_automaton_text(g, key, n_key,
                                              whit_automaton_literal(g, ":", whit_automaton_call(g, value, begins[1])));
        uint32_t with[2] = {member, whit_automaton_literal(g, ",", member)};
        for (int i = 0; i < 2; i++) {
            uint32_t ways[] = {with[i], begins[i]};
            begins[i] = is_required(json, schema, keys[n]) ? with[i] : whit_automaton_split(g, ways, 2);
        }
    }
    *rule = whit_automaton_rule(g);
    whit_automaton_define(g, *rule, begins[0]);
    return WHIT_OK;
}

/* Reads a keyword whose value is a number of elements; leaves *count unchanged if the keyword is absent. */
static whit_status read_count(const struct builder *b, uint32_t schema, const struct place *at, const char *keyword,
                              uint32_t *count)
{
    uint32_t node = whit_json_get(b->json, schema, keyword);
    double value;
    if (node == WHIT_JSON_NONE) return WHIT_OK;
    if (!whit_json_f64(b->json, node, &value) || !(value >= 0 && value <= 1000000) || value != (uint32_t)value)
        return refuse_keyword(b, at, keyword, "expected a whole number from 0 to 1,000,000");
    *count = (uint32_t)value;
    return WHIT_OK;
}

static whit_status list_way(struct builder *b, uint32_t schema, const struct place *at, uint32_t *way)
{
    static const char *const known[] = {"type", "items", "minItems", "maxItems", "nullable", NULL};
    uint32_t items = whit_json_get(b->json, schema, "items"), min = 0, max = WHIT_AUTOMATON_UNBOUNDED, value;
    struct place below = *at;
    WHIT_TRY(check_keywords(b, schema, at, known));
    WHIT_TRY(read_count(b, schema, at, "minItems", &min));
    WHIT_TRY(read_count(b, schema, at, "maxItems", &max));
    if (min > max) return refuse_keyword(b, at, "minItems", "minItems is larger than maxItems: no list fits both");
    if (items == WHIT_JSON_NONE) {
        WHIT_TRY(make_any(b));
        value = b->any_value;
    } else {
        if (!descend(&below, "items", NULL, 0))
            return refuse_keyword(b, at, "", "the path to this part of the schema has over 1,023 bytes: nest it less");
        WHIT_TRY(value_rule(b, items, &below, &value));
    }
    *way = list_of(b->g, value, min, max, WHIT_AUTOMATON_RET);
    return WHIT_OK;
}

/* Builds the values of one scalar type of a schema that also accepts other types. */
static whit_status scalar_way(struct builder *b, uint32_t schema, const char *type, uint32_t *way)
{
    static const char *const bounds[] = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"};
    whit_buf text = {.allocator = b->g->allocator};
    uint32_t rule;
    whit_buf_printf(&text, "{\"type\": \"%s\"", type);
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        size_t n;
        const char *raw = whit_json_raw(b->json, whit_json_get(b->json, schema, bounds[i]), &n);
        if (raw) whit_buf_printf(&text, ", \"%s\": %.*s", bounds[i], (int)n, raw);
    }
    whit_buf_append_str(&text, "}");
    whit_status status = text.failed
        ? whit_fail_memory(b->error, "a schema of arguments", text.size_bytes)
        : whit_json_schema_compile(b->g, b->name, whit_chars(&text), text.size_bytes, &rule, b->error);
    whit_buf_free(&text);
    if (status == WHIT_OK) *way = whit_automaton_call(b->g, rule, WHIT_AUTOMATON_RET);
    return status;
}

/* Builds the values of one type of a schema; is_only: the schema accepts no other type. */
static whit_status type_way(struct builder *b, uint32_t schema, const struct place *at, uint32_t type, bool is_only,
                            uint32_t *way)
{
    static const char *const scalars[] = {"number", "integer", "boolean", "null"};
    uint32_t rule;
    if (whit_json_is(b->json, type, "string")) {
        WHIT_TRY(leaf_rule(b, at, true, &rule));
        *way = quoted(b->g, rule, WHIT_AUTOMATON_RET);
        return WHIT_OK;
    }
    if (whit_json_is(b->json, type, "object")) {
        WHIT_TRY(members_rule(b, schema, at, &rule));
        *way = whit_automaton_literal(
            b->g, "{", whit_automaton_call(b->g, rule, whit_automaton_literal(b->g, "}", WHIT_AUTOMATON_RET)));
        return WHIT_OK;
    }
    if (whit_json_is(b->json, type, "array")) return list_way(b, schema, at, way);
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        if (!whit_json_is(b->json, type, scalars[i])) continue;
        if (!is_only) return scalar_way(b, schema, scalars[i], way);
        WHIT_TRY(leaf_rule(b, at, false, &rule));
        *way = whit_automaton_call(b->g, rule, WHIT_AUTOMATON_RET);
        return WHIT_OK;
    }
    return refuse_keyword(b, at, "type", "expected null, boolean, integer, number, string, array or object");
}

/* Builds alternatives for several types. Objects and lists refuse the keywords of other types when they are built, so
 * they can only be combined with null. */
static whit_status types_way(struct builder *b, uint32_t schema, const struct place *at, uint32_t types, uint32_t *way)
{
    /* keywords that are enforced for scalars and strings */
    static const char *const scalars[] = {
        "type",       "nullable",  "minimum",   "maximum", "exclusiveMinimum", "exclusiveMaximum",
        "multipleOf", "minLength", "maxLength", "pattern", "format",           NULL};
    uint32_t ways[8], n = 0;
    bool nested = false;
    for (uint32_t type = whit_json_first(b->json, types); type != WHIT_JSON_NONE;
         type = whit_json_next(b->json, types, type)) {
        nested |= whit_json_is(b->json, type, "object") || whit_json_is(b->json, type, "array");
        n++;
    }
    if (!n || n > 7) return refuse_keyword(b, at, "type", "expected a type or a list of 1 to 7 types");
    bool with_null = false;
    for (uint32_t type = whit_json_first(b->json, types); type != WHIT_JSON_NONE;
         type = whit_json_next(b->json, types, type))
        with_null |= whit_json_is(b->json, type, "null");
    if (nested && n > 1u + with_null)
        return refuse_keyword(b, at, "type",
                              "object and array can be combined only with null: use anyOf for other types");
    if (!nested) WHIT_TRY(check_keywords(b, schema, at, scalars));
    n = 0;
    for (uint32_t type = whit_json_first(b->json, types); type != WHIT_JSON_NONE;
         type = whit_json_next(b->json, types, type))
        WHIT_TRY(type_way(b, schema, at, type, false, &ways[n++]));
    *way = whit_automaton_split(b->g, ways, n);
    return WHIT_OK;
}

/* Returns whether a value is of a type, or of one of a list of types; WHIT_JSON_NONE, an absent type, accepts every
 * value. */
static bool is_of_type(const whit_json *json, uint32_t type, uint32_t value)
{
    static const char *const names[] = {
        [WHIT_JSON_NULL] = "null",     [WHIT_JSON_BOOL] = "boolean", [WHIT_JSON_NUMBER] = "number",
        [WHIT_JSON_STRING] = "string", [WHIT_JSON_ARRAY] = "array",  [WHIT_JSON_OBJECT] = "object"};
    if (type == WHIT_JSON_NONE) return true;
    if (whit_json_type_of(json, type) == WHIT_JSON_ARRAY) {
        for (uint32_t t = whit_json_first(json, type); t != WHIT_JSON_NONE; t = whit_json_next(json, type, t))
            if (is_of_type(json, t, value)) return true;
        return false;
    }
    double number;
    if (whit_json_is(json, type, "integer"))
        return whit_json_f64(json, value, &number) && number == (double)(int64_t)number;
    return whit_json_is(json, type, names[whit_json_type_of(json, value)]);
}

static whit_status enum_way(struct builder *b, uint32_t schema, const struct place *at, uint32_t *way)
{
    static const char *const known[] = {"type", "enum", "const", "nullable", NULL};
    const whit_json *json = b->json;
    uint32_t ways[PROPERTIES_MAX], n = 0, values = whit_json_get(json, schema, "enum"),
                                   type = whit_json_get(json, schema, "type");
    const bool is_list = values != WHIT_JSON_NONE;
    if (!is_list) values = whit_json_get(json, schema, "const");
    WHIT_TRY(check_keywords(b, schema, at, known));
    if (is_list &&
        (whit_json_get(json, schema, "const") != WHIT_JSON_NONE || whit_json_type_of(json, values) != WHIT_JSON_ARRAY))
        return refuse_keyword(b, at, "enum", "expected a list of values, and no const beside it");
    for (uint32_t value = is_list ? whit_json_first(json, values) : values; value != WHIT_JSON_NONE;
         value = is_list ? whit_json_next(json, values, value) : WHIT_JSON_NONE) {
        size_t n_text;
        const char *text = whit_json_string(json, value, &n_text), *raw;
        if (!is_of_type(json, type, value)) continue;
        if (n == PROPERTIES_MAX)
            return refuse_keyword(b, at, "enum",
                                  "the list has more than 256 values, the limit of this model's tool calls");
        if (text) {
            if (memmem(text, n_text, WHIT_GEMMA_MARK, strlen(WHIT_GEMMA_MARK)))
                return refuse_keyword(b, at, "enum",
                                      "a text contains the model's quotation mark of strings, and such a text cannot "
                                      "be written: remove it");
            uint32_t end = whit_automaton_literal(b->g, WHIT_GEMMA_MARK, WHIT_AUTOMATON_RET);
            ways[n++] = whit_automaton_literal(b->g, WHIT_GEMMA_MARK, whit_automaton_text(b->g, text, n_text, end));
            continue;
        }
        raw = whit_json_raw(json, value, &n_text);
        if (whit_json_type_of(json, value) >= WHIT_JSON_ARRAY || !raw)
            return refuse_keyword(
                b, at, is_list ? "enum" : "const",
                "only texts, numbers, true, false and null are supported as values, not objects and lists");
        ways[n++] = whit_automaton_text(b->g, raw, n_text, WHIT_AUTOMATON_RET);
    }
    if (!n)
        return refuse_keyword(b, at, is_list ? "enum" : "const",
                              "none of the values has the required type: no value would be allowed");
    *way = whit_automaton_split(b->g, ways, n);
    return WHIT_OK;
}

/* Returns whether no value can have both types a and b. */
static bool differ(const whit_json *json, uint32_t a, uint32_t b)
{
    static const char *const numbers[] = {"number", "integer", NULL};
    size_t n, m;
    const char *x = whit_json_string(json, a, &n), *y = whit_json_string(json, b, &m);
    return x && y && (n != m || memcmp(x, y, n) != 0) && !(is_one_of(json, a, numbers) && is_one_of(json, b, numbers));
}

/* Builds the choice between the schemas of anyOf or oneOf. The schemas of oneOf must have different types, because
 * oneOf forbids values that two of its schemas accept. */
static whit_status choice_way(struct builder *b, uint32_t schema, const struct place *at, const char *keyword,
                              uint32_t *way)
{
    const char *const known[] = {keyword, NULL};
    const whit_json *json = b->json;
    uint32_t ways[64], n = 0, list = whit_json_get(json, schema, keyword);
    const bool is_one = !strcmp(keyword, "oneOf");
    WHIT_TRY(check_keywords(b, schema, at, known));
    for (uint32_t k = whit_json_first(json, list); k != WHIT_JSON_NONE; k = whit_json_next(json, list, k)) {
        char index[16];
        uint32_t rule, type = whit_json_get(json, k, "type");
        struct place below = *at;
        for (uint32_t o = whit_json_first(json, list); is_one && o != k; o = whit_json_next(json, list, o))
            if (!differ(json, type, whit_json_get(json, o, "type")))
                return refuse_keyword(
                    b, at, keyword,
                    "the schemas of oneOf must have different types for this model's tool calls: use anyOf");
        snprintf(index, sizeof index, "%u", n);
        if (n == 64)
            return refuse_keyword(b, at, keyword,
                                  "the list has more than 64 schemas, the limit of this model's tool calls");
        if (!descend(&below, keyword, index, strlen(index)))
            return refuse_keyword(b, at, "", "the path to this part of the schema has over 1,023 bytes: nest it less");
        WHIT_TRY(value_rule(b, k, &below, &rule));
        ways[n++] = whit_automaton_call(b->g, rule, WHIT_AUTOMATON_RET);
    }
    if (!n) return refuse_keyword(b, at, keyword, "expected a list of at least one schema");
    *way = whit_automaton_split(b->g, ways, n);
    return WHIT_OK;
}

/* Finds the schema within the parameters to which a reference points, and its place. */
static whit_status resolve_reference(const struct builder *b, const struct place *at, uint32_t reference,
                                     uint32_t *schema, struct place *there)
{
    size_t n;
    const char *text = whit_json_string(b->json, reference, &n);
    *schema = b->parameters;
    *there = (struct place){""};
    if (!text || !n || text[0] != '#' || memchr(text, '%', n) || memchr(text, '~', n) || n > 512)
        return refuse_keyword(
            b, at, "$ref", "only references such as #/$defs/NAME, up to 512 bytes, without % and ~, can be followed");
    for (size_t i = 1; i < n;) {
        char word[512];
        size_t end = i + 1;
        while (end < n && text[end] != '/') end++;
        if (text[i] != '/') return refuse_keyword(b, at, "$ref", "expected a JSON pointer after #, as in #/$defs/NAME");
        snprintf(word, sizeof word, "%.*s", (int)(end - i - 1), text + i + 1);
        if (whit_json_type_of(b->json, *schema) != WHIT_JSON_OBJECT)
            return refuse_keyword(b, at, "$ref", "the parameters have nothing at this reference");
        *schema = whit_json_get(b->json, *schema, word);
        if (*schema == WHIT_JSON_NONE || !descend(there, word, NULL, 0))
            return refuse_keyword(b, at, "$ref", "the parameters have nothing at this reference");
        i = end;
    }
    return WHIT_OK;
}

/* Builds the values of a schema without type, $ref, enum, const, anyOf and oneOf. */
static whit_status untyped_way(struct builder *b, uint32_t schema, const struct place *at, uint32_t *way)
{
    static const char *const nothing[] = {"nullable", NULL};
    uint32_t rule;
    if (whit_json_get(b->json, schema, "properties") != WHIT_JSON_NONE) {
        WHIT_TRY(members_rule(b, schema, at, &rule));
        *way = whit_automaton_literal(
            b->g, "{", whit_automaton_call(b->g, rule, whit_automaton_literal(b->g, "}", WHIT_AUTOMATON_RET)));
        return WHIT_OK;
    }
    if (whit_json_get(b->json, schema, "items") != WHIT_JSON_NONE) return list_way(b, schema, at, way);
    WHIT_TRY(check_keywords(b, schema, at, nothing));
    WHIT_TRY(make_any(b));
    *way = whit_automaton_call(b->g, b->any_value, WHIT_AUTOMATON_RET);
    return WHIT_OK;
}

static whit_status schema_way(struct builder *b, uint32_t schema, const struct place *at, uint32_t *way)
{
    static const char *const references[] = {"$ref", NULL};
    const whit_json *json = b->json;
    uint32_t rule, type = whit_json_get(json, schema, "type"), reference = whit_json_get(json, schema, "$ref");
    if (whit_json_type_of(json, schema) == WHIT_JSON_BOOL && whit_json_bool(json, schema, false)) {
        WHIT_TRY(make_any(b));
        *way = whit_automaton_call(b->g, b->any_value, WHIT_AUTOMATON_RET);
        return WHIT_OK;
    }
    if (whit_json_type_of(json, schema) != WHIT_JSON_OBJECT)
        return refuse_keyword(b, at, "", "a schema must be an object");
    if (reference != WHIT_JSON_NONE) {
        struct place there;
        uint32_t target;
        WHIT_TRY(check_keywords(b, schema, at, references));
        WHIT_TRY(resolve_reference(b, at, reference, &target, &there));
        WHIT_TRY(value_rule(b, target, &there, &rule));
        *way = whit_automaton_call(b->g, rule, WHIT_AUTOMATON_RET);
        return WHIT_OK;
    }
    if (whit_json_get(json, schema, "anyOf") != WHIT_JSON_NONE) return choice_way(b, schema, at, "anyOf", way);
    if (whit_json_get(json, schema, "oneOf") != WHIT_JSON_NONE) return choice_way(b, schema, at, "oneOf", way);
    if (whit_json_get(json, schema, "enum") != WHIT_JSON_NONE || whit_json_get(json, schema, "const") != WHIT_JSON_NONE)
        return enum_way(b, schema, at, way);
    if (type == WHIT_JSON_NONE) return untyped_way(b, schema, at, way);
    if (whit_json_type_of(json, type) == WHIT_JSON_ARRAY) return types_way(b, schema, at, type, way);
    return type_way(b, schema, at, type, true, way);
}

static whit_status value_rule(struct builder *b, uint32_t schema, const struct place *at, uint32_t *rule)
{
    for (uint32_t i = 0; i < b->n_values; i++) {
        *rule = b->values[i].rule;
        if (b->values[i].schema == schema) return WHIT_OK;
    }
    if (b->n_values == VALUES_MAX || b->n_nested == NESTED_MAX)
        return refuse_keyword(
            b, at, "",
            "the schema has more than 512 parts or is nested more than 32 deep, the limits of this model's tool calls");
    *rule = whit_automaton_rule(b->g);
    b->values[b->n_values++] = (struct value){schema, *rule};
    b->n_nested++;
    uint32_t ways[2] = {WHIT_AUTOMATON_NONE, whit_automaton_literal(b->g, "null", WHIT_AUTOMATON_RET)};
    WHIT_TRY(schema_way(b, schema, at, &ways[0]));
    b->n_nested--;
    bool nullable = whit_json_bool(b->json, whit_json_get(b->json, schema, "nullable"), false);
    whit_automaton_define(b->g, *rule, nullable ? whit_automaton_split(b->g, ways, 2) : ways[0]);
    return WHIT_OK;
}

/* ---- the arguments of a function ------------------------------------------------------------- */

static whit_status build_rule(struct builder *b, bool held, uint32_t *rule)
{
    const struct place root = {""};
    uint32_t type = whit_json_get(b->json, b->parameters, "type");
    if (!held) {
        WHIT_TRY(make_any(b));
        *rule = b->any_pairs;
        return WHIT_OK;
    }
    if (whit_json_type_of(b->json, b->parameters) <= WHIT_JSON_NULL) { /* the function has no arguments */
        *rule = whit_automaton_rule(b->g);
        whit_automaton_define(b->g, *rule, WHIT_AUTOMATON_RET);
        return WHIT_OK;
    }
    if (whit_json_type_of(b->json, b->parameters) != WHIT_JSON_OBJECT)
        return whit_fail(b->error, WHIT_ERROR_FORMAT, "%s: a schema must be an object", b->name);
    if (type != WHIT_JSON_NONE && !whit_json_is(b->json, type, "object"))
        return whit_fail(b->error, WHIT_ERROR_FORMAT, "%s: #/type: the arguments of a function must be an object",
                         b->name);
    return members_rule(b, b->parameters, &root, rule);
}

whit_status whit_call_gemma_rule(whit_automaton *g, const whit_json *json, uint32_t parameters, bool held,
                                 const char *name, uint32_t *rule, whit_error *error)
{
    struct builder b = {.g = g,
                        .json = json,
                        .parameters = parameters,
                        .name = name,
                        .any_value = WHIT_AUTOMATON_NONE,
                        .any_pairs = WHIT_AUTOMATON_NONE,
                        .error = error};
    return build_rule(&b, held, rule);
}
