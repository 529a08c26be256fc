/* SPDX-License-Identifier: MIT */
#include "template/value.h"

#include <math.h>

#include "base/items.h"
#include "base/json.h"
#include "base/utf8.h"
#include "template/number.h"

enum { SMALL_DICT = 8, MAX_DEPTH = 64 };

bool whit_datum_string(whit_datum_pool *pool, const char *bytes, size_t n_bytes, bool user, whit_datum *value)
{
    if (whit_utf8_valid_bytes((const uint8_t *)bytes, n_bytes) != n_bytes) return false;
    *value = whit_datum_text(whit_text_new(pool, bytes, n_bytes, user));
    return value->text;
}

bool whit_datum_list(whit_datum_pool *pool, const whit_datum *items, size_t n, whit_datum *value)
{
    whit_list *list = whit_datum_pool_zalloc(pool, 1, sizeof *list);
    if (!list) return false;
    list->items = whit_datum_pool_zalloc(pool, n, sizeof *items);
    if (!list->items) return false;
    list->n = n;
    if (items && n) memcpy(list->items, items, n * sizeof *items);
    *value = (whit_datum){.kind = WHIT_DATUM_LIST, .list = list};
    return true;
}

bool whit_datum_dict(whit_datum_pool *pool, whit_datum *value)
{
    *value = (whit_datum){.kind = WHIT_DATUM_DICT, .dict = whit_datum_pool_zalloc(pool, 1, sizeof(whit_dict))};
    return value->dict;
}

bool whit_datum_as_int(whit_datum v, int64_t *integer)
{
    if (v.kind == WHIT_DATUM_BOOL)
        *integer = v.boolean;
    else if (v.kind == WHIT_DATUM_INT)
        *integer = v.integer;
    else
        return false;
    return true;
}

bool whit_datum_as_real(whit_datum v, double *real)
{
    int64_t integer;
    if (v.kind == WHIT_DATUM_FLOAT)
        *real = v.real;
    else if (whit_datum_as_int(v, &integer))
        *real = (double)integer;
    else
        return false;
    return true;
}

bool whit_datum_is_number(whit_datum v)
{
    return v.kind >= WHIT_DATUM_BOOL && v.kind <= WHIT_DATUM_FLOAT;
}

bool whit_datum_is_true(whit_datum v)
{
    size_t n;
    switch (v.kind) {
    case WHIT_DATUM_UNDEFINED:
    case WHIT_DATUM_NONE: return false;
    case WHIT_DATUM_BOOL: return v.boolean;
    case WHIT_DATUM_INT: return v.integer != 0;
    case WHIT_DATUM_FLOAT: return v.real != 0; /* NaN counts as true */
    case WHIT_DATUM_LOOP: return true;
    default: return !whit_datum_length(v, &n) || n > 0;
    }
}

bool whit_datum_is_callable(whit_datum v)
{
    return v.kind == WHIT_DATUM_FUNCTION || v.kind == WHIT_DATUM_METHOD || v.kind == WHIT_DATUM_MACRO ||
        v.kind == WHIT_DATUM_LOOP || v.kind == WHIT_DATUM_JOINER || v.kind == WHIT_DATUM_BLOCK ||
        v.kind == WHIT_DATUM_UNDEFINED; /* Jinja's Undefined has a __call__, which raises an error */
}

const char *whit_datum_type(whit_datum v)
{
    static const char *const names[] = {
        [WHIT_DATUM_UNDEFINED] = "Undefined",
        [WHIT_DATUM_NONE] = "NoneType",
        [WHIT_DATUM_BOOL] = "bool",
        [WHIT_DATUM_INT] = "int",
        [WHIT_DATUM_BIGINT] = "int",
        [WHIT_DATUM_FLOAT] = "float",
        [WHIT_DATUM_TEXT] = "str",
        [WHIT_DATUM_LIST] = "list",
        [WHIT_DATUM_TUPLE] = "tuple",
        [WHIT_DATUM_DICT] = "dict",
        [WHIT_DATUM_RANGE] = "range",
        [WHIT_DATUM_GENERATOR] = "generator",
        [WHIT_DATUM_NAMESPACE] = "Namespace",
        [WHIT_DATUM_FUNCTION] = "function",
        [WHIT_DATUM_METHOD] = "builtin_function_or_method",
        [WHIT_DATUM_MACRO] = "Macro",
        [WHIT_DATUM_LOOP] = "LoopContext",
        [WHIT_DATUM_JOINER] = "Joiner",
        [WHIT_DATUM_BLOCKS] = "TemplateReference",
        [WHIT_DATUM_BLOCK] = "BlockReference",
    };
    static const char *const views[] = {"dict_keys", "dict_values", "dict_items"};
    if (v.kind == WHIT_DATUM_VIEW) return views[v.detail];
    if (v.kind == WHIT_DATUM_TEXT && v.text->is_bytes) return "bytes";
    if (v.kind == WHIT_DATUM_TEXT && v.text->markup) return "Markup";
    return names[v.kind];
}

bool whit_datum_length(whit_datum v, size_t *n)
{
    switch (v.kind) {
    case WHIT_DATUM_UNDEFINED: *n = 0; return true;
    case WHIT_DATUM_TEXT: *n = v.text->is_bytes ? v.text->n_bytes : v.text->n_points; return true;
    case WHIT_DATUM_LIST:
    case WHIT_DATUM_TUPLE: *n = v.list->n; return true;
    case WHIT_DATUM_DICT:
    case WHIT_DATUM_VIEW: *n = v.dict->n; return true;
    case WHIT_DATUM_RANGE: *n = v.range->n; return true;
    default: return false;
    }
}

whit_datum whit_range_at(const whit_range *range, size_t i)
{
    return whit_datum_int(range->start + range->step * (int64_t)i);
}

/* ---- equality and hashing ------------------------------------------------------------------- */

/* Compares integers given as decimal digits: by sign, then length, then digits. */
static int compare_digits(const char *x, size_t n_x, const char *y, size_t n_y)
{
    bool negative = x[0] == '-';
    if (negative != (y[0] == '-')) return negative ? -1 : 1;
    int order = n_x != n_y ? (n_x > n_y) - (n_x < n_y) : memcmp(x, y, n_x);
    order = (order > 0) - (order < 0);
    return negative ? -order : order;
}

/* Compares an integer with a double, both exactly; 2 if the double is not a number. */
static int compare_mixed(int64_t integer, double real)
{
    if (isnan(real)) return 2;
    if (real >= 0x1p63 || real < -0x1p63) return real > 0 ? -1 : 1;
    const int64_t whole = (int64_t)real;
    if (integer != whole) return integer > whole ? 1 : -1;
    const double rest = real - (double)whole;
    return (rest < 0) - (rest > 0);
}

int whit_number_compare(whit_datum a, whit_datum b)
{
    if (a.kind == WHIT_DATUM_BIGINT || b.kind == WHIT_DATUM_BIGINT) {
        const whit_text *x = a.kind == WHIT_DATUM_BIGINT ? a.text : NULL;
        const whit_text *y = b.kind == WHIT_DATUM_BIGINT ? b.text : NULL;
        if (x && y) return compare_digits(x->bytes, x->n_bytes, y->bytes, y->n_bytes);
        double other;
        char digits[WHIT_REAL_BYTES];
        const whit_text *large = x ? x : y;
        int order = large->bytes[0] == '-' ? -1 : 1;
        if (whit_datum_as_real(x ? b : a, &other)) {
            if (isnan(other)) return 2;
            if (isinf(other)) order = other > 0 ? -1 : 1;
            if (fabs(other) >= 0x1p63 && !isinf(other)) { /* such a double is an integer, so all its digits are exact */
                whit_real_print(other, 'f', 0, false, digits);
                order = compare_digits(large->bytes, large->n_bytes, digits, strlen(digits));
            }
        }
        return x ? order : -order;
    }
    int64_t i, j;
    const bool is_int = whit_datum_as_int(a, &i), is_other_int = whit_datum_as_int(b, &j);
    if (is_int && is_other_int) return (i > j) - (i < j);
    if (is_int) return compare_mixed(i, b.real);
    if (is_other_int) {
        const int order = compare_mixed(j, a.real);
        return order == 2 ? 2 : -order;
    }
    if (isnan(a.real) || isnan(b.real)) return 2;
    return (a.real > b.real) - (a.real < b.real);
}

static bool items_equal(const whit_list *a, const whit_list *b, int depth, uint64_t *budget);
static bool dicts_equal(const whit_dict *a, const whit_dict *b, int depth, uint64_t *budget);

static bool equal(whit_datum a, whit_datum b, int depth, uint64_t *budget)
{
    if (*budget == 0 || depth > MAX_DEPTH) {
        *budget = 0;
        return false;
    }
    --*budget;
    if (whit_datum_is_number(a) && whit_datum_is_number(b)) return whit_number_compare(a, b) == 0;
    if (a.kind != b.kind) return false;
    switch (a.kind) {
    case WHIT_DATUM_UNDEFINED:
    case WHIT_DATUM_NONE: return true;
    case WHIT_DATUM_TEXT: {
        uint64_t work = a.text->n_bytes == b.text->n_bytes ? a.text->n_bytes / 64 : 0;
        *budget -= work < *budget ? work : *budget;
        return whit_text_equal(a.text, b.text);
    }
    case WHIT_DATUM_LIST:
    case WHIT_DATUM_TUPLE: return items_equal(a.list, b.list, depth, budget);
    case WHIT_DATUM_DICT: return dicts_equal(a.dict, b.dict, depth, budget);
    case WHIT_DATUM_VIEW: /* views of keys or items are compared like sets; views of values are never equal */
        if (a.detail != b.detail || a.detail == WHIT_VIEW_VALUES) return false;
        if (a.detail == WHIT_VIEW_ITEMS) return dicts_equal(a.dict, b.dict, depth, budget);
        if (a.dict->n != b.dict->n) return false;
        for (size_t i = 0; i < a.dict->n; i++)
            if (!whit_dict_get(b.dict, a.dict->pairs[i].key)) return false;
        return true;
    case WHIT_DATUM_RANGE:
        return a.range->n == b.range->n &&
            (a.range->n == 0 ||
             (a.range->start == b.range->start && (a.range->n == 1 || a.range->step == b.range->step)));
    case WHIT_DATUM_METHOD: return false;
    default: return a.dict == b.dict; /* equal only if both are the same object */
    }
}

static bool items_equal(const whit_list *a, const whit_list *b, int depth, uint64_t *budget)
{
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++)
        if (!equal(a->items[i], b->items[i], depth + 1, budget)) return false;
    return true;
}

static bool dicts_equal(const whit_dict *a, const whit_dict *b, int depth, uint64_t *budget)
{
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++) {
        const whit_datum *other = whit_dict_get(b, a->pairs[i].key);
        if (!other || !equal(a->pairs[i].value, *other, depth + 1, budget)) return false;
    }
    return true;
}

bool whit_datum_equal(whit_datum a, whit_datum b, uint64_t *budget)
{
    return equal(a, b, 0, budget);
}

enum { MAX_KEY_ITEMS = 1000 }; /* nested tuples that share parts may be small in memory but have very many elements */

/* Returns whether a value can be hashed. Adds to *n_steps the number of values to be read, and of 16-byte pieces of
 * texts. */
static bool is_hashable(whit_datum v, int depth, uint32_t *n_items_left, uint64_t *n_steps)
{
    if (v.kind == WHIT_DATUM_LIST || v.kind == WHIT_DATUM_DICT || v.kind == WHIT_DATUM_VIEW) return false;
    *n_steps += 1 + (v.kind == WHIT_DATUM_TEXT ? v.text->n_bytes / 16 : 0);
    if (v.kind != WHIT_DATUM_TUPLE) return true;
    if (depth > MAX_DEPTH || v.list->n > *n_items_left) return false;
    *n_items_left -= (uint32_t)v.list->n;
    for (size_t i = 0; i < v.list->n; i++)
        if (!is_hashable(v.list->items[i], depth + 1, n_items_left, n_steps)) return false;
    return true;
}

bool whit_datum_is_hashable(whit_datum v, uint64_t *n_steps)
{
    uint32_t n_items_left = MAX_KEY_ITEMS;
    *n_steps = 0;
    return is_hashable(v, 0, &n_items_left, n_steps);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

/* Hashes a hashable value. Equal values have equal hashes. The recursion is limited, because hashable tuples are
 * small. */
static uint64_t hash_of(whit_datum v)
{
    int64_t integer;
    if (whit_datum_as_int(v, &integer)) return mix(1, (uint64_t)integer);
    switch (v.kind) {
    case WHIT_DATUM_FLOAT:
        if (v.real >= -0x1p63 && v.real < 0x1p63 && floor(v.real) == v.real) return mix(1, (uint64_t)(int64_t)v.real);
        return mix(2, whit_load_u64(&v.real));
    case WHIT_DATUM_TEXT: {
        uint64_t hash = 0xCBF29CE484222325u; /* FNV-1a */
        for (size_t i = 0; i < v.text->n_bytes; i++) hash = (hash ^ (unsigned char)v.text->bytes[i]) * 0x100000001B3u;
        return mix(3, hash);
    }
    case WHIT_DATUM_TUPLE: {
        uint64_t hash = mix(5, v.list->n);
        for (size_t i = 0; i < v.list->n; i++) hash = mix(hash, hash_of(v.list->items[i]));
        return hash;
    }
    default: return mix(4, v.kind);
    }
}

static bool same_key(const struct whit_pair *pair, whit_datum key, uint64_t hash)
{
    uint64_t budget = 1u << 20;
    return pair->hash == hash && equal(pair->key, key, 0, &budget);
}

static size_t find_pair(const whit_dict *dict, whit_datum key, uint64_t hash)
{
    if (!dict->index) {
        for (size_t i = 0; i < dict->n; i++)
            if (same_key(&dict->pairs[i], key, hash)) return i;
        return SIZE_MAX;
    }
    for (size_t at = hash & (dict->index_size - 1); dict->index[at]; at = (at + 1) & (dict->index_size - 1))
        if (same_key(&dict->pairs[dict->index[at] - 1], key, hash)) return dict->index[at] - 1;
    return SIZE_MAX;
}

const whit_datum *whit_dict_get(const whit_dict *dict, whit_datum key)
{
    size_t i = dict->n ? find_pair(dict, key, hash_of(key)) : SIZE_MAX;
    return i == SIZE_MAX ? NULL : &dict->pairs[i].value;
}

const whit_datum *whit_dict_get_str(const whit_dict *dict, const char *key)
{
    whit_text text = {.bytes = key, .n_bytes = strlen(key)};
    return whit_dict_get(dict, whit_datum_text(&text));
}

static void index_pair(whit_dict *dict, size_t i)
{
    size_t at = dict->pairs[i].hash & (dict->index_size - 1);
    while (dict->index[at]) at = (at + 1) & (dict->index_size - 1);
    dict->index[at] = (uint32_t)i + 1;
}

static bool grow_dict(whit_datum_pool *pool, whit_dict *dict)
{
    size_t capacity = dict->capacity ? dict->capacity * 2 : 4;
    if (capacity > UINT32_MAX / 4) return false;
    struct whit_pair *pairs =
        whit_datum_pool_grow(pool, dict->pairs, dict->n * sizeof *pairs, capacity * sizeof *pairs);
    if (!pairs) return false;
    dict->pairs = pairs;
    dict->capacity = capacity;
    if (capacity <= SMALL_DICT) return true;
    dict->index_size = capacity * 2;
    dict->index = whit_datum_pool_zalloc(pool, dict->index_size, sizeof *dict->index);
    if (!dict->index) return false;
    for (size_t i = 0; i < dict->n; i++) index_pair(dict, i);
    return true;
}

bool whit_dict_set(whit_datum_pool *pool, whit_dict *dict, whit_datum key, whit_datum value)
{
    uint64_t hash = hash_of(key);
    size_t i = find_pair(dict, key, hash);
    if (i != SIZE_MAX) {
        dict->pairs[i].value = value;
        return true;
    }
    if (dict->n == dict->capacity && !grow_dict(pool, dict)) return false;
    dict->pairs[dict->n] = (struct whit_pair){key, value, hash};
    if (dict->index) index_pair(dict, dict->n);
    dict->n++;
    return true;
}

bool whit_dict_set_str(whit_datum_pool *pool, whit_dict *dict, const char *key, whit_datum value)
{
    const whit_text *text = whit_text_new(pool, key, strlen(key), false);
    return text && whit_dict_set(pool, dict, whit_datum_text(text), value);
}

/* ---- conversion from JSON ------------------------------------------------------------------- */

static bool number_from_json(whit_datum_pool *pool, const whit_json *json, uint32_t at, whit_datum *value)
{
    int64_t integer;
    if (whit_json_i64(json, at, &integer)) {
        *value = whit_datum_int(integer);
        return true;
    }
    const whit_json_node *node = WHIT_ITEMS(const whit_json_node, &json->nodes) + at;
    const char *text = json->text + node->start;
    size_t n = node->end - node->start, i = n && text[0] == '-';
    while (i < n && text[i] >= '0' && text[i] <= '9') i++;
    if (i == n) {
        *value = (whit_datum){.kind = WHIT_DATUM_BIGINT, .text = whit_text_new(pool, text, n, false)};
        return value->text;
    }
    double real;
    if (!whit_json_f64(json, at, &real)) { /* NaN or Infinity, which Python accepts, or too large for a double */
        real = text[0] == '-' ? -INFINITY : INFINITY;
        if (text[n - 1] == 'N') real = NAN;
    }
    *value = whit_datum_float(real);
    return true;
}

/* Converts a JSON node. WHIT_JSON_MAX_DEPTH limits the recursion. */
static bool from_json(whit_datum_pool *pool, const whit_json *json, uint32_t at, bool user, whit_datum *value)
{
    switch (whit_json_type_of(json, at)) {
    case WHIT_JSON_BOOL: *value = whit_datum_bool(whit_json_bool(json, at, false)); return true;
    case WHIT_JSON_NUMBER: return number_from_json(pool, json, at, value);
    case WHIT_JSON_STRING: {
        size_t n;
        const char *bytes = whit_json_string(json, at, &n);
        return whit_datum_string(pool, bytes, n, user, value);
    }
    case WHIT_JSON_ARRAY: {
        if (!whit_datum_list(pool, NULL, whit_json_count(json, at), value)) return false;
        whit_datum *item = value->list->items;
        for (uint32_t i = whit_json_first(json, at); i != WHIT_JSON_NONE; i = whit_json_next(json, at, i))
            if (!from_json(pool, json, i, user, item++)) return false;
        return true;
    }
    case WHIT_JSON_OBJECT:
        if (!whit_datum_dict(pool, value)) return false;
        for (uint32_t i = whit_json_first(json, at); i != WHIT_JSON_NONE; i = whit_json_next(json, at, i)) {
            whit_datum key, item;
            if (!from_json(pool, json, i, user, &key) || !from_json(pool, json, i + 1, user, &item) ||
                !whit_dict_set(pool, value->dict, key, item))
                return false;
        }
        return true;
    default: *value = whit_datum_none(); return true;
    }
}

whit_status whit_datum_from_json(whit_datum_pool *pool, const char *json, size_t n_bytes, bool user, whit_datum *value,
                                 whit_error *error)
{
    whit_json document;
    WHIT_TRY(whit_json_parse("JSON", json, n_bytes, pool->allocator, &document, error));
    bool ok = from_json(pool, &document, WHIT_JSON_ROOT, user, value);
    whit_json_close(&document);
    return ok ? WHIT_OK : whit_fail_memory(error, "the values of the chat template", n_bytes);
}
