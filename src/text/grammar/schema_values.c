/* SPDX-License-Identifier: MIT
 * Compiles enum and const of JSON Schema, and decides whether two schemas exclude each other. */
#include "base/json.h"
#include "base/items.h"
#include "base/utf8.h"
#include "grammar/decimal.h"
#include "grammar/schema_parts.h"

#include <stdlib.h>

/* Reads a count at a node. Returns false after an error. */
static bool read_count(whit_json_schema_compiler *c, uint32_t node, uint32_t *count)
{
    double value;
    if (!whit_json_f64(&c->json, node, &value) || value < 0 || value != __builtin_floor(value))
        return whit_json_schema_refuse(c, node, "expected a whole number from 0 on"), false;
    *count = value < 4e9 ? (uint32_t)value : WHIT_AUTOMATON_UNBOUNDED - 1;
    return true;
}

bool whit_json_schema_bounds(whit_json_schema_compiler *c, whit_json_schema_set set, const char *min_key,
                             const char *max_key, uint32_t *min, uint32_t *max)
{
    uint32_t count;
    bool lengths = min_key[3] == 'L';
    *min = 0;
    *max = WHIT_AUTOMATON_UNBOUNDED;
    for (uint32_t i = 0; i < set.n; i++) {
        whit_json_schema_item item = set.items[i];
        for (int k = 0; k < 2; k++) {
            const char *key = k ? max_key : min_key;
            bool fails = item.kind == WHIT_JSON_SCHEMA_KEY_FAILS && whit_json_is(&c->json, item.node - 1, key);
            uint32_t node = fails ? item.node : WHIT_JSON_NONE;
            if (item.kind == WHIT_JSON_SCHEMA_HOLDS) node = whit_json_schema_get(c, item.node, key);
            if (node == WHIT_JSON_NONE) continue;
            if (!read_count(c, node, &count)) return false;
            bool is_max = fails ? k == 0 : k == 1;
            if (fails && k == 0 && count-- == 0) *min = 1, count = 0; /* fewer than 0 are impossible: an empty range */
            if (fails && k == 1) count++;
            if (!is_max && count > *min) *min = count;
            if (is_max && count < *max) *max = count;
        }
        if (!lengths && item.kind == WHIT_JSON_SCHEMA_FEWER && item.value - 1 < *max) *max = item.value - 1;
        if (!lengths && item.kind == WHIT_JSON_SCHEMA_MORE && item.value + 1 > *min) *min = item.value + 1;
    }
    return true;
}

bool whit_json_schema_match_bounds(whit_json_schema_compiler *c, uint32_t schema, uint32_t *least, uint32_t *most)
{
    uint32_t min = whit_json_schema_get(c, schema, "minContains"), max = whit_json_schema_get(c, schema, "maxContains");
    *least = 1;
    *most = WHIT_AUTOMATON_UNBOUNDED;
    return (min == WHIT_JSON_NONE || read_count(c, min, least)) && (max == WHIT_JSON_NONE || read_count(c, max, most));
}

/* ---- enum and const ---------------------------------------------------------------------------- */

void whit_json_schema_quote(whit_buf *out, const char *text, size_t n_bytes)
{
    static const char codes[] = "\b\f\r", letters[] = "bfr";
    size_t from = 0;
    whit_buf_append_str(out, "\"");
    for (size_t i = 0; i <= n_bytes; i++) {
        const char *found = i < n_bytes && text[i] ? strchr(codes, text[i]) : NULL;
        if (i < n_bytes && !found) continue;
        /* whit_json_write_string has short escapes for line feed and tab only, so that others are written above. It
         * adds quotes, which are removed here. */
        size_t begin = out->size_bytes;
        whit_json_write_string(out, text + from, i - from);
        if (!out->failed) {
            memmove(out->data + begin, out->data + begin + 1, out->size_bytes - begin - 2);
            out->size_bytes -= 2;
        }
        if (found) whit_buf_printf(out, "\\%c", letters[found - codes]);
        from = i + 1;
    }
    whit_buf_append_str(out, "\"");
}

static void write_value(const whit_json *json, uint32_t node, whit_buf *out)
{
    size_t n;
    const char *text = whit_json_string(json, node, &n);
    const whit_json_node *own = WHIT_ITEMS(const whit_json_node, &json->nodes) + node;
    switch (whit_json_type_of(json, node)) {
    case WHIT_JSON_STRING: whit_json_schema_quote(out, text, n); break;
    case WHIT_JSON_ARRAY:
    case WHIT_JSON_OBJECT: {
        bool object = whit_json_type_of(json, node) == WHIT_JSON_OBJECT, first = true;
        whit_buf_append_str(out, object ? "{" : "[");
        for (uint32_t k = whit_json_first(json, node); k != WHIT_JSON_NONE; k = whit_json_next(json, node, k)) {
            if (!first) whit_buf_append_str(out, ",");
            first = false;
            write_value(json, k, out);
            if (object) whit_buf_append_str(out, ":");
            if (object) write_value(json, k + 1, out);
        }
        whit_buf_append_str(out, object ? "}" : "]");
        break;
    }
    default: whit_buf_append(out, json->text + own->start, own->end - own->start); break;
    }
}

void whit_json_schema_write(const whit_json_schema_compiler *c, uint32_t value, whit_buf *out)
{
    write_value(&c->json, value, out);
}

uint32_t whit_json_schema_type_of(const whit_json *json, uint32_t value)
{
    whit_decimal number;
    switch (whit_json_type_of(json, value)) {
    case WHIT_JSON_NULL: return WHIT_JSON_SCHEMA_NULL;
    case WHIT_JSON_BOOL: return WHIT_JSON_SCHEMA_BOOL;
    case WHIT_JSON_STRING: return WHIT_JSON_SCHEMA_STRING;
    case WHIT_JSON_ARRAY: return WHIT_JSON_SCHEMA_ARRAY;
    case WHIT_JSON_OBJECT: return WHIT_JSON_SCHEMA_OBJECT;
    case WHIT_JSON_NUMBER:
        if (!whit_decimal_of_node(json, value, &number)) return 0; /* NaN and similar values are not JSON */
        return whit_decimal_is_whole(&number) ? WHIT_JSON_SCHEMA_INTEGER : WHIT_JSON_SCHEMA_REAL;
    case WHIT_JSON_MISSING: break;
    }
    return 0;
}

/* Returns the value of a key in an object of any size. `key` is a node, whose text may contain zero bytes. If the key
 * occurs several times, the last one counts. */
static uint32_t value_of_key(const whit_json *json, uint32_t object, uint32_t key)
{
    size_t n, n_key;
    const char *wanted = whit_json_string(json, key, &n_key);
    uint32_t found = WHIT_JSON_NONE;
    for (uint32_t k = whit_json_first(json, object); k != WHIT_JSON_NONE; k = whit_json_next(json, object, k)) {
        const char *name = whit_json_string(json, k, &n);
        if (name && n == n_key && memcmp(name, wanted, n) == 0) found = k + 1;
    }
    return found;
}

/* Returns whether every member of `a` is in `b`, with an equal value. */
static bool has_members(whit_json_schema_compiler *c, uint32_t a, uint32_t b)
{
    const whit_json *json = &c->json;
    uint32_t n = (uint32_t)whit_json_count(json, b);
    for (uint32_t k = whit_json_first(json, a); k != WHIT_JSON_NONE; k = whit_json_next(json, a, k)) {
        if (!whit_json_schema_work(c, k, n)) return false;
        uint32_t mine = value_of_key(json, a, k), other = value_of_key(json, b, k);
        if (other == WHIT_JSON_NONE || !whit_json_schema_same(c, mine, other)) return false;
    }
    return true;
}

bool whit_json_schema_same(whit_json_schema_compiler *c, uint32_t a, uint32_t b)
{
    const whit_json *json = &c->json;
    whit_json_type type = whit_json_type_of(json, a);
    whit_decimal x, y;
    size_t n, m;
    if (type != whit_json_type_of(json, b) || !whit_json_schema_work(c, a, 1)) return false;
    switch (type) {
    case WHIT_JSON_NULL: return true;
    case WHIT_JSON_BOOL: return whit_json_bool(json, a, false) == whit_json_bool(json, b, false);
    case WHIT_JSON_NUMBER:
        return whit_decimal_of_node(json, a, &x) && whit_decimal_of_node(json, b, &y) &&
            whit_decimal_compare(&x, &y) == 0;
    case WHIT_JSON_STRING: {
        const char *s = whit_json_string(json, a, &n), *t = whit_json_string(json, b, &m);
        return n == m && memcmp(s, t, n) == 0;
    }
    case WHIT_JSON_ARRAY: {
        uint32_t k = whit_json_first(json, a), l = whit_json_first(json, b);
        for (; k != WHIT_JSON_NONE && l != WHIT_JSON_NONE;
             k = whit_json_next(json, a, k), l = whit_json_next(json, b, l))
            if (!whit_json_schema_same(c, k, l)) return false;
        return k == l;
    }
    case WHIT_JSON_OBJECT: return has_members(c, a, b) && has_members(c, b, a);
    case WHIT_JSON_MISSING: break;
    }
    return false;
}

static bool in_list(whit_json_schema_compiler *c, uint32_t list, uint32_t value)
{
    const whit_json *json = &c->json;
    for (uint32_t k = whit_json_first(json, list); k != WHIT_JSON_NONE; k = whit_json_next(json, list, k))
        if (!whit_json_schema_work(c, k, 20) || whit_json_schema_same(c, k, value)) return true;
    return false;
}

static int by_text(const void *a, const void *b)
{
    const whit_automaton_word *x = a, *y = b;
    size_t n = x->n_bytes < y->n_bytes ? x->n_bytes : y->n_bytes;
    int order = memcmp(x->text, y->text, n);
    if (order) return order;
    return x->n_bytes < y->n_bytes ? -1 : x->n_bytes > y->n_bytes;
}

uint32_t whit_json_schema_enum(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t types, uint32_t next)
{
    uint32_t list = WHIT_JSON_NONE;
    whit_buf texts = {.allocator = c->graph->allocator}, ends = {.allocator = c->graph->allocator};
    bool constant = false;
    for (uint32_t i = 0; i < set.n && !constant; i++) { /* use a constant if there is one, else the first enum */
        if (set.items[i].kind != WHIT_JSON_SCHEMA_HOLDS) continue;
        uint32_t one = whit_json_schema_get(c, set.items[i].node, "const"),
                 many = whit_json_schema_get(c, set.items[i].node, "enum");
        constant = one != WHIT_JSON_NONE;
        if (constant || (many != WHIT_JSON_NONE && list == WHIT_JSON_NONE)) list = constant ? one : many;
    }
    if (!constant && (whit_json_type_of(&c->json, list) != WHIT_JSON_ARRAY))
        return whit_json_schema_refuse(c, list, "expected a list of values");
    c->listed = constant ? WHIT_JSON_NONE : list;
    for (uint32_t k = constant ? list : whit_json_first(&c->json, list); k != WHIT_JSON_NONE && c->status == WHIT_OK;
         k = constant ? WHIT_JSON_NONE : whit_json_next(&c->json, list, k)) {
        bool ok = (whit_json_schema_type_of(&c->json, k) & types) != 0;
        for (uint32_t i = 0; i < set.n && ok; i++) ok = whit_json_schema_is_valid(c, k, set.items[i]);
        if (!ok) continue;
        write_value(&c->json, k, &texts);
        if (!whit_buf_append(&ends, &texts.size_bytes, sizeof texts.size_bytes)) c->graph->failed = true;
    }
    size_t n = ends.size_bytes / sizeof(size_t), kept = 0;
    whit_automaton_word *words = whit_zalloc_array(c->graph->allocator, n + 1, sizeof *words);
    if (!words || texts.failed) c->graph->failed = true;
    uint32_t begin = WHIT_AUTOMATON_NONE;
    if (!c->graph->failed && c->status == WHIT_OK) {
        for (size_t i = 0; i < n; i++) {
            size_t from = i ? (WHIT_ITEMS(size_t, &ends))[i - 1] : 0;
            words[i] = (whit_automaton_word){texts.data + from, (WHIT_ITEMS(size_t, &ends))[i] - from};
        }
        if (n > 1) qsort(words, n, sizeof *words, by_text);
        for (size_t i = 0; i < n; i++)
            if (kept == 0 || by_text(&words[kept - 1], &words[i])) words[kept++] = words[i];
        begin = whit_automaton_words(c->graph, words, kept, next);
    }
    whit_free(c->graph->allocator, words, (n + 1) * sizeof *words);
    whit_buf_free(&texts);
    whit_buf_free(&ends);
    return begin;
}

/* ---- schemas that exclude each other ----------------------------------------------------------- */

static uint32_t follow(whit_json_schema_compiler *c, uint32_t schema)
{
    for (int i = 0; i < 32; i++) {
        uint32_t to = whit_json_schema_reference(c, schema, 0);
        if (to == WHIT_JSON_NONE) break;
        schema = to;
    }
    return schema;
}

static uint32_t types_with_values(whit_json_schema_compiler *c, uint32_t schema)
{
    uint32_t types = whit_json_schema_types(c, schema), found = 0;
    uint32_t one = whit_json_schema_get(c, schema, "const"), many = whit_json_schema_get(c, schema, "enum");
    if (one != WHIT_JSON_NONE) return types & whit_json_schema_type_of(&c->json, one);
    if (many == WHIT_JSON_NONE) return types;
    for (uint32_t k = whit_json_first(&c->json, many); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, many, k))
        found |= whit_json_schema_type_of(&c->json, k);
    return types & found;
}

static bool values_disjoint(whit_json_schema_compiler *c, uint32_t a, uint32_t b)
{
    uint32_t one_a = whit_json_schema_get(c, a, "const"), many_a = whit_json_schema_get(c, a, "enum");
    uint32_t one_b = whit_json_schema_get(c, b, "const"), many_b = whit_json_schema_get(c, b, "enum");
    if (one_a == WHIT_JSON_NONE && many_a == WHIT_JSON_NONE) return false;
    if (one_b == WHIT_JSON_NONE && many_b == WHIT_JSON_NONE) return false;
    if (one_a != WHIT_JSON_NONE)
        return one_b != WHIT_JSON_NONE ? !whit_json_schema_same(c, one_a, one_b) : !in_list(c, many_b, one_a);
    if (one_b != WHIT_JSON_NONE) return !in_list(c, many_a, one_b);
    for (uint32_t k = whit_json_first(&c->json, many_a); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, many_a, k))
        if (in_list(c, many_b, k)) return false;
    return true;
}

bool whit_json_schema_disjoint(whit_json_schema_compiler *c, uint32_t a, uint32_t b, uint32_t depth)
{
    if (depth > 3 || c->status != WHIT_OK) return false;
    a = follow(c, a);
    b = follow(c, b);
    if (c->status != WHIT_OK) return false;
    uint32_t types = types_with_values(c, a) & types_with_values(c, b);
    if (types == 0 || values_disjoint(c, a, b)) return true;
    if (types != WHIT_JSON_SCHEMA_OBJECT) return false;
    for (int turned = 0; turned < 2; turned++) {
        uint32_t x = turned ? b : a;
        uint32_t y = turned ? a : b, required = whit_json_schema_get(c, x, "required");
        uint32_t other = whit_json_schema_get(c, y, "additionalProperties");
        bool closed = whit_json_type_of(&c->json, other) == WHIT_JSON_BOOL && !whit_json_bool(&c->json, other, true) &&
            whit_json_schema_get(c, y, "patternProperties") == WHIT_JSON_NONE;
        for (uint32_t k = whit_json_first(&c->json, required); k != WHIT_JSON_NONE;
             k = whit_json_next(&c->json, required, k)) {
            size_t n;
            const char *key = whit_json_string(&c->json, k, &n);
            char name[256];
            if (!key || n >= sizeof name || memchr(key, 0, n)) continue;
            memcpy(name, key, n);
            name[n] = 0;
            uint32_t p = whit_json_schema_get(c, whit_json_schema_get(c, x, "properties"), name);
            uint32_t q = whit_json_schema_get(c, whit_json_schema_get(c, y, "properties"), name);
            if (closed && q == WHIT_JSON_NONE) return true;
            if (p == WHIT_JSON_NONE || q == WHIT_JSON_NONE || !in_list(c, whit_json_schema_get(c, y, "required"), k))
                continue;
            if (whit_json_schema_disjoint(c, p, q, depth + 1)) return true;
        }
    }
    return false;
}
