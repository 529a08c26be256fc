/* SPDX-License-Identifier: MIT
 * Compiles arrays of JSON Schema.
 *
 * Elements are written one after the other. If a certain number of elements must satisfy a further schema (`contains`),
 * or fail a schema, a *watch* counts these elements. An array is then a walk through places. A place consists of the
 * index of the next element and the watches' counts, and has a rule. */
#include "grammar/schema_parts.h"
#include "base/items.h"

enum { PREFIX_MAX = 2000, WATCHES_MAX = 3, PLACES_MAX = 4096, VALUES_MAX = 10, ORDERED_MAX = 1000 };

/* Requires that `min` to `max` of the elements with index `from` to `to` satisfy the schema or, if `fails`, do not
 * satisfy it. */
typedef struct watch {
    uint32_t schema, owner; /* owner: the schema that has this `contains`; WHIT_JSON_NONE if the matches are not needed
                             * for unevaluatedItems */
    uint32_t from, to, min, max;
    bool fails;
} watch;

typedef struct array {
    whit_json_schema_compiler *c;
    whit_json_schema_set set;
    uint32_t n_prefix, min, max;
    watch watches[WATCHES_MAX];
    uint32_t n_watches;
    whit_buf schemas; /* array of whit_json_schema_item: the conditions on one element */
} array;

/* ---- schemas of elements ----------------------------------------------------------------------- */

uint32_t whit_json_schema_prefix(const whit_json_schema_compiler *c, uint32_t schema, uint32_t *rest)
{
    uint32_t items = whit_json_schema_get(c, schema, "items"), prefix = whit_json_schema_get(c, schema, "prefixItems");
    *rest = items;
    if (whit_json_type_of(&c->json, items) != WHIT_JSON_ARRAY) return prefix;
    *rest = whit_json_schema_get(c, schema, "additionalItems"); /* the keyword of drafts before 2020-12 */
    return items;
}

uint32_t whit_json_schema_element(whit_json_schema_compiler *c, uint32_t schema, uint32_t i)
{
    uint32_t rest, prefix = whit_json_schema_prefix(c, schema, &rest), k = whit_json_first(&c->json, prefix);
    if (!whit_json_schema_work(c, schema, i / 16 + 1)) return WHIT_JSON_NONE;
    while (i-- && k != WHIT_JSON_NONE) k = whit_json_next(&c->json, prefix, k);
    return k != WHIT_JSON_NONE ? k : rest;
}

static bool is_false(const whit_json *json, uint32_t node)
{
    return whit_json_type_of(json, node) == WHIT_JSON_BOOL && !whit_json_bool(json, node, true);
}

/* Returns whether element i counts as evaluated for unevaluatedItems of `schema`: by its own keywords, or by a schema
 * that it applies to the same array. i UINT32_MAX: an element after all prefixes. `matched`: bit set of the watches
 * that the element satisfies. `top`: `schema` is the one with unevaluatedItems. */
static bool is_evaluated(array *a, uint32_t schema, uint32_t i, uint32_t matched, bool top, uint32_t depth)
{
    whit_json_schema_compiler *c = a->c;
    uint32_t rest, prefix = whit_json_schema_prefix(c, schema, &rest);
    if (whit_json_type_of(&c->json, schema) != WHIT_JSON_OBJECT || depth > 32) return false;
    if (rest != WHIT_JSON_NONE || (i != UINT32_MAX && i < whit_json_count(&c->json, prefix))) return true;
    if (!top && whit_json_schema_get(c, schema, "unevaluatedItems") != WHIT_JSON_NONE) return true;
    for (uint32_t k = 0; k < a->n_watches; k++)
        if (a->watches[k].owner == schema && matched >> k & 1) return true;
    whit_json_schema_applied applied = {.schema = schema};
    uint32_t next;
    while ((next = whit_json_schema_next_applied(c, a->set, &applied)) != WHIT_JSON_NONE)
        if (is_evaluated(a, next, i, matched, false, depth + 1)) return true;
    return false;
}

/* Sets a->schemas to the conditions on element i, apart from those of the watches; i UINT32_MAX: on elements after all
 * prefixes. *none becomes true if no such element is possible. Returns false after an error. */
static bool element_schemas(array *a, uint32_t i, uint32_t matched, bool *none)
{
    whit_json_schema_compiler *c = a->c;
    a->schemas.size_bytes = 0;
    *none = false;
    for (uint32_t k = 0; k < a->set.n; k++) {
        if (a->set.items[k].kind != WHIT_JSON_SCHEMA_HOLDS) continue;
        uint32_t schema = a->set.items[k].node, rest, own = WHIT_JSON_NONE;
        uint32_t unevaluated = whit_json_schema_get(c, schema, "unevaluatedItems");
        if (i == UINT32_MAX)
            whit_json_schema_prefix(c, schema, &rest), own = rest;
        else
            own = whit_json_schema_element(c, schema, i);
        if (own == WHIT_JSON_NONE && unevaluated != WHIT_JSON_NONE && !is_evaluated(a, schema, i, matched, true, 0))
            own = unevaluated;
        if (own == WHIT_JSON_NONE) continue;
        if (is_false(&c->json, own)) *none = true;
        if (!*none && !whit_json_schema_collect(c, own, &a->schemas)) return false;
    }
    return c->status == WHIT_OK;
}

static uint32_t element_value(array *a, uint32_t next)
{
    whit_json_schema_compiler *c = a->c;
    uint32_t n = (uint32_t)(a->schemas.size_bytes / sizeof(whit_json_schema_item));
    if (n == 0) return whit_json_schema_any(c, next);
    return whit_automaton_call(c->graph,
                               whit_json_schema_rule(c, WHIT_ITEMS(const whit_json_schema_item, &a->schemas), n), next);
}

/* ---- arrays without watches -------------------------------------------------------------------- */

static uint32_t plain_array(array *a, uint32_t next)
{
    whit_json_schema_compiler *c = a->c;
    whit_automaton *g = c->graph;
    uint32_t end = whit_automaton_text(g, "]", 1, next), tail = end;
    bool none;
    if (!element_schemas(a, UINT32_MAX, 0, &none)) return WHIT_AUTOMATON_NONE;
    if (none && a->max > a->n_prefix) a->max = a->n_prefix;
    if (a->min > a->max) return whit_automaton_split(g, NULL, 0);
    /* `tail` accepts the rest of the array after all prefixes or, without prefixes, after one element. */
    uint32_t n_before = a->n_prefix ? a->n_prefix : 1;
    if (a->max > n_before) {
        uint32_t more = whit_json_schema_sign(c, ",", element_value(a, WHIT_AUTOMATON_RET));
        uint32_t least = a->min > n_before ? a->min - n_before : 0;
        tail =
            whit_automaton_repeat(g, more, least, a->max == WHIT_AUTOMATON_UNBOUNDED ? a->max : a->max - n_before, end);
    }
    for (uint32_t i = n_before; i-- > 0;) {
        if (a->n_prefix && !element_schemas(a, i, 0, &none)) return WHIT_AUTOMATON_NONE;
        bool may_end = i >= a->min, may_continue = i < a->max && !(a->n_prefix && none);
        uint32_t ways[2], n_ways = 0;
        if (may_end) ways[n_ways++] = end;
        if (may_continue) {
            uint32_t value = element_value(a, tail);
            ways[n_ways++] = i ? whit_json_schema_sign(c, ",", value) : value;
        }
        tail = whit_automaton_split(g, ways, n_ways);
    }
    return whit_automaton_text(g, "[", 1, tail);
}

/* ---- watches ----------------------------------------------------------------------------------- */

static bool add_watch(array *a, watch w)
{
    if (a->n_watches == WATCHES_MAX)
        return whit_json_schema_refuse(a->c, w.schema,
                                       "at most %u conditions on some elements of one list (contains, failed items) "
                                       "are supported: remove some",
                                       WATCHES_MAX),
               false;
    a->watches[a->n_watches++] = w;
    return true;
}

/* Returns whether unevaluatedItems occurs in the set, which requires to know which elements satisfy `contains`. */
static bool needs_matches(whit_json_schema_compiler *c, whit_json_schema_set set)
{
    for (uint32_t i = 0; i < set.n; i++)
        if (set.items[i].kind == WHIT_JSON_SCHEMA_HOLDS &&
            whit_json_schema_get(c, set.items[i].node, "unevaluatedItems") != WHIT_JSON_NONE)
            return true;
    return false;
}

static bool find_watches(array *a)
{
    whit_json_schema_compiler *c = a->c;
    for (uint32_t i = 0; i < a->set.n; i++) {
        whit_json_schema_item item = a->set.items[i];
        watch w = {.schema = item.node, .owner = WHIT_JSON_NONE, .to = UINT32_MAX, .max = WHIT_AUTOMATON_UNBOUNDED};
        switch ((whit_json_schema_kind)item.kind) {
        case WHIT_JSON_SCHEMA_HOLDS:
        case WHIT_JSON_SCHEMA_FEWER_MATCH:
        case WHIT_JSON_SCHEMA_MORE_MATCH:
            if (needs_matches(c, a->set)) w.owner = item.node;
            w.schema = whit_json_schema_get(c, item.node, "contains");
            if (w.schema == WHIT_JSON_NONE) continue;
            if (!whit_json_schema_match_bounds(c, item.node, &w.min, &w.max)) return false;
            if (item.kind == WHIT_JSON_SCHEMA_FEWER_MATCH) {
                if (w.min == 0) a->max = 0, a->min = 1; /* fewer than 0 matches are impossible: an empty range */
                w.max = w.min - 1, w.min = 0;
            } else if (item.kind == WHIT_JSON_SCHEMA_MORE_MATCH) {
                w.min = w.max + 1, w.max = WHIT_AUTOMATON_UNBOUNDED;
            }
            if (w.min == 0 && w.max == WHIT_AUTOMATON_UNBOUNDED && !needs_matches(c, a->set)) continue;
            break;
        case WHIT_JSON_SCHEMA_ELEMENT_FAILS: w.from = item.value, w.min = 1, w.fails = true; break;
        case WHIT_JSON_SCHEMA_PREFIX_FAILS: w.from = w.to = item.value, w.min = 1, w.fails = true; break;
        default: continue;
        }
        if (!add_watch(a, w)) return false;
    }
    return true;
}

static uint32_t cap_of(const watch *w)
{
    return w->max == WHIT_AUTOMATON_UNBOUNDED ? w->min : w->max;
}

/* Adds to a->schemas the condition that a watch counts the element, or, without `counted`, does not count it. */
static bool add_condition(array *a, const watch *w, bool counted, bool *none)
{
    whit_json_schema_compiler *c = a->c;
    bool holds = counted != w->fails;
    if (whit_json_type_of(&c->json, w->schema) == WHIT_JSON_BOOL) {
        *none |= whit_json_bool(&c->json, w->schema, false) != holds;
        return true;
    }
    if (holds) return whit_json_schema_collect(c, w->schema, &a->schemas);
    whit_json_schema_item item = {.node = w->schema, .kind = WHIT_JSON_SCHEMA_FAILS};
    if (!whit_buf_append(&a->schemas, &item, sizeof item)) c->graph->failed = true;
    return true;
}

/* Builds the alternative of place `at` with one more element, which the watches in `counted` count. Returns false if no
 * such element is possible, or after an error. */
static bool element_way(array *a, uint32_t at, uint32_t last, const uint32_t *counts, uint32_t counted,
                        const uint32_t *rules, uint32_t *way)
{
    whit_json_schema_compiler *c = a->c;
    uint32_t next = 0, scale = last + 1;
    bool none;
    for (uint32_t k = 0; k < a->n_watches; k++) {
        const watch *w = &a->watches[k];
        bool on = at >= w->from && at <= w->to, unbounded = w->max == WHIT_AUTOMATON_UNBOUNDED;
        uint32_t count = counts[k] + (counted >> k & 1);
        if (counted >> k & 1 && (!on || (!unbounded && count > w->max))) return false;
        /* A watch with enough matches ignores further ones; counting them would only add a second way to the same
         * text. */
        if (counted >> k & 1 && unbounded && counts[k] == w->min && w->owner == WHIT_JSON_NONE) return false;
        if (count > cap_of(w)) count = cap_of(w);
        next += count * scale;
        scale *= cap_of(w) + 1;
    }
    if (!element_schemas(a, at >= a->n_prefix ? UINT32_MAX : at, counted, &none)) return false;
    for (uint32_t k = 0; k < a->n_watches; k++) {
        const watch *w = &a->watches[k];
        bool on = at >= w->from && at <= w->to, is_counted = counted >> k & 1;
        bool asked = is_counted || (on && w->max != WHIT_AUTOMATON_UNBOUNDED);
        if (asked && !add_condition(a, w, is_counted, &none)) return false;
    }
    if (none) return false;
    next += at < last ? at + 1 : last;
    uint32_t value = element_value(a, whit_automaton_call(c->graph, rules[next], WHIT_AUTOMATON_RET));
    *way = at ? whit_json_schema_sign(c, ",", value) : value;
    return true;
}

static uint32_t watched_array(array *a, uint32_t next)
{
    whit_json_schema_compiler *c = a->c;
    whit_automaton *g = c->graph;
    uint32_t last = a->n_prefix > a->min ? a->n_prefix : a->min, counts[WATCHES_MAX] = {0};
    if (a->max != WHIT_AUTOMATON_UNBOUNDED && a->max > last) last = a->max;
    for (uint32_t k = 0; k < a->n_watches; k++) {
        const watch *w = &a->watches[k];
        uint32_t to = w->to == UINT32_MAX ? w->from : w->to + 1;
        if (to > last) last = to;
    }
    if (last == 0) last = 1; /* index 0 needs a place of its own: only the first element has no comma before it */
    uint64_t n_places = (uint64_t)last + 1;
    for (uint32_t k = 0; k < a->n_watches && n_places <= PLACES_MAX; k++)
        n_places *= (uint64_t)cap_of(&a->watches[k]) + 1;
    if (n_places > PLACES_MAX)
        return whit_json_schema_refuse(
            c, a->watches[0].schema,
            "the counts of elements (contains, minItems, maxItems) need more than %u states: make them smaller",
            PLACES_MAX);
    uint32_t rules[PLACES_MAX];
    for (uint64_t i = 0; i < n_places; i++) rules[i] = whit_automaton_rule(g);
    for (uint32_t i = 0; i < n_places && c->status == WHIT_OK && !g->failed; i++) {
        uint32_t at = i % (last + 1), rest = i / (last + 1), ways[1 + (1 << WATCHES_MAX)], n_ways = 0;
        bool may_end = at >= a->min && at <= a->max;
        for (uint32_t k = 0; k < a->n_watches; k++) {
            counts[k] = rest % (cap_of(&a->watches[k]) + 1);
            rest /= cap_of(&a->watches[k]) + 1;
            may_end &= counts[k] >= a->watches[k].min;
        }
        if (may_end) ways[n_ways++] = whit_automaton_text(g, "]", 1, WHIT_AUTOMATON_RET);
        for (uint32_t counted = 0; counted < 1u << a->n_watches && at < a->max; counted++)
            n_ways += element_way(a, at, last, counts, counted, rules, &ways[n_ways]);
        if (c->status == WHIT_OK) whit_automaton_define(g, rules[i], whit_automaton_split(g, ways, n_ways));
    }
    return whit_automaton_text(g, "[", 1, whit_automaton_call(g, rules[0], next));
}

/* ---- uniqueItems ------------------------------------------------------------------------------- */

/* Lists the values, without duplicates, of an enum that applies to every element, as far as they satisfy all the
 * conditions on the elements. Returns false if there is no such enum, or after an error. */
static bool list_values(array *a, whit_buf *values)
{
    whit_json_schema_compiler *c = a->c;
    const whit_json_schema_item *items = WHIT_ITEMS(const whit_json_schema_item, &a->schemas);
    uint32_t n = (uint32_t)(a->schemas.size_bytes / sizeof *items), list = WHIT_JSON_NONE;
    for (uint32_t i = 0; i < n; i++)
        if (items[i].kind == WHIT_JSON_SCHEMA_HOLDS && whit_json_schema_get(c, items[i].node, "enum") != WHIT_JSON_NONE)
            list = whit_json_schema_get(c, items[i].node, "enum");
    if (whit_json_type_of(&c->json, list) != WHIT_JSON_ARRAY) return false;
    for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE && c->status == WHIT_OK;
         k = whit_json_next(&c->json, list, k)) {
        const uint32_t *known = WHIT_ITEMS(const uint32_t, values);
        bool ok = true;
        for (size_t i = 0; i < values->size_bytes / sizeof k && ok; i++) ok = !whit_json_schema_same(c, known[i], k);
        for (uint32_t i = 0; i < n && ok; i++) ok = whit_json_schema_is_valid(c, k, items[i]);
        if (ok && !whit_buf_append(values, &k, sizeof k)) c->graph->failed = true;
    }
    return c->status == WHIT_OK;
}

/* Accepts arrays in which each value occurs at most once: few values in any order, many values only in the order of the
 * enum. A place is the set of values used so far, or the number of elements and the index of the last value. `values`
 * and `ways` are empty buffers, which the caller frees. */
static uint32_t write_differing(array *a, uint32_t unique, uint32_t next, whit_buf *values, whit_buf *ways)
{
    whit_json_schema_compiler *c = a->c;
    whit_automaton *g = c->graph;
    bool none;
    if (!element_schemas(a, UINT32_MAX, 0, &none)) return WHIT_AUTOMATON_NONE;
    if (a->n_prefix || a->n_watches || !list_values(a, values)) {
        if (c->status == WHIT_OK)
            whit_json_schema_refuse(
                c, unique, "uniqueItems is supported only if items have an enum, without prefixItems and contains");
        return WHIT_AUTOMATON_NONE;
    }
    uint32_t n = (uint32_t)(values->size_bytes / sizeof n), max = a->max < n ? a->max : n;
    bool in_order = n > VALUES_MAX;
    uint64_t n_places = in_order ? (uint64_t)(n + 1) * (max + 1) : UINT64_C(1) << n;
    if (n > ORDERED_MAX || n_places > PLACES_MAX) {
        whit_json_schema_refuse(
            c, unique,
            "uniqueItems with %u values in items is too large: at most %u are supported, fewer if maxItems is large", n,
            ORDERED_MAX);
        return WHIT_AUTOMATON_NONE;
    }
    uint32_t rules[PLACES_MAX];
    for (uint64_t i = 0; i < n_places; i++) rules[i] = whit_automaton_rule(g);
    for (uint32_t i = 0; i < n_places && !g->failed; i++) {
        uint32_t at = in_order ? i / (n + 1) : (uint32_t)__builtin_popcount(i), way;
        ways->size_bytes = 0;
        if (at >= a->min && at <= a->max) {
            way = whit_automaton_text(g, "]", 1, WHIT_AUTOMATON_RET);
            if (!whit_buf_append(ways, &way, sizeof way)) g->failed = true;
        }
        for (uint32_t k = in_order ? i % (n + 1) : 0; k < n && at < max; k++) {
            if (!in_order && i >> k & 1) continue;
            uint32_t to = in_order ? (at + 1) * (n + 1) + k + 1 : i | 1u << k;
            whit_buf text = {.allocator = g->allocator};
            whit_json_schema_write(c, (WHIT_ITEMS(const uint32_t, values))[k], &text);
            if (text.failed) g->failed = true;
            way = whit_automaton_text(g, text.data, text.size_bytes,
                                      whit_automaton_call(g, rules[to], WHIT_AUTOMATON_RET));
            whit_buf_free(&text);
            if (at) way = whit_json_schema_sign(c, ",", way);
            if (!whit_buf_append(ways, &way, sizeof way)) g->failed = true;
        }
        whit_automaton_define(g, rules[i],
                              whit_automaton_split(g, WHIT_ITEMS(const uint32_t, ways), ways->size_bytes / sizeof way));
    }
    return whit_automaton_text(g, "[", 1, whit_automaton_call(g, rules[0], next));
}

static uint32_t differing_array(array *a, uint32_t unique, uint32_t next)
{
    const whit_allocator *allocator = a->c->graph->allocator;
    whit_buf values = {.allocator = allocator}, ways = {.allocator = allocator};
    uint32_t begin = write_differing(a, unique, next, &values, &ways);
    whit_buf_free(&values);
    whit_buf_free(&ways);
    return begin;
}

uint32_t whit_json_schema_array(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t next)
{
    array a = {.c = c, .set = set, .schemas.allocator = c->graph->allocator};
    uint32_t unique = WHIT_JSON_NONE, begin = WHIT_AUTOMATON_NONE, rest;
    if (!whit_json_schema_bounds(c, set, "minItems", "maxItems", &a.min, &a.max)) return WHIT_AUTOMATON_NONE;
    for (uint32_t k = 0; k < set.n; k++) {
        if (set.items[k].kind != WHIT_JSON_SCHEMA_HOLDS) continue;
        uint32_t prefix = whit_json_schema_prefix(c, set.items[k].node, &rest);
        uint32_t n = (uint32_t)whit_json_count(&c->json, prefix);
        if (n > a.n_prefix) a.n_prefix = n;
        uint32_t node = whit_json_schema_get(c, set.items[k].node, "uniqueItems");
        if (whit_json_bool(&c->json, node, false)) unique = node;
    }
    if (a.n_prefix > PREFIX_MAX)
        return whit_json_schema_refuse(c, set.items[0].node, "prefixItems has %u schemas, but at most %u are supported",
                                       a.n_prefix, PREFIX_MAX);
    if (find_watches(&a)) {
        if (a.min > a.max)
            begin = whit_automaton_split(c->graph, NULL, 0);
        else if (unique != WHIT_JSON_NONE && a.max > 1)
            begin = differing_array(&a, unique, next);
        else
            begin = a.n_watches ? watched_array(&a, next) : plain_array(&a, next);
    }
    whit_buf_free(&a.schemas);
    return begin;
}
