/* SPDX-License-Identifier: MIT
 * Compiles JSON Schema: sets of schemas that must all hold, their types, and the whole document. */
#include "grammar/schema.h"
#include "base/items.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "grammar/decimal.h"
#include "grammar/gbnf.h"
#include "grammar/schema_parts.h"

enum {
    KNOWN_MAX = 256,
    MOST_SETS = 1 << 16,
    MOST_ITEMS = 256,
    MOST_REFERENCES = 200,
    CONDITIONS_MAX = 1024,
    ITEM_BYTES_MAX = 32 << 20
};

typedef struct set_entry {
    uint32_t first, n, rule, hash;
} set_entry;

/* ---- errors with the position of a keyword ----------------------------------------------------- */

/* Appends the JSON pointer of a node. It is found by a walk from the root, always into the member or element that
 * contains the node. */
static void write_path(const whit_json *json, uint32_t node, whit_buf *out)
{
    const whit_json_node *nodes = WHIT_ITEMS(const whit_json_node, &json->nodes);
    uint32_t at = WHIT_JSON_ROOT;
    whit_buf_append_str(out, "#");
    while (at != node && out->size_bytes < 400) {
        uint32_t inside = WHIT_JSON_NONE, i = 0;
        bool object = whit_json_type_of(json, at) == WHIT_JSON_OBJECT;
        for (uint32_t k = whit_json_first(json, at); k != WHIT_JSON_NONE; k = whit_json_next(json, at, k), i++) {
            uint32_t value = object ? k + 1 : k;
            if (node < k || node >= nodes[value].next) continue;
            size_t n;
            const char *key = object ? whit_json_string(json, k, &n) : NULL;
            if (key)
                whit_buf_printf(out, "/%.*s", (int)(n < 100 ? n : 100), key);
            else
                whit_buf_printf(out, "/%u", i);
            inside = node == k ? node : value;
            break;
        }
        if (inside == WHIT_JSON_NONE || inside == node) break;
        at = inside;
    }
    whit_buf_append_zeros(out, 1);
}

uint32_t whit_json_schema_refuse(whit_json_schema_compiler *c, uint32_t node, const char *format, ...)
{
    if (c->status != WHIT_OK) return WHIT_AUTOMATON_NONE;
    char what[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    whit_buf path = {.allocator = c->graph->allocator};
    write_path(&c->json, node, &path);
    c->status =
        whit_fail(c->error, WHIT_ERROR_UNSUPPORTED, "%s: %s: %s", c->name, path.failed ? "#" : whit_chars(&path), what);
    whit_buf_free(&path);
    return WHIT_AUTOMATON_NONE;
}

static bool collect(whit_json_schema_compiler *c, uint32_t node, whit_buf *set, uint32_t *above, uint32_t depth)
{
    whit_json_type type = whit_json_type_of(&c->json, node);
    if (type == WHIT_JSON_BOOL && whit_json_bool(&c->json, node, false)) return true;
    if (type != WHIT_JSON_OBJECT && type != WHIT_JSON_BOOL)
        return whit_json_schema_refuse(c, node, "a schema must be an object, true or false"), false;
    for (uint32_t i = 0; i < depth; i++)
        if (above[i] == node)
            return whit_json_schema_refuse(
                       c, node,
                       "the schema refers to itself with no property or element between: remove that reference"),
                   false;
    if (depth == MOST_REFERENCES)
        return whit_json_schema_refuse(
                   c, node, "more than %u references or allOf follow each other: write the schema itself here",
                   MOST_REFERENCES),
               false;
    above[depth] = node;
    whit_json_schema_item item = {.node = node};
    const whit_json_schema_item *items = WHIT_ITEMS(const whit_json_schema_item, set);
    uint32_t n = (uint32_t)(set->size_bytes / sizeof item);
    for (uint32_t i = 0; i < n; i++)
        if (items[i].kind == WHIT_JSON_SCHEMA_HOLDS && items[i].node == node) return true;
    if (n == MOST_ITEMS)
        return whit_json_schema_refuse(
                   c, node, "more than %u schemas of allOf and $ref apply to one value: combine some of them",
                   MOST_ITEMS),
               false;
    if (!whit_buf_append(set, &item, sizeof item)) c->graph->failed = true;
    uint32_t all = whit_json_schema_get(c, node, "allOf");
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t to = whit_json_schema_reference(c, node, i);
        if (c->status != WHIT_OK || (to != WHIT_JSON_NONE && !collect(c, to, set, above, depth + 1))) return false;
    }
    for (uint32_t k = whit_json_first(&c->json, all); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, all, k))
        if (!collect(c, k, set, above, depth + 1)) return false;
    return c->status == WHIT_OK;
}

bool whit_json_schema_collect(whit_json_schema_compiler *c, uint32_t node, whit_buf *set)
{
    uint32_t above[MOST_REFERENCES];
    return collect(c, node, set, above, 0);
}

/* Returns whether an item imposes no condition any more: its schema is empty apart from references, allOf, completed
 * choices, definitions and annotations, or is `false` and has to fail. Such an item is removed from its set, so that a
 * reference and its target result in the same set. */
static bool is_spent(whit_json_schema_compiler *c, whit_json_schema_item item)
{
    static const char *const weightless[] = {
        "$ref",           "$dynamicRef", "allOf",       "$defs",   "definitions", "$anchor",
        "$dynamicAnchor", "title",       "description", "default", "$schema",     "$id",
        "$comment",       "examples",    "deprecated",  "then",    "else"};
    if (item.kind == WHIT_JSON_SCHEMA_FAILS)
        return whit_json_type_of(&c->json, item.node) == WHIT_JSON_BOOL && !whit_json_bool(&c->json, item.node, true);
    if (item.kind != WHIT_JSON_SCHEMA_HOLDS || whit_json_type_of(&c->json, item.node) != WHIT_JSON_OBJECT) return false;
    bool chosen = item.done & WHIT_JSON_SCHEMA_DEPENDENT &&
        whit_json_schema_dependency(c, item.node, item.value) == WHIT_JSON_NONE;
    static const struct {
        const char *key;
        uint32_t done;
    } choices[] = {{"anyOf", WHIT_JSON_SCHEMA_ANY_OF},
                   {"oneOf", WHIT_JSON_SCHEMA_ONE_OF},
                   {"not", WHIT_JSON_SCHEMA_NOT},
                   {"if", WHIT_JSON_SCHEMA_IF}};
    static const char *const dependent[] = {"dependentRequired", "dependentSchemas", "dependencies"};
    for (uint32_t k = whit_json_first(&c->json, item.node); k != WHIT_JSON_NONE;
         k = whit_json_next(&c->json, item.node, k)) {
        bool weighs = true;
        for (size_t i = 0; i < 4; i++)
            if (whit_json_is(&c->json, k, choices[i].key)) weighs = !(item.done & choices[i].done);
        for (size_t i = 0; i < 3 && chosen; i++) weighs &= !whit_json_is(&c->json, k, dependent[i]);
        for (size_t i = 0; i < sizeof weightless / sizeof weightless[0] && weighs; i++)
            weighs = !whit_json_is(&c->json, k, weightless[i]);
        if (weighs) return false;
    }
    return true;
}

/* Returns whether a schema certainly holds for all values that a set accepts. */
static bool surely_holds(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t schema, uint32_t depth)
{
    static const char *const lists[] = {"allOf", "anyOf", "oneOf"};
    if (whit_json_type_of(&c->json, schema) == WHIT_JSON_BOOL) return whit_json_bool(&c->json, schema, false);
    if (depth > 16 || !whit_json_schema_work(c, schema, set.n)) return false;
    for (uint32_t i = 0; i < set.n; i++)
        if (set.items[i].kind == WHIT_JSON_SCHEMA_HOLDS && set.items[i].node == schema) return true;
    /* A spent schema is not in the set itself, but the schemas that it refers to are. */
    whit_json_schema_item spent = {.node = schema, .done = WHIT_JSON_SCHEMA_ANY_OF | WHIT_JSON_SCHEMA_ONE_OF};
    if (!is_spent(c, spent)) return false;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t to = whit_json_schema_reference(c, schema, i);
        if (to != WHIT_JSON_NONE && !surely_holds(c, set, to, depth + 1)) return false;
    }
    for (int l = 0; l < 3; l++) {
        uint32_t list = whit_json_schema_get(c, schema, lists[l]), n = 0, n_holding = 0;
        for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE;
             k = whit_json_next(&c->json, list, k), n++)
            n_holding += surely_holds(c, set, k, depth + 1);
        if (l == 0 ? n_holding < n : n && n_holding == 0) return false;
    }
    return true;
}

uint32_t whit_json_schema_next_applied(whit_json_schema_compiler *c, whit_json_schema_set set,
                                       whit_json_schema_applied *at)
{
    static const char *const keys[] = {"$ref", "$dynamicRef",      "allOf",       "anyOf", "oneOf", "if", "then",
                                       "else", "dependentSchemas", "dependencies"};
    const whit_json *json = &c->json;
    for (; at->key < sizeof keys / sizeof keys[0]; at->key++, at->started = false) {
        uint32_t value = whit_json_schema_get(c, at->schema, keys[at->key]);
        if (value == WHIT_JSON_NONE) continue;
        if (at->key < 2 || (at->key >= 5 && at->key < 8)) {
            if (at->started) continue;
            at->started = true;
            uint32_t to = at->key < 2 ? whit_json_schema_reference(c, at->schema, at->key) : value;
            if (to != WHIT_JSON_NONE && (at->key < 2 || surely_holds(c, set, to, 0))) return to;
            continue;
        }
        bool object = whit_json_type_of(json, value) == WHIT_JSON_OBJECT;
        for (;;) {
            at->at = at->started ? whit_json_next(json, value, at->at) : whit_json_first(json, value);
            at->started = true;
            if (at->at == WHIT_JSON_NONE) break;
            uint32_t to = object ? at->at + 1 : at->at;
            if (at->key == 2 || surely_holds(c, set, to, 0)) return to;
        }
    }
    return WHIT_JSON_NONE;
}

/* ---- sets and their rules ---------------------------------------------------------------------- */

static int by_node(const void *a, const void *b)
{
    const whit_json_schema_item *x = a, *y = b;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

uint32_t whit_json_schema_rule(whit_json_schema_compiler *c, const whit_json_schema_item *items, uint32_t n)
{
    if (c->status != WHIT_OK || c->graph->failed) return 0;
    uint32_t hash = 2166136261u, first = (uint32_t)(c->items.size_bytes / sizeof *items);
    if (n > CONDITIONS_MAX || c->items.size_bytes > ITEM_BYTES_MAX) {
        whit_json_schema_refuse(c, items[0].node,
                                "more than %u conditions apply to one value: split the schema or remove some of them",
                                CONDITIONS_MAX);
        return 0;
    }
    if (n && !whit_buf_append(&c->items, items, n * sizeof *items)) {
        c->graph->failed = true;
        return 0;
    }
    whit_json_schema_item *own = WHIT_ITEMS(whit_json_schema_item, &c->items) + first;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!is_spent(c, own[i])) own[kept++] = own[i];
    n = kept;
    c->items.size_bytes = (first + n) * sizeof *items;
    if (n > 1) qsort(own, n, sizeof *own, by_node); /* order of the document, independent of the order of discovery */
    /* Counts again while duplicates are removed: a condition may be reached in several ways. */
    kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (kept == 0 || memcmp(&own[kept - 1], &own[i], sizeof *own) != 0) own[kept++] = own[i];
    n = kept;
    c->items.size_bytes = (first + n) * sizeof *items;
    for (uint32_t i = 0; i < n; i++) {
        hash = ((hash ^ own[i].node) * 16777619u ^ own[i].done) * 16777619u;
        hash = ((hash ^ own[i].kind) * 16777619u ^ own[i].value) * 16777619u;
    }
    set_entry *entries = WHIT_ITEMS(set_entry, &c->sets);
    uint32_t at = (hash ^ hash >> 15) & (c->n_slots - 1);
    for (; c->slots[at]; at = (at + 1) & (c->n_slots - 1)) {
        const set_entry *e = &entries[c->slots[at] - 1];
        if (e->hash != hash || e->n != n ||
            (n && memcmp(WHIT_ITEMS(whit_json_schema_item, &c->items) + e->first, own, n * sizeof *own) != 0))
            continue;
        c->items.size_bytes = first * sizeof *items;
        return e->rule;
    }
    set_entry entry = {first, n, whit_automaton_rule(c->graph), hash};
    uint32_t id = (uint32_t)(c->sets.size_bytes / sizeof entry);
    if (id == MOST_SETS) {
        whit_json_schema_refuse(
            c, n ? own[0].node : WHIT_JSON_ROOT,
            "the schema has more than %u parts, counting combinations: remove or simplify some of its keywords", id);
        return 0;
    }
    if (!whit_buf_append(&c->sets, &entry, sizeof entry)) c->graph->failed = true;
    c->slots[at] = id + 1;
    return entry.rule;
}

bool whit_json_schema_new_rule(whit_json_schema_compiler *c, const whit_buf *name, uint32_t *rule)
{
    uint32_t n = (uint32_t)(c->known_rules.size_bytes / sizeof(whit_json_schema_known));
    const whit_json_schema_known *known = WHIT_ITEMS(const whit_json_schema_known, &c->known_rules);
    for (uint32_t i = n > KNOWN_MAX ? n - KNOWN_MAX : 0; i < n; i++)
        if (known[i].n_bytes == name->size_bytes &&
            memcmp(c->rule_names.data + known[i].key, name->data, name->size_bytes) == 0) {
            *rule = known[i].rule;
            return false;
        }
    whit_json_schema_known own = {c->rule_names.size_bytes, name->size_bytes, whit_automaton_rule(c->graph)};
    if (name->failed || !whit_buf_append(&c->rule_names, name->data, name->size_bytes) ||
        !whit_buf_append(&c->known_rules, &own, sizeof own))
        c->graph->failed = true;
    *rule = own.rule;
    return true;
}

/* ---- the types that the keywords of a schema allow ------------------------------------- */

static void check_keywords(whit_json_schema_compiler *c, uint32_t schema)
{
    uint32_t recursive = whit_json_schema_get(c, schema, "$recursiveRef");
    if (recursive != WHIT_JSON_NONE)
        whit_json_schema_refuse(c, recursive,
                                "$recursiveRef is not supported: use $ref, or $dynamicRef with $dynamicAnchor");
}

static uint32_t type_bit(whit_json_schema_compiler *c, uint32_t node)
{
    static const struct {
        const char *name;
        uint32_t types;
    } types[] = {{"null", WHIT_JSON_SCHEMA_NULL},       {"boolean", WHIT_JSON_SCHEMA_BOOL},
                 {"integer", WHIT_JSON_SCHEMA_INTEGER}, {"number", WHIT_JSON_SCHEMA_INTEGER | WHIT_JSON_SCHEMA_REAL},
                 {"string", WHIT_JSON_SCHEMA_STRING},   {"array", WHIT_JSON_SCHEMA_ARRAY},
                 {"object", WHIT_JSON_SCHEMA_OBJECT}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (whit_json_is(&c->json, node, types[i].name)) return types[i].types;
    whit_json_schema_refuse(c, node, "expected null, boolean, integer, number, string, array or object");
    return 0;
}

uint32_t whit_json_schema_types(whit_json_schema_compiler *c, uint32_t schema)
{
    uint32_t type = whit_json_schema_get(c, schema, "type"), types = 0;
    if (type == WHIT_JSON_NONE) return WHIT_JSON_SCHEMA_ALL_TYPES;
    if (whit_json_type_of(&c->json, type) == WHIT_JSON_ARRAY)
        for (uint32_t k = whit_json_first(&c->json, type); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, type, k))
            types |= type_bit(c, k);
    else
        types = type_bit(c, type);
    if (whit_json_bool(&c->json, whit_json_schema_get(c, schema, "nullable"), false)) types |= WHIT_JSON_SCHEMA_NULL;
    return types;
}

/* Returns the types to which the keywords of a schema apply; all types if it has no such keyword. If a set of schemas
 * does not restrict the type itself, only values of these types are generated. */
static uint32_t meant_types(whit_json_schema_compiler *c, uint32_t schema)
{
    static const struct {
        const char *key;
        uint32_t types;
    } keys[] = {{"properties", WHIT_JSON_SCHEMA_OBJECT},
                {"required", WHIT_JSON_SCHEMA_OBJECT},
                {"additionalProperties", WHIT_JSON_SCHEMA_OBJECT},
                {"minProperties", WHIT_JSON_SCHEMA_OBJECT},
                {"maxProperties", WHIT_JSON_SCHEMA_OBJECT},
                {"patternProperties", WHIT_JSON_SCHEMA_OBJECT},
                {"propertyNames", WHIT_JSON_SCHEMA_OBJECT},
                {"unevaluatedProperties", WHIT_JSON_SCHEMA_OBJECT},
                {"dependentRequired", WHIT_JSON_SCHEMA_OBJECT},
                {"dependentSchemas", WHIT_JSON_SCHEMA_OBJECT},
                {"dependencies", WHIT_JSON_SCHEMA_OBJECT},
                {"contains", WHIT_JSON_SCHEMA_ARRAY},
                {"uniqueItems", WHIT_JSON_SCHEMA_ARRAY},
                {"unevaluatedItems", WHIT_JSON_SCHEMA_ARRAY},
                {"items", WHIT_JSON_SCHEMA_ARRAY},
                {"prefixItems", WHIT_JSON_SCHEMA_ARRAY},
                {"minItems", WHIT_JSON_SCHEMA_ARRAY},
                {"maxItems", WHIT_JSON_SCHEMA_ARRAY},
                {"pattern", WHIT_JSON_SCHEMA_STRING},
                {"format", WHIT_JSON_SCHEMA_STRING},
                {"minLength", WHIT_JSON_SCHEMA_STRING},
                {"maxLength", WHIT_JSON_SCHEMA_STRING},
                {"minimum", WHIT_JSON_SCHEMA_INTEGER | WHIT_JSON_SCHEMA_REAL},
                {"maximum", WHIT_JSON_SCHEMA_INTEGER | WHIT_JSON_SCHEMA_REAL},
                {"exclusiveMinimum", WHIT_JSON_SCHEMA_INTEGER | WHIT_JSON_SCHEMA_REAL},
                {"exclusiveMaximum", WHIT_JSON_SCHEMA_INTEGER | WHIT_JSON_SCHEMA_REAL},
                {"multipleOf", WHIT_JSON_SCHEMA_INTEGER | WHIT_JSON_SCHEMA_REAL}};
    uint32_t types = 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (whit_json_schema_get(c, schema, keys[i].key) != WHIT_JSON_NONE) types |= keys[i].types;
    return types ? types : WHIT_JSON_SCHEMA_ALL_TYPES;
}

/* ---- one set ----------------------------------------------------------------------------------- */

static uint32_t call_rule(whit_json_schema_compiler *c, uint32_t *rule, uint32_t next)
{
    return *rule ? whit_automaton_call(c->graph, *rule - 1, next) : WHIT_AUTOMATON_NONE;
}

uint32_t whit_json_schema_any(whit_json_schema_compiler *c, uint32_t next)
{
    if (!c->any_rule) c->any_rule = whit_json_schema_rule(c, NULL, 0) + 1;
    return call_rule(c, &c->any_rule, next);
}

/* Adds the booleans that no condition of the set excludes. */
static uint32_t write_booleans(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t next)
{
    uint32_t ways[2], n_ways = 0;
    for (int value = 0; value < 2; value++) {
        bool out = false;
        for (uint32_t i = 0; i < set.n; i++)
            out |= set.items[i].kind == WHIT_JSON_SCHEMA_UNLIKE &&
                whit_json_type_of(&c->json, set.items[i].node) == WHIT_JSON_BOOL &&
                whit_json_bool(&c->json, set.items[i].node, false) == (value == 0);
        if (!out) {
            const char *literal = value ? "false" : "true";
            ways[n_ways++] = whit_automaton_text(c->graph, literal, value ? 5 : 4, next);
        }
    }
    return whit_automaton_split(c->graph, ways, n_ways);
}

static uint32_t compile_set(whit_json_schema_compiler *c, whit_json_schema_set set)
{
    uint32_t types = WHIT_JSON_SCHEMA_ALL_TYPES, meant = WHIT_JSON_SCHEMA_ALL_TYPES, n_ways = 0, ways[8], begin;
    bool has_values = false;
    for (uint32_t i = 0; i < set.n; i++) {
        whit_json_schema_item item = set.items[i];
        bool is_bool = whit_json_type_of(&c->json, item.node) == WHIT_JSON_BOOL;
        if (is_bool && (item.kind == WHIT_JSON_SCHEMA_HOLDS || item.kind == WHIT_JSON_SCHEMA_FAILS))
            /* The schema `false` must hold, or the schema `true` must fail: no value is possible. */
            return whit_automaton_split(c->graph, NULL, 0);
        if (item.kind == WHIT_JSON_SCHEMA_OF_TYPE) types &= item.value;
        if (item.kind != WHIT_JSON_SCHEMA_HOLDS) continue;
        check_keywords(c, item.node);
        types &= whit_json_schema_types(c, item.node);
        uint32_t own = meant_types(c, item.node);
        meant = meant & own ? meant & own : meant | own;
        has_values |= whit_json_schema_get(c, item.node, "enum") != WHIT_JSON_NONE;
        has_values |= whit_json_schema_get(c, item.node, "const") != WHIT_JSON_NONE;
    }
    if (c->status != WHIT_OK) return WHIT_AUTOMATON_NONE;
    if (has_values) return whit_json_schema_enum(c, set, types, WHIT_AUTOMATON_RET);
    if (whit_json_schema_choose(c, set, &begin)) return begin;
    if (types == WHIT_JSON_SCHEMA_ALL_TYPES) types = meant;
    uint32_t end = WHIT_AUTOMATON_RET;
    if (types & WHIT_JSON_SCHEMA_OBJECT) ways[n_ways++] = whit_json_schema_object(c, set, end);
    if (types & WHIT_JSON_SCHEMA_ARRAY) ways[n_ways++] = whit_json_schema_array(c, set, end);
    if (types & WHIT_JSON_SCHEMA_STRING) ways[n_ways++] = whit_json_schema_string(c, set, end);
    uint32_t number = types & (WHIT_JSON_SCHEMA_INTEGER | WHIT_JSON_SCHEMA_REAL);
    if (number) ways[n_ways++] = whit_json_schema_number(c, set, number, end);
    if (types & WHIT_JSON_SCHEMA_BOOL) ways[n_ways++] = write_booleans(c, set, end);
    if (types & WHIT_JSON_SCHEMA_NULL) ways[n_ways++] = whit_automaton_text(c->graph, "null", 4, end);
    return whit_automaton_split(c->graph, ways, n_ways);
}

static whit_status compile_all(whit_json_schema_compiler *c, uint32_t *rule)
{
    whit_buf set = {.allocator = c->graph->allocator};
    if (whit_json_schema_collect(c, WHIT_JSON_ROOT, &set))
        *rule = whit_json_schema_rule(c, WHIT_ITEMS(const whit_json_schema_item, &set),
                                      (uint32_t)(set.size_bytes / sizeof(whit_json_schema_item)));
    for (uint32_t i = 0; c->status == WHIT_OK && !c->graph->failed && i < c->sets.size_bytes / sizeof(set_entry); i++) {
        set_entry entry = (WHIT_ITEMS(const set_entry, &c->sets))[i];
        set.size_bytes = 0; /* the set is copied, because c->items grows during its compilation */
        if (entry.n &&
            !whit_buf_append(&set, WHIT_ITEMS(const whit_json_schema_item, &c->items) + entry.first,
                             entry.n * sizeof(whit_json_schema_item))) {
            c->graph->failed = true;
            break;
        }
        uint32_t begin = compile_set(c, (whit_json_schema_set){WHIT_ITEMS(const whit_json_schema_item, &set), entry.n});
        if (c->status == WHIT_OK) whit_automaton_define(c->graph, entry.rule, begin);
    }
    whit_buf_free(&set);
    if (c->status == WHIT_OK && c->graph->failed)
        c->status = whit_fail(c->error, WHIT_ERROR_LIMIT,
                              "%s: the schema needs more than %u nodes, or memory ran out: simplify it", c->name,
                              WHIT_AUTOMATON_MAX_NODES);
    return c->status;
}

/* Compiles the rule of the strings that the whole schema accepts, without quotes and escapes. Strings that contain
 * `mark`, or control characters except tabs and line ends, are excluded. */
static whit_status compile_texts(whit_json_schema_compiler *c, const char *mark, uint32_t *rule)
{
    static const whit_code_range plain[] = {{'\t', '\n'}, {'\r', '\r'}, {0x20, 0x10FFFF}};
    whit_language l;
    bool empty = false;
    if (!whit_json_schema_open_language(c, &l)) return whit_fail_memory(c->error, "a schema", sizeof l);
    uint32_t marked = whit_language_then(&l, whit_language_text(&l, mark, strlen(mark)), WHIT_LANGUAGE_ALL);
    marked = whit_language_not(&l, whit_language_then(&l, WHIT_LANGUAGE_ALL, marked));
    uint32_t any = whit_language_repeat(&l, whit_language_codes(&l, plain, 3), 0, WHIT_AUTOMATON_UNBOUNDED), begin = 0;
    uint32_t texts =
        whit_language_and(&l, whit_language_and(&l, marked, any), whit_json_schema_strings(c, &l, WHIT_JSON_ROOT));
    if (c->status == WHIT_OK)
        begin = whit_language_emit(&l, texts, WHIT_LANGUAGE_PLAIN, c->graph, WHIT_AUTOMATON_RET, &empty);
    whit_json_schema_close_language(c, &l, WHIT_JSON_ROOT);
    if (c->status != WHIT_OK) return c->status;
    *rule = whit_automaton_rule(c->graph);
    whit_automaton_define(c->graph, *rule, empty ? whit_automaton_split(c->graph, NULL, 0) : begin);
    return c->status;
}

/* Parses the text of the schema. If it has keywords whose value is null, they are removed from the text first. */
static whit_status parse_schema(whit_json_schema_compiler *c, whit_buf *text)
{
    whit_buf kept = {.allocator = text->allocator};
    bool dropped;
    WHIT_TRY(whit_json_parse(c->name, text->data ? whit_chars(text) : "", text->size_bytes, text->allocator, &c->json,
                             c->error));
    if (whit_json_schema_drop_nulls(&c->json, &kept, &dropped) && !dropped) {
        whit_buf_free(&kept);
        return WHIT_OK;
    }
    whit_json_close(&c->json);
    if (kept.failed) {
        whit_buf_free(&kept);
        return whit_fail_memory(c->error, "a schema", text->size_bytes);
    }
    whit_buf_free(text);
    *text = kept;
    return whit_json_parse(c->name, whit_chars(text), text->size_bytes, text->allocator, &c->json, c->error);
}

/* Checks whether the schema holds for the value of its first member, a constant that join_value has added. */
static whit_status check_constant(whit_json_schema_compiler *c, bool *valid)
{
    const whit_json_schema_item whole = {.node = WHIT_JSON_ROOT, .kind = WHIT_JSON_SCHEMA_HOLDS};
    *valid = whit_json_schema_is_valid(c, whit_json_first(&c->json, WHIT_JSON_ROOT) + 1, whole);
    if (c->status == WHIT_OK && c->graph->failed)
        c->status = whit_fail_memory(c->error, "a schema", c->json.text_bytes);
    return c->status;
}

/* Compiles the schema or, if `valid` is not NULL, checks the value of its first member. */
static whit_status compile_text(whit_automaton *graph, const char *name, const char *text, size_t n_bytes,
                                const char *mark, uint32_t *rule, bool *valid, whit_error *error)
{
    whit_json_schema_compiler c = {.graph = graph, .name = name, .error = error, .n_slots = 2 * MOST_SETS};
    *rule = 0;
    if (n_bytes > WHIT_GRAMMAR_MAX_TEXT_BYTES)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: the schema has %zu bytes, but at most %u are possible", name,
                         n_bytes, WHIT_GRAMMAR_MAX_TEXT_BYTES);
    whit_buf shortened = {.allocator = graph->allocator};
    whit_status parsed;
    if (whit_decimal_shorten(text, n_bytes, &shortened))
        parsed = parse_schema(&c, &shortened);
    else
        parsed = whit_fail_memory(error, "a schema", n_bytes);
    if (parsed != WHIT_OK) {
        whit_buf_free(&shortened);
        return parsed;
    }
    c.items.allocator = c.sets.allocator = c.known_rules.allocator = c.rule_names.allocator = graph->allocator;
    c.slots = whit_zalloc_array(graph->allocator, c.n_slots, sizeof *c.slots);
    bool opened = whit_json_schema_open_references(&c) && c.slots;
    whit_status status = opened ? WHIT_OK : whit_fail_memory(error, "a schema", c.n_slots * sizeof *c.slots);
    if (opened && valid)
        status = check_constant(&c, valid);
    else if (opened)
        status = mark ? compile_texts(&c, mark, rule) : compile_all(&c, rule);
    whit_json_schema_close_references(&c);
    whit_free(graph->allocator, c.slots, c.n_slots * sizeof *c.slots);
    whit_buf_free(&c.items);
    whit_buf_free(&c.sets);
    whit_buf_free(&c.known_rules);
    whit_buf_free(&c.rule_names);
    whit_json_close(&c.json);
    whit_buf_free(&shortened);
    return status;
}

whit_status whit_json_schema_compile(whit_automaton *graph, const char *name, const char *text, size_t n_bytes,
                                     uint32_t *rule, whit_error *error)
{
    return compile_text(graph, name, text, n_bytes, NULL, rule, NULL, error);
}

whit_status whit_json_schema_compile_texts(whit_automaton *graph, const char *name, const char *text, size_t n_bytes,
                                           const char *mark, uint32_t *rule, whit_error *error)
{
    return compile_text(graph, name, text, n_bytes, mark, rule, NULL, error);
}

/* Appends to `text` the schema, an object of n members, with an added first member "const" that has the value.
 * References from the schema's root keep their meaning, and the added constant is satisfied by the value itself. */
static bool join_value(const char *schema, size_t n_bytes, size_t n_members, const char *value, size_t value_bytes,
                       whit_buf *text)
{
    const char *open = memchr(schema, '{', n_bytes);
    return open && whit_buf_append_str(text, "{\"const\": ") && whit_buf_append(text, value, value_bytes) &&
        (!n_members || whit_buf_append_str(text, ", ")) &&
        whit_buf_append(text, open + 1, n_bytes - (size_t)(open + 1 - schema));
}

whit_status whit_json_schema_check(const char *name, const char *schema, size_t n_bytes, const char *value,
                                   size_t value_bytes, bool *valid, whit_error *error)
{
    whit_json json = {0};
    whit_automaton graph;
    whit_buf text = {0};
    uint32_t rule;
    whit_error ignored;
    *valid = false;
    WHIT_TRY(whit_json_parse(name, schema, n_bytes, NULL, &json, error));
    const whit_json_type type = whit_json_type_of(&json, WHIT_JSON_ROOT);
    const bool holds = whit_json_bool(&json, WHIT_JSON_ROOT, false);
    const size_t n_members = type == WHIT_JSON_OBJECT ? whit_json_count(&json, WHIT_JSON_ROOT) : 0;
    whit_json_close(&json);
    const whit_status parsed = whit_json_parse("the value", value, value_bytes, NULL, &json, &ignored);
    if (parsed == WHIT_ERROR_MEMORY) return whit_fail_memory(error, "a value", value_bytes);
    if (parsed != WHIT_OK) return WHIT_OK; /* a text that is not JSON is not valid */
    whit_json_close(&json);
    if (type == WHIT_JSON_BOOL) {
        *valid = holds;
        return WHIT_OK;
    }
    if (type != WHIT_JSON_OBJECT)
        return whit_fail(error, WHIT_ERROR_FORMAT, "%s: a schema must be an object, true or false", name);
    WHIT_TRY(whit_automaton_open(NULL, &graph, error));
    whit_status status = join_value(schema, n_bytes, n_members, value, value_bytes, &text)
        ? compile_text(&graph, name, whit_chars(&text), text.size_bytes, NULL, &rule, valid, error)
        : whit_fail_memory(error, "a schema", n_bytes + value_bytes);
    if (status != WHIT_OK) *valid = false;
    whit_buf_free(&text);
    whit_automaton_close(&graph);
    return status;
}
