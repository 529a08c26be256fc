/* SPDX-License-Identifier: MIT
 * JSON Schema: references, sets of schemas, choices. */
#include "grammar/schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "grammar/gbnf.h"
#include "grammar/schema_parts.h"

enum { KNOWN_MAX = 256, MOST_SETS = 1 << 16, MOST_ITEMS = 256, MOST_REFERENCES = 200, REFERENCE_SLOTS = 1 << 13 };

typedef struct set_entry {
    uint32_t first, n, rule, hash;
} set_entry;

/* ---- errors that name the place ---------------------------------------------------------------- */

/* The JSON pointer of a node: down from the root, into the part that holds it. */
static void write_path(const whit_json *json, uint32_t node, whit_buf *out)
{
    const whit_json_node *nodes = (const whit_json_node *)json->nodes.data;
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
    c->status = whit_fail(c->error, WHIT_ERROR_UNSUPPORTED, "%s: %s: %s", c->name,
                          path.failed ? "#" : (const char *)path.data, what);
    whit_buf_free(&path);
    return WHIT_AUTOMATON_NONE;
}

/* ---- references -------------------------------------------------------------------------------- */

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One part of a JSON pointer in a URI fragment (RFC 6901): %41, ~0 and ~1 decoded. */
static size_t decode_part(const char *text, size_t n, char *out)
{
    size_t size = 0;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '%' && n - i > 2 && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
            c = (char)(hex(text[i + 1]) * 16 + hex(text[i + 2]));
            i += 2;
        } else if (c == '~' && n - i > 1) {
            c = text[++i] == '1' ? '/' : '~';
        }
        out[size++] = c;
    }
    out[size] = 0;
    return size;
}

/* The slot of a reference. */
static struct whit_json_schema_reference *slot_of(whit_json_schema_compiler *c, const char *text, size_t n)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < n; i++) hash = (hash ^ (uint8_t)text[i]) * 16777619u;
    return &c->resolved[(hash ^ hash >> 15) % REFERENCE_SLOTS];
}

static uint32_t resolve(whit_json_schema_compiler *c, uint32_t ref, const char *text, size_t n)
{
    char part[512];
    uint32_t at = WHIT_JSON_ROOT;
    if (n == 0 || text[0] != '#' || (n > 1 && text[1] != '/')) {
        whit_json_schema_refuse(c, ref, "only references into this schema can be followed: # or #/path");
        return WHIT_JSON_NONE;
    }
    for (size_t from = 2; from <= n && n > 1;) {
        size_t end = from;
        while (end < n && text[end] != '/') end++;
        if (end - from >= sizeof part)
            return whit_json_schema_refuse(c, ref, "the reference is too long"), WHIT_JSON_NONE;
        decode_part(text + from, end - from, part);
        if (!whit_json_schema_work(c, ref, (uint32_t)whit_json_count(&c->json, at))) return WHIT_JSON_NONE;
        if (whit_json_type_of(&c->json, at) == WHIT_JSON_ARRAY) {
            char *rest;
            unsigned long index = strtoul(part, &rest, 10);
            uint32_t k = whit_json_first(&c->json, at);
            while (index-- && k != WHIT_JSON_NONE) k = whit_json_next(&c->json, at, k);
            at = *rest || rest == part ? WHIT_JSON_NONE : k;
        } else {
            at = whit_json_get(&c->json, at, part);
        }
        from = end + 1;
    }
    if (at == WHIT_JSON_NONE)
        whit_json_schema_refuse(c, ref, "there is nothing at %.*s", (int)(n < 120 ? n : 120), text);
    return at;
}

/* Many references name few schemas, in an object that may have thousands. */
uint32_t whit_json_schema_resolve(whit_json_schema_compiler *c, uint32_t ref)
{
    size_t n, n_known;
    const char *text = whit_json_string(&c->json, ref, &n);
    struct whit_json_schema_reference *slot = slot_of(c, text, n);
    const char *known = slot->ref ? whit_json_string(&c->json, slot->ref, &n_known) : NULL;
    if (known && n_known == n && memcmp(known, text, n) == 0) return slot->to;
    uint32_t to = resolve(c, ref, text, n);
    if (to != WHIT_JSON_NONE) *slot = (struct whit_json_schema_reference){ref, to};
    return to;
}

static bool collect(whit_json_schema_compiler *c, uint32_t node, whit_buf *set, uint32_t *above, uint32_t depth)
{
    whit_json_type type = whit_json_type_of(&c->json, node);
    if (type == WHIT_JSON_BOOL && whit_json_bool(&c->json, node, false)) return true;
    if (type != WHIT_JSON_OBJECT && type != WHIT_JSON_BOOL)
        return whit_json_schema_refuse(c, node, "a schema is an object, true or false"), false;
    for (uint32_t i = 0; i < depth; i++)
        if (above[i] == node) return whit_json_schema_refuse(c, node, "the schema refers to itself"), false;
    if (depth == MOST_REFERENCES)
        return whit_json_schema_refuse(c, node, "too many references one after the other"), false;
    above[depth] = node;
    whit_json_schema_item item = {node, 0};
    const whit_json_schema_item *items = (const whit_json_schema_item *)set->data;
    uint32_t n = (uint32_t)(set->size_bytes / sizeof item);
    for (uint32_t i = 0; i < n; i++)
        if (items[i].node == node) return true;
    if (n == MOST_ITEMS) return whit_json_schema_refuse(c, node, "too many schemas for one value"), false;
    if (!whit_buf_append(set, &item, sizeof item)) c->graph->failed = true;
    uint32_t ref = whit_json_schema_get(c, node, "$ref"), all = whit_json_schema_get(c, node, "allOf");
    if (ref != WHIT_JSON_NONE) {
        uint32_t to = whit_json_schema_resolve(c, ref);
        if (to == WHIT_JSON_NONE || !collect(c, to, set, above, depth + 1)) return false;
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

/* Does nothing of a schema remain to be looked at: are there only references, choices that were made, and
 * annotations? Such a one is left out, so that a reference and what it names are one set. */
static bool is_spent(const whit_json_schema_compiler *c, whit_json_schema_item item)
{
    static const char *const weightless[] = {"$ref",    "allOf",   "$defs", "definitions", "title",    "description",
                                             "default", "$schema", "$id",   "$comment",    "examples", "deprecated"};
    if (whit_json_type_of(&c->json, item.node) != WHIT_JSON_OBJECT) return false;
    for (uint32_t k = whit_json_first(&c->json, item.node); k != WHIT_JSON_NONE;
         k = whit_json_next(&c->json, item.node, k)) {
        bool weighs = true;
        if (whit_json_is(&c->json, k, "anyOf")) weighs = !(item.done & WHIT_JSON_SCHEMA_ANY_OF);
        if (whit_json_is(&c->json, k, "oneOf")) weighs = !(item.done & WHIT_JSON_SCHEMA_ONE_OF);
        for (size_t i = 0; i < sizeof weightless / sizeof weightless[0] && weighs; i++)
            weighs = !whit_json_is(&c->json, k, weightless[i]);
        if (weighs) return false;
    }
    return true;
}

/* ---- sets and their rules ---------------------------------------------------------------------- */

static int by_node(const void *a, const void *b)
{
    const whit_json_schema_item *x = a, *y = b;
    return x->node < y->node ? -1 : x->node > y->node;
}

uint32_t whit_json_schema_rule(whit_json_schema_compiler *c, const whit_json_schema_item *items, uint32_t n)
{
    if (c->status != WHIT_OK || c->graph->failed) return 0;
    uint32_t hash = 2166136261u, first = (uint32_t)(c->items.size_bytes / sizeof *items);
    if (n && !whit_buf_append(&c->items, items, n * sizeof *items)) {
        c->graph->failed = true;
        return 0;
    }
    whit_json_schema_item *own = (whit_json_schema_item *)c->items.data + first;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!is_spent(c, own[i])) own[kept++] = own[i];
    n = kept;
    c->items.size_bytes = (first + n) * sizeof *items;
    if (n > 1) qsort(own, n, sizeof *own, by_node); /* document order, whatever referred to what */
    for (uint32_t i = 0; i < n; i++) hash = ((hash ^ own[i].node) * 16777619u ^ own[i].done) * 16777619u;
    set_entry *entries = (set_entry *)c->sets.data;
    uint32_t at = (hash ^ hash >> 15) & (c->n_slots - 1);
    for (; c->slots[at]; at = (at + 1) & (c->n_slots - 1)) {
        const set_entry *e = &entries[c->slots[at] - 1];
        if (e->hash != hash || e->n != n ||
            (n && memcmp((whit_json_schema_item *)c->items.data + e->first, own, n * sizeof *own) != 0))
            continue;
        c->items.size_bytes = first * sizeof *items;
        return e->rule;
    }
    set_entry entry = {first, n, whit_automaton_rule(c->graph), hash};
    uint32_t id = (uint32_t)(c->sets.size_bytes / sizeof entry);
    if (id == MOST_SETS) {
        whit_json_schema_refuse(c, n ? own[0].node : WHIT_JSON_ROOT, "the schema has too many parts (%u at most)", id);
        return 0;
    }
    if (!whit_buf_append(&c->sets, &entry, sizeof entry)) c->graph->failed = true;
    c->slots[at] = id + 1;
    return entry.rule;
}

bool whit_json_schema_new_rule(whit_json_schema_compiler *c, const whit_buf *name, uint32_t *rule)
{
    uint32_t n = (uint32_t)(c->known_rules.size_bytes / sizeof(whit_json_schema_known));
    const whit_json_schema_known *known = (const whit_json_schema_known *)c->known_rules.data;
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

/* ---- what each keyword is ---------------------------------------------------------------------- */

/* Is the schema true, {} or {"type": "string"}, as generators write it for the names of every map? */
static bool takes_all_strings(const whit_json_schema_compiler *c, uint32_t schema)
{
    if (whit_json_type_of(&c->json, schema) != WHIT_JSON_OBJECT) return whit_json_bool(&c->json, schema, false);
    for (uint32_t k = whit_json_first(&c->json, schema); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, schema, k))
        if (!whit_json_is(&c->json, k, "type") || !whit_json_is(&c->json, k + 1, "string")) return false;
    return true;
}

static void check_keywords(whit_json_schema_compiler *c, uint32_t schema)
{
    static const char *const refused[] = {"not",
                                          "if",
                                          "then",
                                          "else",
                                          "dependentRequired",
                                          "dependentSchemas",
                                          "dependencies",
                                          "contains",
                                          "propertyNames",
                                          "patternProperties",
                                          "unevaluatedItems",
                                          "$dynamicRef",
                                          "$recursiveRef"};
    for (uint32_t k = whit_json_first(&c->json, schema); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, schema, k)) {
        if (whit_json_is(&c->json, k, "propertyNames") && takes_all_strings(c, k + 1)) continue;
        for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
            if (whit_json_is(&c->json, k, refused[i])) whit_json_schema_refuse(c, k, "this keyword cannot be enforced");
    }
    uint32_t unique = whit_json_schema_get(c, schema, "uniqueItems"), max = whit_json_schema_get(c, schema, "maxItems");
    int64_t most;
    if (whit_json_bool(&c->json, unique, false) && !(whit_json_i64(&c->json, max, &most) && most <= 1))
        whit_json_schema_refuse(c, unique, "that items differ cannot be enforced");
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
    whit_json_schema_refuse(c, node, "there is no such type");
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

/* A schema that names no type but has a type's keywords: of all that it lets through, values of that
 * type are written. */
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

static uint32_t call(whit_json_schema_compiler *c, uint32_t *rule, uint32_t next)
{
    return *rule ? whit_automaton_call(c->graph, *rule - 1, next) : WHIT_AUTOMATON_NONE;
}

uint32_t whit_json_schema_any(whit_json_schema_compiler *c, uint32_t next)
{
    if (!c->any_rule) c->any_rule = whit_json_schema_rule(c, NULL, 0) + 1;
    return call(c, &c->any_rule, next);
}

/* Adds a schema to a list of nodes; what a reference names, once only, so that the list ends. */
static void meet(whit_json_schema_compiler *c, uint32_t node, bool named, whit_buf *list)
{
    const uint32_t *known = (const uint32_t *)list->data;
    size_t n = named ? list->size_bytes / sizeof node : 0;
    if (!whit_json_schema_work(c, node, (uint32_t)n + 1)) return;
    for (size_t i = 0; i < n; i++)
        if (known[i] == node) return;
    if (!whit_buf_append(list, &node, sizeof node)) c->graph->failed = true;
}

/* Does a schema lead to another one for the same value, by $ref and allOf, and where `choices` also by anyOf and
 * oneOf? */
static bool leads_to(whit_json_schema_compiler *c, uint32_t from, uint32_t to, bool choices)
{
    static const char *const lists[] = {"allOf", "anyOf", "oneOf"};
    whit_buf met = {.allocator = c->graph->allocator};
    bool found = false;
    meet(c, from, false, &met);
    for (size_t i = 0; i < met.size_bytes / sizeof from && !found && c->status == WHIT_OK; i++) {
        uint32_t node = ((const uint32_t *)met.data)[i], ref = whit_json_schema_get(c, node, "$ref");
        uint32_t named = ref == WHIT_JSON_NONE ? ref : whit_json_schema_resolve(c, ref);
        found = node == to;
        if (named != WHIT_JSON_NONE) meet(c, named, true, &met);
        for (int l = 0; l < (choices ? 3 : 1); l++) {
            uint32_t list = whit_json_schema_get(c, node, lists[l]);
            for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE;
                 k = whit_json_next(&c->json, list, k))
                meet(c, k, false, &met);
        }
    }
    whit_buf_free(&met);
    return found;
}

/* Expands the i-th item's anyOf or oneOf: the set with each branch in turn. */
static uint32_t choose(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t i, uint32_t which,
                       uint32_t next)
{
    uint32_t choices = whit_json_schema_get(c, set.items[i].node, which == WHIT_JSON_SCHEMA_ANY_OF ? "anyOf" : "oneOf");
    whit_buf ways = {.allocator = c->graph->allocator}, with = {.allocator = c->graph->allocator};
    if (whit_json_type_of(&c->json, choices) != WHIT_JSON_ARRAY || whit_json_count(&c->json, choices) == 0)
        whit_json_schema_refuse(c, choices, "expected a list of schemas");
    uint32_t n_compared = 0;
    for (uint32_t k = whit_json_first(&c->json, choices); k != WHIT_JSON_NONE && c->status == WHIT_OK;
         k = whit_json_next(&c->json, choices, k)) {
        if (which == WHIT_JSON_SCHEMA_ONE_OF)
            for (uint32_t j = whit_json_first(&c->json, choices); j != k; j = whit_json_next(&c->json, choices, j))
                if (++n_compared > 50000 || !whit_json_schema_disjoint(c, j, k, 0)) {
                    whit_json_schema_refuse(
                        c, k,
                        "that no other branch of oneOf holds cannot be enforced: use anyOf, or give the "
                        "branches different types or a required property with different constants");
                    break;
                }
        /* A branch that is the whole choice again adds nothing to it. */
        if (leads_to(c, k, set.items[i].node, false)) continue;
        if (leads_to(c, k, set.items[i].node, true)) whit_json_schema_refuse(c, k, "the schema refers to itself");
        if (c->status != WHIT_OK) break;
        with.size_bytes = 0;
        if (!whit_buf_append(&with, set.items, set.n * sizeof *set.items)) c->graph->failed = true;
        if (c->graph->failed || !whit_json_schema_collect(c, k, &with)) break;
        ((whit_json_schema_item *)with.data)[i].done |= which;
        bool never = false;
        for (uint32_t m = 0; m < with.size_bytes / sizeof *set.items; m++)
            never |= whit_json_type_of(&c->json, ((whit_json_schema_item *)with.data)[m].node) == WHIT_JSON_BOOL;
        if (never) continue;
        uint32_t rule = whit_json_schema_rule(c, (const whit_json_schema_item *)with.data,
                                              (uint32_t)(with.size_bytes / sizeof *set.items));
        uint32_t way = whit_automaton_call(c->graph, rule, next);
        if (!whit_buf_append(&ways, &way, sizeof way)) c->graph->failed = true;
    }
    uint32_t begin = whit_automaton_split(c->graph, (const uint32_t *)ways.data, ways.size_bytes / sizeof next);
    whit_buf_free(&ways);
    whit_buf_free(&with);
    return begin;
}

static uint32_t compile_set(whit_json_schema_compiler *c, whit_json_schema_set set)
{
    uint32_t types = WHIT_JSON_SCHEMA_ALL_TYPES, meant = WHIT_JSON_SCHEMA_ALL_TYPES, n_ways = 0, ways[8];
    bool has_values = false;
    for (uint32_t i = 0; i < set.n; i++) {
        uint32_t node = set.items[i].node;
        if (whit_json_type_of(&c->json, node) == WHIT_JSON_BOOL)
            return whit_automaton_split(c->graph, NULL, 0); /* false */
        check_keywords(c, node);
        types &= whit_json_schema_types(c, node);
        uint32_t own = meant_types(c, node);
        meant = meant & own ? meant & own : meant | own;
        has_values |= whit_json_schema_get(c, node, "enum") != WHIT_JSON_NONE;
        has_values |= whit_json_schema_get(c, node, "const") != WHIT_JSON_NONE;
    }
    if (c->status != WHIT_OK) return WHIT_AUTOMATON_NONE;
    for (uint32_t i = 0; i < set.n; i++)
        for (uint32_t which = WHIT_JSON_SCHEMA_ANY_OF; which <= WHIT_JSON_SCHEMA_ONE_OF; which++)
            if (!(set.items[i].done & which) &&
                whit_json_schema_get(c, set.items[i].node, which == WHIT_JSON_SCHEMA_ANY_OF ? "anyOf" : "oneOf") !=
                    WHIT_JSON_NONE)
                return choose(c, set, i, which, WHIT_AUTOMATON_RET);
    if (has_values) return whit_json_schema_enum(c, set, types, WHIT_AUTOMATON_RET);
    if (types == WHIT_JSON_SCHEMA_ALL_TYPES) types = meant;
    uint32_t end = WHIT_AUTOMATON_RET;
    if (types & WHIT_JSON_SCHEMA_OBJECT) ways[n_ways++] = whit_json_schema_object(c, set, end);
    if (types & WHIT_JSON_SCHEMA_ARRAY) ways[n_ways++] = whit_json_schema_array(c, set, end);
    if (types & WHIT_JSON_SCHEMA_STRING) ways[n_ways++] = whit_json_schema_string(c, set, end);
    if (types & (WHIT_JSON_SCHEMA_INTEGER | WHIT_JSON_SCHEMA_REAL))
        ways[n_ways++] = whit_json_schema_number(c, set, !(types & WHIT_JSON_SCHEMA_REAL), end);
    if (types & WHIT_JSON_SCHEMA_BOOL) {
        uint32_t both[] = {whit_automaton_text(c->graph, "true", 4, end),
                           whit_automaton_text(c->graph, "false", 5, end)};
        ways[n_ways++] = whit_automaton_split(c->graph, both, 2);
    }
    if (types & WHIT_JSON_SCHEMA_NULL) ways[n_ways++] = whit_automaton_text(c->graph, "null", 4, end);
    return whit_automaton_split(c->graph, ways, n_ways);
}

static whit_status compile_all(whit_json_schema_compiler *c, uint32_t *rule)
{
    whit_buf set = {.allocator = c->graph->allocator};
    if (whit_json_schema_collect(c, WHIT_JSON_ROOT, &set))
        *rule = whit_json_schema_rule(c, (const whit_json_schema_item *)set.data,
                                      (uint32_t)(set.size_bytes / sizeof(whit_json_schema_item)));
    for (uint32_t i = 0; c->status == WHIT_OK && !c->graph->failed && i < c->sets.size_bytes / sizeof(set_entry); i++) {
        set_entry entry = ((const set_entry *)c->sets.data)[i];
        set.size_bytes = 0; /* a copy: the list grows while the set is compiled */
        if (entry.n &&
            !whit_buf_append(&set, (const whit_json_schema_item *)c->items.data + entry.first,
                             entry.n * sizeof(whit_json_schema_item))) {
            c->graph->failed = true;
            break;
        }
        uint32_t begin = compile_set(c, (whit_json_schema_set){(const whit_json_schema_item *)set.data, entry.n});
        if (c->status == WHIT_OK) whit_automaton_define(c->graph, entry.rule, begin);
    }
    whit_buf_free(&set);
    if (c->status == WHIT_OK && c->graph->failed)
        c->status = whit_fail(c->error, WHIT_ERROR_LIMIT, "%s: the schema is too large, or memory ran out", c->name);
    return c->status;
}

whit_status whit_json_schema_compile(whit_automaton *graph, const char *name, const char *text, size_t n_bytes,
                                     uint32_t *rule, whit_error *error)
{
    whit_json_schema_compiler c = {.graph = graph, .name = name, .error = error, .n_slots = 2 * MOST_SETS};
    *rule = 0;
    if (n_bytes > WHIT_GRAMMAR_MAX_TEXT_BYTES)
        return whit_fail(error, WHIT_ERROR_LIMIT, "%s: a schema of %zu bytes (at most %u)", name, n_bytes,
                         WHIT_GRAMMAR_MAX_TEXT_BYTES);
    WHIT_TRY(whit_json_parse(name, text, n_bytes, graph->allocator, &c.json, error));
    c.items.allocator = c.sets.allocator = c.known_rules.allocator = c.rule_names.allocator = graph->allocator;
    c.slots = whit_zalloc_array(graph->allocator, c.n_slots, sizeof *c.slots);
    c.resolved = whit_zalloc_array(graph->allocator, REFERENCE_SLOTS, sizeof *c.resolved);
    whit_status status = c.slots && c.resolved ? compile_all(&c, rule)
                                               : whit_fail_memory(error, "a schema", c.n_slots * sizeof *c.slots);
    whit_free(graph->allocator, c.resolved, REFERENCE_SLOTS * sizeof *c.resolved);
    whit_free(graph->allocator, c.slots, c.n_slots * sizeof *c.slots);
    whit_buf_free(&c.items);
    whit_buf_free(&c.sets);
    whit_buf_free(&c.known_rules);
    whit_buf_free(&c.rule_names);
    whit_json_close(&c.json);
    return status;
}
