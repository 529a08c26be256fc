/* SPDX-License-Identifier: MIT
 * Checks values that a JSON Schema itself contains, in enum and const, against conditions. A keyword that cannot be
 * checked is an error. */
#include "grammar/decimal.h"
#include "grammar/schema_parts.h"

enum { DEPTH_MAX = 100 };

static bool valid_at(whit_json_schema_compiler *c, uint32_t value, uint32_t schema, uint32_t depth);

/* ---- strings and numbers ----------------------------------------------------------------------- */

static bool matches_pattern(whit_json_schema_compiler *c, uint32_t value, uint32_t pattern)
{
    size_t n;
    const char *text = whit_json_string(&c->json, value, &n);
    whit_language l;
    if (!whit_json_schema_open_language(c, &l)) return false;
    uint32_t node = whit_json_schema_pattern(c, &l, pattern);
    bool matches = c->status == WHIT_OK && whit_language_matches(&l, node, text, n);
    whit_json_schema_close_language(c, &l, pattern);
    return matches;
}

/* Returns whether a listed string has the strict form of a format. A string that lacks it is an error, because it may
 * still have the format in another form. An unknown format is an annotation, which every string satisfies. */
static bool has_format(whit_json_schema_compiler *c, uint32_t value, uint32_t format)
{
    size_t n;
    const char *text = whit_json_string(&c->json, value, &n);
    if (!whit_json_schema_format(c, format, WHIT_JSON_SCHEMA_STRICT)) return true; /* an unknown format */
    whit_language l;
    if (!whit_json_schema_open_language(c, &l)) return false;
    bool matches = whit_language_matches(&l, whit_json_schema_format_strings(c, &l, format), text, n);
    whit_json_schema_close_language(c, &l, format);
    if (!matches)
        whit_json_schema_refuse(c, format,
                                "a string in enum or const may not have this format: remove the format or the string");
    return matches;
}

static uint32_t count_characters(const whit_json *json, uint32_t value)
{
    size_t n;
    uint32_t count = 0;
    const char *text = whit_json_string(json, value, &n);
    for (size_t i = 0; i < n; i++) count += ((uint8_t)text[i] & 0xC0) != 0x80;
    return count;
}

/* Checks one of minimum, maximum and their exclusive forms. In draft 4 `exclusiveMinimum` is a boolean that changes the
 * meaning of minimum. */
static bool keeps_bound(whit_json_schema_compiler *c, uint32_t value, uint32_t schema, uint32_t key)
{
    whit_decimal number, limit;
    if (!whit_decimal_of_node(&c->json, value, &number) || whit_json_type_of(&c->json, key + 1) == WHIT_JSON_BOOL)
        return true;
    if (!whit_decimal_of_node(&c->json, key + 1, &limit))
        return whit_json_schema_refuse(c, key + 1, "expected a number"), false;
    bool low = whit_json_is(&c->json, key, "minimum") || whit_json_is(&c->json, key, "exclusiveMinimum");
    bool out = whit_json_is(&c->json, key, "exclusiveMinimum") || whit_json_is(&c->json, key, "exclusiveMaximum");
    if (!out)
        out = whit_json_bool(&c->json, whit_json_schema_get(c, schema, low ? "exclusiveMinimum" : "exclusiveMaximum"),
                             false);
    int order = whit_decimal_compare(&number, &limit);
    if (order == 0) return !out;
    return low ? order > 0 : order < 0;
}

static bool is_multiple(whit_json_schema_compiler *c, uint32_t value, uint32_t step)
{
    whit_decimal number, unit;
    bool known = true;
    if (!whit_decimal_of_node(&c->json, value, &number)) return true;
    if (!whit_decimal_of_node(&c->json, step, &unit) || unit.n == 0 || unit.negative)
        return whit_json_schema_refuse(c, step, "expected a number above 0"), false;
    bool is = whit_decimal_is_multiple(&number, &unit, &known);
    if (!known)
        whit_json_schema_refuse(
            c, step, "multipleOf and the numbers in enum or const have too many digits to compare: shorten them");
    return is;
}

/* Checks a keyword that limits the size of a string, array or object. */
static bool keeps_count(whit_json_schema_compiler *c, uint32_t value, uint32_t key)
{
    static const struct {
        const char *min, *max;
        whit_json_type type;
    } sizes[] = {{"minLength", "maxLength", WHIT_JSON_STRING},
                 {"minItems", "maxItems", WHIT_JSON_ARRAY},
                 {"minProperties", "maxProperties", WHIT_JSON_OBJECT}};
    for (int i = 0; i < 3; i++) {
        bool is_min = whit_json_is(&c->json, key, sizes[i].min);
        double limit;
        if (!is_min && !whit_json_is(&c->json, key, sizes[i].max)) continue;
        if (!whit_json_f64(&c->json, key + 1, &limit) || limit < 0 || limit != __builtin_floor(limit))
            return whit_json_schema_refuse(c, key + 1, "expected a whole number from 0 on"), false;
        if (whit_json_type_of(&c->json, value) != sizes[i].type) return true;
        double n = sizes[i].type == WHIT_JSON_STRING ? count_characters(&c->json, value)
                                                     : (double)whit_json_count(&c->json, value);
        return is_min ? n >= limit : n <= limit;
    }
    return true;
}

/* ---- arrays ------------------------------------------------------------------------------------ */

/* Returns the number of an array's elements for which a schema holds. */
static uint32_t json_schema_count_matches(whit_json_schema_compiler *c, uint32_t list, uint32_t schema)
{
    uint32_t n = 0;
    for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE && c->status == WHIT_OK;
         k = whit_json_next(&c->json, list, k))
        n += valid_at(c, k, schema, 1);
    return n;
}

static bool contains_enough(whit_json_schema_compiler *c, uint32_t value, uint32_t schema, uint32_t what)
{
    uint32_t least, most;
    if (whit_json_type_of(&c->json, value) != WHIT_JSON_ARRAY) return true;
    if (!whit_json_schema_match_bounds(c, schema, &least, &most)) return false;
    uint32_t n = json_schema_count_matches(c, value, what);
    return n >= least && n <= most;
}

static bool differ_all(whit_json_schema_compiler *c, uint32_t list)
{
    for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE && c->status == WHIT_OK;
         k = whit_json_next(&c->json, list, k))
        for (uint32_t j = whit_json_first(&c->json, list); j != k; j = whit_json_next(&c->json, list, j))
            if (whit_json_schema_same(c, j, k)) return false;
    return true;
}

/* Checks prefixItems and items, or their forms in older drafts. */
static bool elements_valid(whit_json_schema_compiler *c, uint32_t value, uint32_t schema, uint32_t depth)
{
    uint32_t i = 0;
    if (whit_json_type_of(&c->json, value) != WHIT_JSON_ARRAY) return true;
    for (uint32_t k = whit_json_first(&c->json, value); k != WHIT_JSON_NONE && c->status == WHIT_OK;
         k = whit_json_next(&c->json, value, k), i++) {
        uint32_t own = whit_json_schema_element(c, schema, i);
        if (own != WHIT_JSON_NONE && !valid_at(c, k, own, depth)) return false;
    }
    return true;
}

/* ---- objects ----------------------------------------------------------------------------------- */

uint32_t whit_json_schema_member(const whit_json *json, uint32_t object, const char *name, size_t n_bytes)
{
    uint32_t found = WHIT_JSON_NONE;
    size_t n;
    for (uint32_t k = whit_json_first(json, object); k != WHIT_JSON_NONE; k = whit_json_next(json, object, k)) {
        const char *text = whit_json_type_of(json, object) == WHIT_JSON_OBJECT ? whit_json_string(json, k, &n) : NULL;
        if (text && n == n_bytes && memcmp(text, name, n) == 0) found = k + 1;
    }
    return found;
}

static bool has_member(const whit_json *json, uint32_t object, uint32_t name)
{
    size_t n;
    const char *text = whit_json_string(json, name, &n);
    return text && whit_json_schema_member(json, object, text, n) != WHIT_JSON_NONE;
}

static bool has_all(whit_json_schema_compiler *c, uint32_t object, uint32_t names)
{
    if (whit_json_type_of(&c->json, names) != WHIT_JSON_ARRAY)
        return whit_json_schema_refuse(c, names, "expected a list of names"), false;
    for (uint32_t k = whit_json_first(&c->json, names); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, names, k))
        if (!has_member(&c->json, object, k)) return false;
    return true;
}

/* Checks properties, patternProperties and additionalProperties for every member of an object. */
static bool members_valid(whit_json_schema_compiler *c, uint32_t value, uint32_t schema, uint32_t depth)
{
    const whit_json *json = &c->json;
    uint32_t known = whit_json_get(json, schema, "properties"),
             patterns = whit_json_get(json, schema, "patternProperties"),
             others = whit_json_get(json, schema, "additionalProperties");
    for (uint32_t k = whit_json_first(json, value); k != WHIT_JSON_NONE && c->status == WHIT_OK;
         k = whit_json_next(json, value, k)) {
        size_t n;
        const char *name = whit_json_string(json, k, &n);
        uint32_t own = whit_json_schema_member(json, known, name, n);
        bool named = own != WHIT_JSON_NONE;
        if (named && !valid_at(c, k + 1, own, depth)) return false;
        for (uint32_t p = whit_json_first(json, patterns); p != WHIT_JSON_NONE; p = whit_json_next(json, patterns, p)) {
            if (!matches_pattern(c, k, p)) continue;
            named = true;
            if (!valid_at(c, k + 1, p + 1, depth)) return false;
        }
        if (!named && others != WHIT_JSON_NONE && !valid_at(c, k + 1, others, depth)) return false;
    }
    return true;
}

static bool names_valid(whit_json_schema_compiler *c, uint32_t value, uint32_t schema, uint32_t depth)
{
    for (uint32_t k = whit_json_first(&c->json, value); k != WHIT_JSON_NONE && c->status == WHIT_OK;
         k = whit_json_next(&c->json, value, k))
        if (!valid_at(c, k, schema, depth)) return false; /* k is the node of a key, which is a string */
    return true;
}

/* Checks dependentRequired, dependentSchemas, or the older keyword `dependencies`, which combines both. */
static bool dependencies_kept(whit_json_schema_compiler *c, uint32_t value, uint32_t list, uint32_t depth)
{
    for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE && c->status == WHIT_OK;
         k = whit_json_next(&c->json, list, k)) {
        if (!has_member(&c->json, value, k)) continue;
        bool names = whit_json_type_of(&c->json, k + 1) == WHIT_JSON_ARRAY;
        if (names ? !has_all(c, value, k + 1) : !valid_at(c, value, k + 1, depth)) return false;
    }
    return true;
}

/* ---- keywords ---------------------------------------------------------------------------------- */

static bool in_list(whit_json_schema_compiler *c, uint32_t list, uint32_t value)
{
    if (whit_json_type_of(&c->json, list) != WHIT_JSON_ARRAY)
        return whit_json_schema_refuse(c, list, "expected a list of values"), false;
    if (list == c->listed) return true; /* the value was taken from this list */
    for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, list, k))
        if (!whit_json_schema_work(c, k, 20) || whit_json_schema_same(c, k, value)) return true;
    return false;
}

/* Returns whether enough schemas of a list hold: all for allOf, at least one for anyOf, exactly one for oneOf. `kind`
 * is 'l' for allOf, 'n' for anyOf, 'o' for oneOf. */
static bool list_holds(whit_json_schema_compiler *c, uint32_t value, uint32_t list, char kind, uint32_t depth)
{
    uint32_t n_valid = 0, n = 0;
    if (whit_json_type_of(&c->json, list) != WHIT_JSON_ARRAY)
        return whit_json_schema_refuse(c, list, "expected a list of schemas"), false;
    for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE && c->status == WHIT_OK;
         k = whit_json_next(&c->json, list, k), n++)
        n_valid += valid_at(c, value, k, depth);
    if (kind == 'l') return n_valid == n;
    if (kind == 'n') return n_valid > 0;
    return n_valid == 1;
}

typedef enum keyword {
    TYPE,
    CONST,
    ENUM,
    BOUND,
    STEP,
    COUNT,
    PATTERN,
    FORMAT,
    ALL_OF,
    ANY_OF,
    ONE_OF,
    NOT,
    IF,
    REFERENCE,
    ELEMENTS,
    CONTAINS,
    UNIQUE,
    MEMBERS,
    REQUIRED,
    NAMES,
    DEPENDENT,
    UNTOLD_LIST,
    UNTOLD_OBJECT,
} keyword;

static const struct {
    const char *key;
    keyword what;
} keywords[] = {
    {"type", TYPE},
    {"const", CONST},
    {"enum", ENUM},
    {"minimum", BOUND},
    {"maximum", BOUND},
    {"exclusiveMinimum", BOUND},
    {"exclusiveMaximum", BOUND},
    {"multipleOf", STEP},
    {"minLength", COUNT},
    {"maxLength", COUNT},
    {"minItems", COUNT},
    {"maxItems", COUNT},
    {"minProperties", COUNT},
    {"maxProperties", COUNT},
    {"pattern", PATTERN},
    {"format", FORMAT},
    {"allOf", ALL_OF},
    {"anyOf", ANY_OF},
    {"oneOf", ONE_OF},
    {"not", NOT},
    {"if", IF},
    {"$ref", REFERENCE},
    {"$dynamicRef", REFERENCE},
    {"items", ELEMENTS},
    {"prefixItems", ELEMENTS},
    {"contains", CONTAINS},
    {"uniqueItems", UNIQUE},
    {"properties", MEMBERS},
    {"patternProperties", MEMBERS},
    {"additionalProperties", MEMBERS},
    {"required", REQUIRED},
    {"propertyNames", NAMES},
    {"dependentRequired", DEPENDENT},
    {"dependentSchemas", DEPENDENT},
    {"dependencies", DEPENDENT},
    {"unevaluatedItems", UNTOLD_LIST},
    {"unevaluatedProperties", UNTOLD_OBJECT},
    {"$recursiveRef", UNTOLD_OBJECT},
};

static bool keyword_holds(whit_json_schema_compiler *c, uint32_t value, uint32_t schema, uint32_t key, uint32_t depth)
{
    const whit_json *json = &c->json;
    whit_json_type type = whit_json_type_of(json, value);
    bool string = type == WHIT_JSON_STRING, object = type == WHIT_JSON_OBJECT, array = type == WHIT_JSON_ARRAY;
    size_t i = 0, n = sizeof keywords / sizeof keywords[0];
    uint32_t what = key + 1, to;
    while (i < n && !whit_json_is(json, key, keywords[i].key)) i++;
    if (i == n) return true; /* other keywords are annotations */
    switch (keywords[i].what) {
    case TYPE: return whit_json_schema_types(c, schema) & whit_json_schema_type_of(json, value);
    case CONST: return whit_json_schema_same(c, what, value);
    case ENUM: return in_list(c, what, value);
    case BOUND: return keeps_bound(c, value, schema, key);
    case STEP: return is_multiple(c, value, what);
    case COUNT: return keeps_count(c, value, key);
    case PATTERN: return !string || matches_pattern(c, value, what);
    case FORMAT: return !string || has_format(c, value, what);
    case ALL_OF: return list_holds(c, value, what, 'l', depth);
    case ANY_OF: return list_holds(c, value, what, 'n', depth);
    case ONE_OF: return list_holds(c, value, what, 'o', depth);
    case NOT: return !valid_at(c, value, what, depth);
    case IF:
        to = whit_json_get(json, schema, valid_at(c, value, what, depth) ? "then" : "else");
        return to == WHIT_JSON_NONE || valid_at(c, value, to, depth);
    case REFERENCE:
        to = whit_json_schema_reference(c, schema, whit_json_is(json, key, "$dynamicRef"));
        return to != WHIT_JSON_NONE && valid_at(c, value, to, depth);
    case ELEMENTS: return elements_valid(c, value, schema, depth);
    case CONTAINS: return contains_enough(c, value, schema, what);
    case UNIQUE: return !array || !whit_json_bool(json, what, false) || differ_all(c, value);
    case MEMBERS: return !object || members_valid(c, value, schema, depth);
    case REQUIRED: return !object || has_all(c, value, what);
    case NAMES: return !object || names_valid(c, value, what, depth);
    case DEPENDENT: return !object || dependencies_kept(c, value, what, depth);
    case UNTOLD_LIST:
    case UNTOLD_OBJECT:
        if ((keywords[i].what == UNTOLD_LIST ? array : object) && !whit_json_bool(json, what, false))
            whit_json_schema_refuse(
                c, what,
                "unevaluatedItems and unevaluatedProperties are not supported with enum or const: remove one of them");
        return true;
    }
    return true;
}

static bool valid_at(whit_json_schema_compiler *c, uint32_t value, uint32_t schema, uint32_t depth)
{
    whit_json_type type = whit_json_type_of(&c->json, schema);
    if (type == WHIT_JSON_BOOL) return whit_json_bool(&c->json, schema, false);
    if (type != WHIT_JSON_OBJECT)
        return whit_json_schema_refuse(c, schema, "a schema must be an object, true or false"), false;
    if (depth > DEPTH_MAX)
        return whit_json_schema_refuse(c, schema,
                                       "more than %u schemas are nested here, or the schema refers to itself: shorten "
                                       "the chain of references",
                                       DEPTH_MAX),
               false;
    for (uint32_t k = whit_json_first(&c->json, schema); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, schema, k))
        if (!whit_json_schema_work(c, k, 10) || !keyword_holds(c, value, schema, k, depth + 1)) return false;
    return c->status == WHIT_OK;
}

/* ---- conditions of a set ----------------------------------------------------------------------- */

bool whit_json_schema_is_valid(whit_json_schema_compiler *c, uint32_t value, whit_json_schema_item item)
{
    const whit_json *json = &c->json;
    whit_json_type type = whit_json_type_of(json, value);
    bool object = type == WHIT_JSON_OBJECT, array = type == WHIT_JSON_ARRAY;
    uint32_t i = 0, least, most, member;
    whit_decimal x, y;
    size_t n;
    switch ((whit_json_schema_kind)item.kind) {
    case WHIT_JSON_SCHEMA_HOLDS: return valid_at(c, value, item.node, 0);
    case WHIT_JSON_SCHEMA_FAILS: return !valid_at(c, value, item.node, 0);
    case WHIT_JSON_SCHEMA_OF_TYPE: return whit_json_schema_type_of(json, value) & item.value;
    case WHIT_JSON_SCHEMA_KEY_FAILS: return !keyword_holds(c, value, item.value, item.node - 1, 0);
    case WHIT_JSON_SCHEMA_HAS: return !object || has_member(json, value, item.node);
    case WHIT_JSON_SCHEMA_LACKS: return !object || !has_member(json, value, item.node);
    case WHIT_JSON_SCHEMA_MEMBER_FAILS: {
        const char *name = whit_json_string(json, item.node, &n);
        member = object ? whit_json_schema_member(json, value, name, n) : WHIT_JSON_NONE;
        return member != WHIT_JSON_NONE && !valid_at(c, member, item.node + 1, 0);
    }
    case WHIT_JSON_SCHEMA_ELEMENT_FAILS:
    case WHIT_JSON_SCHEMA_PREFIX_FAILS:
        for (uint32_t k = array ? whit_json_first(json, value) : WHIT_JSON_NONE; k != WHIT_JSON_NONE;
             k = whit_json_next(json, value, k), i++)
            if ((item.kind == WHIT_JSON_SCHEMA_PREFIX_FAILS ? i == item.value : i >= item.value) &&
                !valid_at(c, k, item.node, 0))
                return true;
        return false;
    case WHIT_JSON_SCHEMA_FEWER_MATCH:
    case WHIT_JSON_SCHEMA_MORE_MATCH:
        if (!array || !whit_json_schema_match_bounds(c, item.node, &least, &most)) return false;
        i = json_schema_count_matches(c, value, whit_json_schema_get(c, item.node, "contains"));
        return item.kind == WHIT_JSON_SCHEMA_FEWER_MATCH ? i < least : i > most;
    case WHIT_JSON_SCHEMA_BELOW:
    case WHIT_JSON_SCHEMA_ABOVE:
        if (!whit_decimal_of_node(json, value, &x) || !whit_decimal_of_node(json, item.node, &y)) return false;
        return item.kind == WHIT_JSON_SCHEMA_BELOW ? whit_decimal_compare(&x, &y) < 0
                                                   : whit_decimal_compare(&x, &y) > 0;
    case WHIT_JSON_SCHEMA_UNLIKE: return !whit_json_schema_same(c, value, item.node);
    case WHIT_JSON_SCHEMA_FEWER:
    case WHIT_JSON_SCHEMA_MORE:
        if (!object && !array) return true;
        return item.kind == WHIT_JSON_SCHEMA_FEWER ? whit_json_count(json, value) < item.value
                                                   : whit_json_count(json, value) > item.value;
    }
    return false;
}
