/* SPDX-License-Identifier: MIT
 * Compiles objects of JSON Schema. Properties are written in the order of the schema, followed by others.
 *
 * Names that no schema lists are divided into classes by the patterns of patternProperties that match them. Each class
 * has a language of names, and conditions on the property's value. */
#include "grammar/schema_parts.h"
#include "base/items.h"

#include <stdlib.h>

enum {
    MOST_PROPERTIES = 20000,
    MOST_SHARED_BYTES = 200,
    MOST_ESCAPED_NAMES = 2000,
    MOST_NAME_REST = 64,
    PATTERNS_MAX = 6
};

uint32_t whit_json_schema_sign(whit_json_schema_compiler *c, const char *sign, uint32_t next)
{
    uint32_t ways[] = {whit_automaton_text(c->graph, " ", 1, next), next};
    return whit_automaton_text(c->graph, sign, 1, whit_automaton_split(c->graph, ways, 2));
}

static bool is_false(const whit_json *json, uint32_t node)
{
    return whit_json_type_of(json, node) == WHIT_JSON_BOOL && !whit_json_bool(json, node, true);
}

/* Accepts a value that satisfies all conditions of `set` (array of whit_json_schema_item), followed by `next`. */
static uint32_t value_of(whit_json_schema_compiler *c, const whit_buf *set, uint32_t next)
{
    uint32_t n = (uint32_t)(set->size_bytes / sizeof(whit_json_schema_item));
    if (n == 0) return whit_json_schema_any(c, next);
    return whit_automaton_call(c->graph, whit_json_schema_rule(c, WHIT_ITEMS(const whit_json_schema_item, set), n),
                               next);
}

typedef struct property {
    const char *name;
    size_t n_bytes;
    uint32_t rule, order; /* rule of its value; its position in the order of writing */
    uint32_t matched;     /* bit set of the patterns that match the name */
    bool required, dropped;
} property;

typedef struct object {
    whit_json_schema_compiler *c;
    whit_json_schema_set set;
    property *list;
    uint32_t n;
    bool open;                                   /* properties that match no pattern and are not listed may be
                                                  * written */
    uint32_t patterns[PATTERNS_MAX], n_patterns; /* nodes of the different patterns */
    bool has_names;                              /* propertyNames constrains the names */
    whit_language names;                         /* opened only if patterns or propertyNames are used */
    uint32_t taken[PATTERNS_MAX], allowed;       /* expressions of the names that each pattern matches; expression of
                                                  * propertyNames */
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

/* Lists all properties: first the declared ones in their order, then the other ones, which are only required or part of
 * a choice; without duplicates. */
static bool list_properties(whit_json_schema_compiler *c, whit_json_schema_set set, whit_buf *out)
{
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < set.n; i++) {
            if (set.items[i].kind != WHIT_JSON_SCHEMA_HOLDS) continue;
            uint32_t from = whit_json_schema_get(c, set.items[i].node, pass ? "required" : "properties");
            whit_json_type wanted = pass ? WHIT_JSON_ARRAY : WHIT_JSON_OBJECT;
            if (from != WHIT_JSON_NONE && whit_json_type_of(&c->json, from) != wanted) {
                /* Draft 3 had a boolean here. */
                whit_json_schema_refuse(
                    c, from, pass ? "expected a list of names (of draft 4 or later)" : "expected an object of schemas");
                return false;
            }
            for (uint32_t k = whit_json_first(&c->json, from); k != WHIT_JSON_NONE;
                 k = whit_json_next(&c->json, from, k)) {
                property p = {.order = (uint32_t)(out->size_bytes / sizeof p), .required = pass == 1};
                p.name = whit_json_string(&c->json, k, &p.n_bytes);
                if (!p.name) return whit_json_schema_refuse(c, k, "expected a name"), false;
                if (p.order == MOST_PROPERTIES)
                    return whit_json_schema_refuse(
                               c, k,
                               "the object has more than %u properties (properties and required together), the limit",
                               MOST_PROPERTIES),
                           false;
                if (!whit_buf_append(out, &p, sizeof p)) c->graph->failed = true;
            }
        }
    for (uint32_t i = 0; i < set.n; i++) { /* names that a choice requires or excludes */
        whit_json_schema_item item = set.items[i];
        bool fails = item.kind == WHIT_JSON_SCHEMA_MEMBER_FAILS, has = item.kind == WHIT_JSON_SCHEMA_HAS || fails;
        if (!has && item.kind != WHIT_JSON_SCHEMA_LACKS) continue;
        property p = {.order = (uint32_t)(out->size_bytes / sizeof p), .required = has, .dropped = !has};
        p.name = whit_json_string(&c->json, item.node, &p.n_bytes);
        if (!p.name) return whit_json_schema_refuse(c, item.node, "expected a name"), false;
        if (!whit_buf_append(out, &p, sizeof p)) c->graph->failed = true;
    }
    property *list = WHIT_ITEMS(property, out);
    size_t n = out->size_bytes / sizeof *list, kept = 0;
    if (n > 1) qsort(list, n, sizeof *list, by_name);
    for (size_t i = 0; i < n; i++) {
        property *last = kept ? &list[kept - 1] : NULL;
        if (last && last->n_bytes == list[i].n_bytes && memcmp(last->name, list[i].name, last->n_bytes) == 0)
            last->required |= list[i].required, last->dropped |= list[i].dropped;
        else
            list[kept++] = list[i];
    }
    if (kept > 1) qsort(list, kept, sizeof *list, by_order);
    out->size_bytes = kept * sizeof *list;
    return !c->graph->failed;
}

/* ---- conditions on a property ------------------------------------------------------------------ */

static uint32_t pattern_bit(const object *o, uint32_t pattern)
{
    size_t n, m;
    const char *text = whit_json_string(&o->c->json, pattern, &n);
    for (uint32_t i = 0; i < o->n_patterns; i++) {
        const char *other = whit_json_string(&o->c->json, o->patterns[i], &m);
        if (n == m && memcmp(text, other, n) == 0) return 1u << i;
    }
    return 0;
}

/* Returns whether a schema's own properties or patternProperties mention a property. p NULL: a property that no schema
 * lists; `matched` is the bit set of the patterns that match it. */
static bool is_named(const object *o, uint32_t schema, const property *p, uint32_t matched)
{
    whit_json_schema_compiler *c = o->c;
    if (p && declared(c, schema, p) != WHIT_JSON_NONE) return true;
    uint32_t patterns = whit_json_schema_get(c, schema, "patternProperties");
    for (uint32_t k = whit_json_first(&c->json, patterns); k != WHIT_JSON_NONE;
         k = whit_json_next(&c->json, patterns, k))
        if (matched & pattern_bit(o, k)) return true;
    return false;
}

/* Returns whether a property counts as evaluated for unevaluatedProperties of `schema`: by its own keywords, or by a
 * schema that it applies to the same object. `top`: `schema` is the one with unevaluatedProperties. */
static bool is_evaluated(const object *o, uint32_t schema, const property *p, uint32_t matched, bool top,
                         uint32_t depth)
{
    whit_json_schema_compiler *c = o->c;
    if (whit_json_type_of(&c->json, schema) != WHIT_JSON_OBJECT || depth > 32) return false;
    if (!whit_json_schema_work(c, schema, 8)) return false;
    if (is_named(o, schema, p, matched) || whit_json_schema_get(c, schema, "additionalProperties") != WHIT_JSON_NONE ||
        (!top && whit_json_schema_get(c, schema, "unevaluatedProperties") != WHIT_JSON_NONE))
        return true;
    whit_json_schema_applied applied = {.schema = schema};
    uint32_t next;
    while ((next = whit_json_schema_next_applied(c, o->set, &applied)) != WHIT_JSON_NONE)
        if (is_evaluated(o, next, p, matched, false, depth + 1)) return true;
    return false;
}

/* Returns the schema that applies to a property that `schema` does not mention; WHIT_JSON_NONE if no schema applies.
 * unevaluatedProperties only applies if no schema for the same object certainly evaluates the property. */
static uint32_t others_of(const object *o, uint32_t schema, const property *p, uint32_t matched)
{
    whit_json_schema_compiler *c = o->c;
    uint32_t others = whit_json_schema_get(c, schema, "additionalProperties");
    uint32_t unevaluated = whit_json_schema_get(c, schema, "unevaluatedProperties");
    if (others != WHIT_JSON_NONE) return others;
    if (unevaluated == WHIT_JSON_NONE || whit_json_bool(&c->json, unevaluated, false)) return unevaluated;
    return is_evaluated(o, schema, p, matched, true, 0) ? WHIT_JSON_NONE : unevaluated;
}

/* Sets `schemas` to the conditions on a property's value. *never becomes true if a schema excludes the property. p
 * NULL: a property that no schema lists. Returns false after an error. */
static bool find_conditions(const object *o, const property *p, uint32_t matched, whit_buf *schemas, bool *never)
{
    whit_json_schema_compiler *c = o->c;
    const whit_json *json = &c->json;
    schemas->size_bytes = 0;
    *never = false;
    for (uint32_t i = 0; i < o->set.n; i++) {
        whit_json_schema_item item = o->set.items[i];
        size_t n;
        if (item.kind == WHIT_JSON_SCHEMA_MEMBER_FAILS && p) {
            const char *name = whit_json_string(json, item.node, &n);
            whit_json_schema_item fails = {.node = item.node + 1, .kind = WHIT_JSON_SCHEMA_FAILS};
            if (n == p->n_bytes && memcmp(name, p->name, n) == 0 && !whit_buf_append(schemas, &fails, sizeof fails))
                c->graph->failed = true;
        }
        if (item.kind != WHIT_JSON_SCHEMA_HOLDS) continue;
        uint32_t own = p ? declared(c, item.node, p) : WHIT_JSON_NONE;
        uint32_t patterns = whit_json_schema_get(c, item.node, "patternProperties");
        bool named = own != WHIT_JSON_NONE;
        for (uint32_t k = whit_json_first(json, patterns); k != WHIT_JSON_NONE; k = whit_json_next(json, patterns, k)) {
            if (!(matched & pattern_bit(o, k))) continue;
            named = true;
            *never |= is_false(json, k + 1);
            if (!whit_json_schema_collect(c, k + 1, schemas)) return false;
        }
        if (!named) own = others_of(o, item.node, p, matched);
        if (own == WHIT_JSON_NONE) continue;
        *never |= is_false(json, own);
        if (!*never && !whit_json_schema_collect(c, own, schemas)) return false;
    }
    return c->status == WHIT_OK;
}

/* Compiles the rule of a property's value. Sets p->dropped if the property must not occur. Returns false after an
 * error. */
static bool compile_property(object *o, property *p, whit_buf *schemas)
{
    bool never;
    for (uint32_t i = 0; i < o->n_patterns; i++)
        if (whit_language_matches(&o->names, o->taken[i], p->name, p->n_bytes)) p->matched |= 1u << i;
    if (o->has_names && !whit_language_matches(&o->names, o->allowed, p->name, p->n_bytes)) p->dropped = true;
    if (p->dropped) return true;
    if (!find_conditions(o, p, p->matched, schemas, &never)) return false;
    p->dropped = never;
    if (never) return true;
    p->rule = whit_json_schema_rule(o->c, WHIT_ITEMS(const whit_json_schema_item, schemas),
                                    (uint32_t)(schemas->size_bytes / sizeof(whit_json_schema_item)));
    return o->c->status == WHIT_OK;
}

/* ---- names ------------------------------------------------------------------------------------- */

/* Builds the expressions of names: those of the patterns, and that of propertyNames. */
static bool find_names(object *o)
{
    whit_json_schema_compiler *c = o->c;
    uint32_t by = WHIT_JSON_NONE;
    for (uint32_t i = 0; i < o->set.n; i++) {
        if (o->set.items[i].kind != WHIT_JSON_SCHEMA_HOLDS) continue;
        uint32_t list = whit_json_schema_get(c, o->set.items[i].node, "patternProperties"),
                 names = whit_json_schema_get(c, o->set.items[i].node, "propertyNames");
        if (list != WHIT_JSON_NONE && whit_json_type_of(&c->json, list) != WHIT_JSON_OBJECT)
            return whit_json_schema_refuse(c, list, "expected an object of schemas"), false;
        for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, list, k)) {
            by = k;
            if (pattern_bit(o, k)) continue;
            if (o->n_patterns == PATTERNS_MAX)
                return whit_json_schema_refuse(c, k,
                                               "the object has more than %d patterns of names (patternProperties, "
                                               "propertyNames), the limit",
                                               PATTERNS_MAX),
                       false;
            o->patterns[o->n_patterns++] = k;
        }
        if (names != WHIT_JSON_NONE) by = names;
    }
    if (by == WHIT_JSON_NONE) return true;
    if (!whit_json_schema_open_language(c, &o->names)) return false;
    o->allowed = WHIT_LANGUAGE_ALL;
    for (uint32_t i = 0; i < o->n_patterns; i++) o->taken[i] = whit_json_schema_pattern(c, &o->names, o->patterns[i]);
    for (uint32_t i = 0; i < o->set.n; i++) {
        uint32_t names = whit_json_schema_get(c, o->set.items[i].node, "propertyNames");
        if (o->set.items[i].kind != WHIT_JSON_SCHEMA_HOLDS || names == WHIT_JSON_NONE) continue;
        o->allowed = whit_language_and(&o->names, o->allowed, whit_json_schema_strings(c, &o->names, names));
    }
    o->has_names = o->allowed != WHIT_LANGUAGE_ALL;
    return c->status == WHIT_OK;
}

static void close_names(object *o)
{
    whit_json_schema_compiler *c = o->c;
    uint32_t place = WHIT_JSON_ROOT;
    if (o->n_patterns)
        place = o->patterns[0];
    else if (o->set.n)
        place = o->set.items[0].node;
    if (o->names.nodes.size_bytes) whit_json_schema_close_language(c, &o->names, place);
}

/* Accepts the rest of a key that is not in `list`, and its quote. The names are sorted and share their first `depth`
 * bytes. The first character that differs from all names is accepted in any spelling, the characters before it only
 * unescaped, so that no spelling of a listed name is accepted. With many names, the differing character is accepted
 * without escapes only. Keys that share more than MOST_SHARED_BYTES with a name are not accepted, which limits the
 * recursion. `rest` accepts the text after the differing character. */
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
    const whit_code_range *codes = WHIT_ITEMS(const whit_code_range, &ranges);
    size_t n_codes = ranges.size_bytes / sizeof *codes;
    uint32_t way = n > MOST_ESCAPED_NAMES ? whit_automaton_json_code(g, codes, n_codes, rest)
                                          : whit_automaton_json_spelled(g, codes, n_codes, rest);
    if (!whit_buf_append(&ways, &way, sizeof way)) g->failed = true;
    uint32_t begin = whit_automaton_split(g, WHIT_ITEMS(const uint32_t, &ways), ways.size_bytes / sizeof way);
    whit_buf_free(&ways);
    whit_buf_free(&ranges);
    return begin;
}

/* Accepts a key, with its quotes, that is not in the sorted list of names. */
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

/* Adds to `ways` an alternative for each set of patterns: a key that no schema lists and that exactly these patterns
 * match, and its value. Returns false after an error. */
static bool write_classes(object *o, whit_buf *schemas, whit_buf *ways)
{
    whit_json_schema_compiler *c = o->c;
    whit_automaton *g = c->graph;
    uint32_t listed = WHIT_LANGUAGE_NONE;
    for (uint32_t i = 0; i < o->n && !o->names.failed; i++) {
        o->names.work += i;
        listed =
            whit_language_or(&o->names, listed, whit_language_text(&o->names, o->list[i].name, o->list[i].n_bytes));
    }
    uint32_t others = whit_language_and(&o->names, o->allowed, whit_language_not(&o->names, listed));
    for (uint32_t matched = 0; matched < 1u << o->n_patterns && c->status == WHIT_OK; matched++) {
        uint32_t names = others;
        bool never, empty;
        if (matched == 0 && !o->open) continue;
        for (uint32_t i = 0; i < o->n_patterns; i++)
            names = whit_language_and(&o->names, names,
                                      matched >> i & 1 ? o->taken[i] : whit_language_not(&o->names, o->taken[i]));
        if (!find_conditions(o, NULL, matched, schemas, &never)) return false;
        if (never || names == WHIT_LANGUAGE_NONE) continue;
        uint32_t value = whit_json_schema_sign(c, ":", value_of(c, schemas, WHIT_AUTOMATON_RET));
        uint32_t quote = whit_automaton_text(g, "\"", 1, value);
        uint32_t name = whit_language_emit(&o->names, names, WHIT_LANGUAGE_SPELLED, g, quote, &empty);
        if (o->names.failed || empty) continue;
        uint32_t way = whit_automaton_text(g, "\"", 1, name);
        if (!whit_buf_append(ways, &way, sizeof way)) g->failed = true;
    }
    return c->status == WHIT_OK;
}

/* Builds the rule of one property that no schema lists (*pair). Returns false if there can be no such property, or
 * after an error. */
static bool other_property(object *o, whit_buf *schemas, uint32_t *pair)
{
    whit_json_schema_compiler *c = o->c;
    whit_automaton *g = c->graph;
    whit_buf ways = {.allocator = g->allocator};
    bool never, any = false;
    if (o->n_patterns || o->has_names) {
        any = write_classes(o, schemas, &ways) && ways.size_bytes;
        if (any) {
            *pair = whit_automaton_rule(g);
            whit_automaton_define(
                g, *pair,
                whit_automaton_split(g, WHIT_ITEMS(const uint32_t, &ways), ways.size_bytes / sizeof(uint32_t)));
        }
    } else if (o->open && find_conditions(o, NULL, 0, schemas, &never) && !never) {
        property *sorted = whit_zalloc_array(g->allocator, o->n + 1, sizeof *sorted);
        any = sorted != NULL;
        if (!sorted) g->failed = true;
        if (any && o->n) memcpy(sorted, o->list, o->n * sizeof *sorted);
        if (any && o->n > 1) qsort(sorted, o->n, sizeof *sorted, by_name);
        if (any) {
            *pair = whit_automaton_rule(g);
            uint32_t value = whit_json_schema_sign(c, ":", value_of(c, schemas, WHIT_AUTOMATON_RET));
            whit_automaton_define(g, *pair, any_other_key(c, sorted, o->n, value));
        }
        whit_free(g->allocator, sorted, (o->n + 1) * sizeof *sorted);
    }
    whit_buf_free(&ways);
    return any;
}

/* Accepts min to max other properties before `end`, the closing brace. *first is the node for an object in which no
 * property precedes them, *more the node after another property. */
static void write_others(whit_json_schema_compiler *c, uint32_t pair, uint32_t min, uint32_t max, uint32_t end,
                         uint32_t *first, uint32_t *more)
{
    whit_automaton *g = c->graph;
    uint32_t again = whit_json_schema_sign(c, ",", whit_automaton_call(g, pair, WHIT_AUTOMATON_RET));
    uint32_t left = max == WHIT_AUTOMATON_UNBOUNDED ? max : max - 1;
    *more = whit_automaton_repeat(g, again, min, max, end);
    *first = whit_automaton_call(g, pair, whit_automaton_repeat(g, again, min ? min - 1 : 0, left, end));
    if (min == 0) {
        uint32_t ways[] = {*first, end};
        *first = whit_automaton_split(g, ways, 2);
    }
}

/* Enforces minProperties and maxProperties by making optional properties required or leaving them out. Sets the bounds
 * of the number of properties that no schema lists; *possible becomes false if no object can satisfy all conditions.
 * Returns false after an error. */
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
    return true;
}

/* Handles an object that needs several properties with arbitrary names. They cannot be enforced, because equal names
 * would count once: this is an error if a schema of the set has minProperties; otherwise the function returns a node
 * that accepts nothing. */
static uint32_t refuse_many(whit_json_schema_compiler *c, whit_json_schema_set set)
{
    for (uint32_t i = 0; i < set.n; i++) {
        uint32_t node = WHIT_JSON_NONE;
        if (set.items[i].kind == WHIT_JSON_SCHEMA_HOLDS)
            node = whit_json_schema_get(c, set.items[i].node, "minProperties");
        if (node != WHIT_JSON_NONE)
            return whit_json_schema_refuse(c, node,
                                           "minProperties needs several properties without names, which is not "
                                           "supported: name them in properties");
    }
    return whit_automaton_split(c->graph, NULL, 0);
}

/* Accepts the object, followed by `next`. `list` and `schemas` are empty buffers, which the caller frees; o->list
 * points into `list`. */
static uint32_t write_object(object *o, uint32_t next, whit_buf *list, whit_buf *schemas)
{
    whit_json_schema_compiler *c = o->c;
    const whit_json_schema_set set = o->set;
    whit_automaton *g = c->graph;
    uint32_t min_others, max_others, n_declared = 0, pair;
    bool possible = true, closed = false, asked = false;
    if (!list_properties(c, set, list) || !find_names(o)) return WHIT_AUTOMATON_NONE;
    o->list = WHIT_ITEMS(property, list);
    o->n = (uint32_t)(list->size_bytes / sizeof(property));
    for (uint32_t i = 0; i < set.n; i++) {
        if (set.items[i].kind != WHIT_JSON_SCHEMA_HOLDS) continue;
        uint32_t others = others_of(o, set.items[i].node, NULL, 0);
        closed |= is_false(&c->json, others);
        asked |= others != WHIT_JSON_NONE;
        n_declared += whit_json_count(&c->json, whit_json_schema_get(c, set.items[i].node, "properties")) != 0;
        n_declared += whit_json_count(&c->json, whit_json_schema_get(c, set.items[i].node, "patternProperties")) != 0;
    }
    o->open = !closed && (asked || n_declared == 0);
    for (uint32_t i = 0; i < o->n; i++)
        if (!compile_property(o, &o->list[i], schemas)) return WHIT_AUTOMATON_NONE;
    if (!fit_counts(c, set, o, &min_others, &max_others, &possible)) return WHIT_AUTOMATON_NONE;
    bool others = possible && max_others && other_property(o, schemas, &pair);
    if (!possible || (min_others && !others))
        return c->status == WHIT_OK ? whit_automaton_split(g, NULL, 0) : WHIT_AUTOMATON_NONE;
    if (min_others > 1) return refuse_many(c, set);
    uint32_t end = whit_automaton_text(g, "}", 1, next), first = end, more = end;
    if (others) write_others(c, pair, min_others, max_others, end, &first, &more);
    for (uint32_t i = o->n; i-- > 0 && c->status == WHIT_OK;) {
        const property *p = &o->list[i];
        if (p->dropped) continue;
        /* A member has two forms: directly after the brace, or after a comma. */
        uint32_t member = key_and_value(c, p, more);
        uint32_t with_comma = whit_json_schema_sign(c, ",", member);
        uint32_t firsts[] = {member, first}, mores[] = {with_comma, more};
        first = p->required ? member : whit_automaton_split(g, firsts, 2);
        more = p->required ? with_comma : whit_automaton_split(g, mores, 2);
    }
    return whit_automaton_text(g, "{", 1, first);
}

uint32_t whit_json_schema_object(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t next)
{
    const whit_allocator *allocator = c->graph->allocator;
    whit_buf list = {.allocator = allocator}, schemas = {.allocator = allocator};
    object o = {.c = c, .set = set};
    uint32_t begin = write_object(&o, next, &list, &schemas);
    close_names(&o);
    whit_buf_free(&list);
    whit_buf_free(&schemas);
    return c->status == WHIT_OK ? begin : WHIT_AUTOMATON_NONE;
}
