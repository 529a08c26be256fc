/* SPDX-License-Identifier: MIT
 * JSON Schema: arrays and objects. Properties are written in the order of the schema. */
#include "grammar/schema_parts.h"
#include "grammar/pattern.h"

#include <stdlib.h>

enum { MOST_PROPERTIES = 20000, MOST_SHARED_BYTES = 200, MOST_ESCAPED_NAMES = 2000, MOST_NAME_REST = 64 };

uint32_t whit_json_schema_sign(whit_json_schema_compiler *c, const char *sign, uint32_t next)
{
    uint32_t ways[] = {whit_automaton_text(c->graph, " ", 1, next), next};
    return whit_automaton_text(c->graph, sign, 1, whit_automaton_split(c->graph, ways, 2));
}

/* A value that all schemas of `set` (whit_json_schema_item[]) accept. */
static uint32_t value_of(whit_json_schema_compiler *c, const whit_buf *set, uint32_t next)
{
    uint32_t n = (uint32_t)(set->size_bytes / sizeof(whit_json_schema_item));
    if (n == 0) return whit_json_schema_any(c, next);
    return whit_automaton_call(c->graph, whit_json_schema_rule(c, (const whit_json_schema_item *)set->data, n), next);
}

/* ---- arrays ------------------------------------------------------------------------------------ */

static bool is_false(const whit_json *json, uint32_t node)
{
    return whit_json_type_of(json, node) == WHIT_JSON_BOOL && !whit_json_bool(json, node, true);
}

static uint32_t nth(const whit_json *json, uint32_t list, uint32_t i)
{
    uint32_t k = whit_json_first(json, list);
    while (i-- && k != WHIT_JSON_NONE) k = whit_json_next(json, list, k);
    return k;
}

/* The schemas of the i-th element; i UINT32_MAX: of those behind all prefixes. */
static bool item_schemas(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t i, whit_buf *out, bool *none)
{
    out->size_bytes = 0;
    *none = false;
    for (uint32_t k = 0; k < set.n; k++) {
        uint32_t schema = set.items[k].node, items = whit_json_schema_get(c, schema, "items");
        uint32_t prefix = whit_json_schema_get(c, schema, "prefixItems");
        if (whit_json_type_of(&c->json, items) == WHIT_JSON_ARRAY) { /* before 2020-12 */
            prefix = items;
            items = whit_json_schema_get(c, schema, "additionalItems");
        }
        uint32_t own = i == UINT32_MAX ? WHIT_JSON_NONE : nth(&c->json, prefix, i);
        if (own == WHIT_JSON_NONE) own = items;
        if (own == WHIT_JSON_NONE) continue;
        if (is_false(&c->json, own)) *none = true;
        if (!*none && !whit_json_schema_collect(c, own, out)) return false;
    }
    return true;
}

uint32_t whit_json_schema_array(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t next)
{
    uint32_t min, max, n_prefix = 0;
    bool none;
    whit_buf schemas = {.allocator = c->graph->allocator};
    whit_automaton *g = c->graph;
    if (!whit_json_schema_bounds(c, set, "minItems", "maxItems", &min, &max)) return WHIT_AUTOMATON_NONE;
    for (uint32_t k = 0; k < set.n; k++) {
        uint32_t items = whit_json_schema_get(c, set.items[k].node, "items");
        uint32_t prefix = whit_json_schema_get(c, set.items[k].node, "prefixItems");
        if (whit_json_type_of(&c->json, items) == WHIT_JSON_ARRAY) prefix = items;
        uint32_t n = prefix == WHIT_JSON_NONE ? 0 : (uint32_t)whit_json_count(&c->json, prefix);
        if (n > n_prefix) n_prefix = n;
    }
    if (n_prefix > 2000) return whit_json_schema_refuse(c, set.items[0].node, "too many prefixItems");
    uint32_t end = whit_automaton_text(g, "]", 1, next), tail = end, begin = WHIT_AUTOMATON_NONE;
    if (!item_schemas(c, set, UINT32_MAX, &schemas, &none)) goto done;
    if (none && max > n_prefix) max = n_prefix;
    if (min > max) {
        begin = whit_automaton_split(g, NULL, 0);
        goto done;
    }
    /* `tail` is what follows once all prefixes and, without any, one element are written. */
    uint32_t n_before = n_prefix ? n_prefix : 1;
    if (max > n_before) {
        uint32_t more = whit_json_schema_sign(c, ",", value_of(c, &schemas, WHIT_AUTOMATON_RET));
        tail = whit_automaton_repeat(g, more, min > n_before ? min - n_before : 0,
                                     max == WHIT_AUTOMATON_UNBOUNDED ? max : max - n_before, end);
    }
    for (uint32_t i = n_before; i-- > 0;) {
        if (n_prefix && !item_schemas(c, set, i, &schemas, &none)) goto done;
        bool may_end = i >= min, may_go_on = i < max && !(n_prefix && none);
        uint32_t ways[2], n_ways = 0;
        if (may_end) ways[n_ways++] = end;
        if (may_go_on) {
            uint32_t value = value_of(c, &schemas, tail);
            ways[n_ways++] = i ? whit_json_schema_sign(c, ",", value) : value;
        }
        tail = whit_automaton_split(g, ways, n_ways);
    }
    begin = whit_automaton_text(g, "[", 1, tail);
done:
    whit_buf_free(&schemas);
    return begin;
}

/* ---- objects ----------------------------------------------------------------------------------- */

typedef struct property {
    const char *name;
    size_t n_bytes;
    uint32_t rule, order; /* of its value */
    bool required, dropped;
} property;

typedef struct object {
    property *list;
    uint32_t n;
    bool open; /* others may be written */
    uint32_t n_declared;
} object;

static uint32_t declared(whit_json_schema_compiler *c, uint32_t schema, const property *p)
{
    uint32_t properties = whit_json_schema_get(c, schema, "properties"), found = WHIT_JSON_NONE;
    for (uint32_t k = whit_json_first(&c->json, properties); k != WHIT_JSON_NONE;
         k = whit_json_next(&c->json, properties, k)) {
        size_t n;
        const char *name = whit_json_string(&c->json, k, &n);
        if (!whit_json_schema_work(c, k, 1)) break;
        if (n == p->n_bytes && memcmp(name, p->name, n) == 0) found = k + 1;
    }
    return found;
}

static int by_name(const void *a, const void *b)
{
    const property *x = a, *y = b;
    size_t n = x->n_bytes < y->n_bytes ? x->n_bytes : y->n_bytes;
    int order = n ? memcmp(x->name, y->name, n) : 0;
    if (order) return order;
    if (x->n_bytes != y->n_bytes) return x->n_bytes < y->n_bytes ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int by_order(const void *a, const void *b)
{
    const property *x = a, *y = b;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* All names, declared ones first and in order, without doubles. */
static bool list_properties(whit_json_schema_compiler *c, whit_json_schema_set set, whit_buf *out)
{
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < set.n; i++) {
            uint32_t from = whit_json_schema_get(c, set.items[i].node, pass ? "required" : "properties");
            whit_json_type wanted = pass ? WHIT_JSON_ARRAY : WHIT_JSON_OBJECT;
            if (from != WHIT_JSON_NONE && whit_json_type_of(&c->json, from) != wanted) {
                /* Draft 3 had a boolean there. */
                whit_json_schema_refuse(c, from, pass ? "expected a list of names" : "expected an object of schemas");
                return false;
            }
            for (uint32_t k = whit_json_first(&c->json, from); k != WHIT_JSON_NONE;
                 k = whit_json_next(&c->json, from, k)) {
                property p = {.order = (uint32_t)(out->size_bytes / sizeof p), .required = pass == 1};
                p.name = whit_json_string(&c->json, k, &p.n_bytes);
                if (!p.name) return whit_json_schema_refuse(c, k, "expected a name"), false;
                if (p.order == MOST_PROPERTIES) return whit_json_schema_refuse(c, k, "too many properties"), false;
                if (!whit_buf_append(out, &p, sizeof p)) c->graph->failed = true;
            }
        }
    property *list = (property *)out->data;
    size_t n = out->size_bytes / sizeof *list, kept = 0;
    if (n > 1) qsort(list, n, sizeof *list, by_name);
    for (size_t i = 0; i < n; i++) {
        property *last = kept ? &list[kept - 1] : NULL;
        if (last && last->n_bytes == list[i].n_bytes && memcmp(last->name, list[i].name, last->n_bytes) == 0)
            last->required |= list[i].required;
        else
            list[kept++] = list[i];
    }
    if (kept > 1) qsort(list, kept, sizeof *list, by_order);
    out->size_bytes = kept * sizeof *list;
    return !c->graph->failed;
}

/* What governs properties that a schema does not name: p, or where it is NULL one that nothing names.
 * unevaluatedProperties is for those alone that no schema beside it governs, however far $ref and allOf lead. */
static uint32_t others_of(whit_json_schema_compiler *c, uint32_t schema, const property *p)
{
    uint32_t others = whit_json_schema_get(c, schema, "additionalProperties");
    uint32_t unevaluated = whit_json_schema_get(c, schema, "unevaluatedProperties");
    if (others != WHIT_JSON_NONE) return others;
    if (unevaluated == WHIT_JSON_NONE || whit_json_bool(&c->json, unevaluated, false)) return unevaluated;
    whit_buf beside = {.allocator = c->graph->allocator};
    bool governed = !whit_json_schema_collect(c, schema, &beside);
    const whit_json_schema_item *items = (const whit_json_schema_item *)beside.data;
    uint32_t n = (uint32_t)(beside.size_bytes / sizeof *items);
    if (!whit_json_schema_work(c, unevaluated, n * n)) governed = true;
    for (uint32_t i = 0; i < n && !governed; i++) {
        uint32_t node = items[i].node;
        if (whit_json_schema_get(c, node, "anyOf") != WHIT_JSON_NONE ||
            whit_json_schema_get(c, node, "oneOf") != WHIT_JSON_NONE) {
            whit_json_schema_refuse(c, unevaluated,
                                    "this keyword beside anyOf or oneOf cannot be enforced: list all properties in "
                                    "each branch, with additionalProperties");
            governed = true;
        }
        governed |= p && declared(c, node, p) != WHIT_JSON_NONE;
        governed |= node != schema &&
            (whit_json_schema_get(c, node, "additionalProperties") != WHIT_JSON_NONE ||
             whit_json_schema_get(c, node, "unevaluatedProperties") != WHIT_JSON_NONE);
    }
    whit_buf_free(&beside);
    return governed ? WHIT_JSON_NONE : unevaluated;
}

/* The rule of a property's value; `dropped` where some schema lets no such property be. */
static bool compile_property(whit_json_schema_compiler *c, whit_json_schema_set set, property *p, whit_buf *schemas)
{
    schemas->size_bytes = 0;
    for (uint32_t i = 0; i < set.n; i++) {
        uint32_t own = declared(c, set.items[i].node, p);
        if (own == WHIT_JSON_NONE) own = others_of(c, set.items[i].node, p);
        if (own == WHIT_JSON_NONE) continue;
        if (is_false(&c->json, own)) {
            p->dropped = true;
            return true;
        }
        if (!whit_json_schema_collect(c, own, schemas)) return false;
    }
    p->rule = whit_json_schema_rule(c, (const whit_json_schema_item *)schemas->data,
                                    (uint32_t)(schemas->size_bytes / sizeof(whit_json_schema_item)));
    return c->status == WHIT_OK;
}

/* The rest of a key that is not in `list` (sorted by name, equal up to `depth`), with its quote. The character by which
 * a key leaves the list is written in any way but that of a listed name, so that no spelling of a name gets by; beside
 * many names, without escapes. Keys that a longer beginning than MOST_SHARED_BYTES sets apart are not written: that
 * bounds the recursion. `rest`: what may follow that character. */
static uint32_t other_key(whit_json_schema_compiler *c, const property *list, uint32_t n, size_t depth, uint32_t rest,
                          uint32_t quote)
{
    whit_automaton *g = c->graph;
    if (g->failed) return WHIT_AUTOMATON_NONE;
    whit_buf ways = {.allocator = g->allocator}, ranges = {.allocator = g->allocator};
    bool ends = n && list[0].n_bytes == depth;
    bool taken[256] = {false}, any_wide = false;
    if (!ends && depth && !whit_buf_append(&ways, &quote, sizeof quote)) g->failed = true;
    for (uint32_t i = ends ? 1 : 0; i < n && !g->failed;) {
        uint8_t byte = (uint8_t)list[i].name[depth];
        uint32_t end = i;
        while (end < n && (uint8_t)list[end].name[depth] == byte) end++;
        taken[byte] = true;
        any_wide |= byte >= 0x80;
        if (byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\' && depth < MOST_SHARED_BYTES) {
            uint32_t way = other_key(c, list + i, end - i, depth + 1, rest, quote);
            way = whit_automaton_text(g, &byte, 1, way);
            if (!whit_buf_append(&ways, &way, sizeof way)) g->failed = true;
        }
        i = end;
    }
    for (uint32_t from = 0; from < 0x80; from++) {
        whit_code_range range = {from, from};
        if (taken[from]) continue;
        while (range.last < 0x7F && !taken[range.last + 1]) range.last++;
        from = range.last;
        if (range.last == 0x7F && !any_wide) range.last = 0x10FFFF;
        if (!whit_buf_append(&ranges, &range, sizeof range)) g->failed = true;
    }
    if (taken[0x7F] && !any_wide) {
        whit_code_range wide = {0x80, 0x10FFFF};
        if (!whit_buf_append(&ranges, &wide, sizeof wide)) g->failed = true;
    }
    const whit_code_range *codes = (const whit_code_range *)ranges.data;
    size_t n_codes = ranges.size_bytes / sizeof *codes;
    uint32_t way = n > MOST_ESCAPED_NAMES ? whit_automaton_json_code(g, codes, n_codes, rest)
                                          : whit_automaton_json_spelled(g, codes, n_codes, rest);
    if (!whit_buf_append(&ways, &way, sizeof way)) g->failed = true;
    uint32_t begin = whit_automaton_split(g, (const uint32_t *)ways.data, ways.size_bytes / sizeof way);
    whit_buf_free(&ways);
    whit_buf_free(&ranges);
    return begin;
}

/* A key that is not in the sorted list, with its quotes. */
static uint32_t any_other_key(whit_json_schema_compiler *c, const property *list, uint32_t n, uint32_t next)
{
    whit_automaton *g = c->graph;
    uint32_t quote = whit_automaton_text(g, "\"", 1, next);
    uint32_t body = whit_automaton_json_character(g, WHIT_AUTOMATON_RET);
    uint32_t rest = whit_automaton_characters(g, body, 0, MOST_NAME_REST, quote);
    return whit_automaton_text(g, "\"", 1, other_key(c, list, n, 0, rest, quote));
}

static uint32_t key_and_value(whit_json_schema_compiler *c, const property *p, uint32_t next)
{
    whit_buf key = {.allocator = c->graph->allocator};
    whit_json_schema_quote(&key, p->name, p->n_bytes);
    if (key.failed) c->graph->failed = true;
    uint32_t value = whit_automaton_call(c->graph, p->rule, next);
    uint32_t begin = whit_automaton_text(c->graph, key.data, key.size_bytes, whit_json_schema_sign(c, ":", value));
    whit_buf_free(&key);
    return begin;
}

/* Additional properties in front of the closing brace: min to max of them; *first: where nothing
 * stands before them. */
static void write_others(whit_json_schema_compiler *c, const object *o, const whit_buf *schemas, uint32_t min,
                         uint32_t max, uint32_t end, uint32_t *first, uint32_t *more)
{
    property *sorted = whit_zalloc_array(c->graph->allocator, o->n + 1, sizeof *sorted);
    whit_automaton *g = c->graph;
    *first = *more = WHIT_AUTOMATON_NONE;
    if (!sorted) {
        g->failed = true;
        return;
    }
    if (o->n) memcpy(sorted, o->list, o->n * sizeof *sorted);
    if (o->n > 1) qsort(sorted, o->n, sizeof *sorted, by_name);
    uint32_t pair = whit_automaton_rule(g);
    uint32_t value = whit_json_schema_sign(c, ":", value_of(c, schemas, WHIT_AUTOMATON_RET));
    whit_automaton_define(g, pair, any_other_key(c, sorted, o->n, value));
    uint32_t again = whit_json_schema_sign(c, ",", whit_automaton_call(g, pair, WHIT_AUTOMATON_RET));
    uint32_t left = max == WHIT_AUTOMATON_UNBOUNDED ? max : max - 1;
    *more = whit_automaton_repeat(g, again, min, max, end);
    *first = whit_automaton_call(g, pair, whit_automaton_repeat(g, again, min ? min - 1 : 0, left, end));
    if (min == 0) {
        uint32_t ways[] = {*first, end};
        *first = whit_automaton_split(g, ways, 2);
    }
    whit_free(g->allocator, sorted, (o->n + 1) * sizeof *sorted);
}

/* minProperties and maxProperties, by requiring or leaving out optional ones. */
static bool fit_counts(whit_json_schema_compiler *c, whit_json_schema_set set, object *o, uint32_t *min_others,
                       uint32_t *max_others, bool *possible)
{
    uint32_t min, max, n_required = 0, n_all = 0;
    if (!whit_json_schema_bounds(c, set, "minProperties", "maxProperties", &min, &max)) return false;
    for (uint32_t i = 0; i < o->n; i++) {
        *possible &= !(o->list[i].required && o->list[i].dropped);
        n_required += o->list[i].required;
        n_all += !o->list[i].dropped;
    }
    *possible &= n_required <= max && min <= max;
    for (uint32_t i = 0; i < o->n && n_required < min; i++)
        if (!o->list[i].required && !o->list[i].dropped) o->list[i].required = true, n_required++;
    for (uint32_t i = o->n; i-- > 0 && n_all > max;)
        if (!o->list[i].required && !o->list[i].dropped) o->list[i].dropped = true, n_all--;
    *min_others = min > n_required ? min - n_required : 0;
    *max_others = max == WHIT_AUTOMATON_UNBOUNDED ? max : max - n_all;
    if (!o->open && *min_others) *possible = false;
    if (o->open && *min_others > 1) { /* equal keys count once */
        for (uint32_t i = 0; i < set.n; i++) {
            uint32_t node = whit_json_schema_get(c, set.items[i].node, "minProperties");
            if (node != WHIT_JSON_NONE)
                return whit_json_schema_refuse(c, node, "so many properties without names cannot be enforced"), false;
        }
    }
    return true;
}

uint32_t whit_json_schema_object(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t next)
{
    whit_automaton *g = c->graph;
    whit_buf list = {.allocator = g->allocator}, schemas = {.allocator = g->allocator};
    uint32_t begin = WHIT_AUTOMATON_NONE, min_others, max_others;
    bool possible = true, closed = false, asked = false;
    if (!list_properties(c, set, &list)) goto done;
    object o = {.list = (property *)list.data, .n = (uint32_t)(list.size_bytes / sizeof(property))};
    for (uint32_t i = 0; i < set.n; i++) {
        uint32_t others = others_of(c, set.items[i].node, NULL);
        closed |= is_false(&c->json, others);
        asked |= others != WHIT_JSON_NONE;
        o.n_declared += whit_json_count(&c->json, whit_json_schema_get(c, set.items[i].node, "properties")) != 0;
    }
    o.open = !closed && (asked || o.n_declared == 0);
    for (uint32_t i = 0; i < o.n; i++)
        if (!compile_property(c, set, &o.list[i], &schemas)) goto done;
    if (!fit_counts(c, set, &o, &min_others, &max_others, &possible)) goto done;
    if (!possible) {
        begin = whit_automaton_split(g, NULL, 0);
        goto done;
    }
    schemas.size_bytes = 0;
    for (uint32_t i = 0; i < set.n && o.open; i++) {
        uint32_t others = others_of(c, set.items[i].node, NULL);
        if (others != WHIT_JSON_NONE && !whit_json_schema_collect(c, others, &schemas)) goto done;
    }
    uint32_t end = whit_automaton_text(g, "}", 1, next), first = end, more = end;
    if (o.open && max_others) write_others(c, &o, &schemas, min_others, max_others, end, &first, &more);
    for (uint32_t i = o.n; i-- > 0 && c->status == WHIT_OK;) {
        const property *p = &o.list[i];
        if (p->dropped) continue;
        /* Two ways to arrive: nothing is written yet, or a comma comes first. */
        uint32_t pair = key_and_value(c, p, more);
        uint32_t with_comma = whit_json_schema_sign(c, ",", pair);
        uint32_t firsts[] = {pair, first}, mores[] = {with_comma, more};
        first = p->required ? pair : whit_automaton_split(g, firsts, 2);
        more = p->required ? with_comma : whit_automaton_split(g, mores, 2);
    }
    begin = whit_automaton_text(g, "{", 1, first);
done:
    whit_buf_free(&list);
    whit_buf_free(&schemas);
    return begin;
}
