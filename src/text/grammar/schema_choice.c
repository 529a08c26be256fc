/* SPDX-License-Identifier: MIT
 * Compiles the choices of JSON Schema: anyOf, oneOf, if, dependencies, and the reasons for which a schema may fail. A
 * set that has a choice becomes several sets, one for each alternative. */
#include "grammar/decimal.h"
#include "base/items.h"
#include "grammar/schema_parts.h"

#include <stdlib.h>

enum {
    CASES_MAX = 6000,
    BRANCH_PAIRS_MAX = 50000,
    NAMES_COMPARED = 16,
    ANY = WHIT_JSON_SCHEMA_ALL_TYPES,
    OBJECT = WHIT_JSON_SCHEMA_OBJECT,
    ARRAY = WHIT_JSON_SCHEMA_ARRAY,
    NUMBER = WHIT_JSON_SCHEMA_INTEGER | WHIT_JSON_SCHEMA_REAL
};

/* State while the alternatives of one choice are added. */
typedef struct choice {
    whit_json_schema_compiler *c;
    whit_json_schema_set set;
    uint32_t at; /* index of the item whose alternatives are added */
    whit_buf ways, with;
    bool never;        /* the alternative being built accepts no value */
    uint32_t n_before; /* number of items of the alternative being built that come from `set` */
    bool left_out;
    bool is_plain; /* the alternative being built is a branch of anyOf or oneOf without further conditions; it does not
                    * count towards CASES_MAX */
} choice;

/* ---- alternatives ------------------------------------------------------------------------------ */

/* Begins an alternative with the items of the set. The item with the choice is left out or, if `done` is set, marked
 * with `done` and `value`. */
static void begin_way(choice *w, uint32_t done, uint32_t value)
{
    w->with.size_bytes = 0;
    w->never = false;
    for (uint32_t i = 0; i < w->set.n; i++) {
        whit_json_schema_item item = w->set.items[i];
        if (i == w->at && !done) continue;
        if (i == w->at) item.done |= done, item.value = value;
        if (!whit_buf_append(&w->with, &item, sizeof item)) w->c->graph->failed = true;
    }
    w->n_before = (uint32_t)(w->with.size_bytes / sizeof(whit_json_schema_item));
}

static void add_item(choice *w, uint32_t kind, uint32_t node, uint32_t value)
{
    whit_json_schema_item item = {node, 0, kind, value};
    if (!whit_buf_append(&w->with, &item, sizeof item)) w->c->graph->failed = true;
}

static void add_holds(choice *w, uint32_t schema)
{
    if (!whit_json_schema_collect(w->c, schema, &w->with)) w->never = true;
}

static void add_fails(choice *w, uint32_t schema)
{
    if (whit_json_type_of(&w->c->json, schema) == WHIT_JSON_BOOL)
        w->never |= whit_json_bool(&w->c->json, schema, false);
    else
        add_item(w, WHIT_JSON_SCHEMA_FAILS, schema, 0);
}

/* Returns whether an item requires a property of this name. */
static bool asks_for(whit_json_schema_compiler *c, whit_json_schema_item item, const char *name, size_t n_bytes)
{
    size_t n;
    bool has = item.kind == WHIT_JSON_SCHEMA_HAS || item.kind == WHIT_JSON_SCHEMA_MEMBER_FAILS;
    const char *text = has ? whit_json_string(&c->json, item.node, &n) : NULL;
    if (text && n == n_bytes && memcmp(text, name, n) == 0) return true;
    uint32_t list = WHIT_JSON_NONE;
    if (item.kind == WHIT_JSON_SCHEMA_HOLDS) list = whit_json_schema_get(c, item.node, "required");
    for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, list, k)) {
        text = whit_json_string(&c->json, k, &n);
        if (text && n == n_bytes && memcmp(text, name, n) == 0) return true;
    }
    return false;
}

/* Returns whether a required property must satisfy two schemas that exclude each other, as in branches that differ in a
 * property's value. At least one of the two schemas comes from the items from `from` on. */
static bool is_contradictory(whit_json_schema_compiler *c, const whit_json_schema_item *items, uint32_t n,
                             uint32_t from)
{
    for (uint32_t i = from; i < n; i++) {
        if (items[i].kind != WHIT_JSON_SCHEMA_HOLDS) continue;
        uint32_t known = whit_json_schema_get(c, items[i].node, "properties"), n_names = 0;
        for (uint32_t k = whit_json_first(&c->json, known); k != WHIT_JSON_NONE && n_names < NAMES_COMPARED;
             k = whit_json_next(&c->json, known, k), n_names++) {
            size_t n_bytes;
            const char *name = whit_json_string(&c->json, k, &n_bytes);
            bool asked = false;
            for (uint32_t j = 0; j < n && !asked; j++) asked = asks_for(c, items[j], name, n_bytes);
            for (uint32_t j = 0; j < n && asked; j++) {
                if (j == i || items[j].kind != WHIT_JSON_SCHEMA_HOLDS || !whit_json_schema_work(c, k, 10)) continue;
                uint32_t properties = whit_json_schema_get(c, items[j].node, "properties");
                uint32_t other = whit_json_schema_member(&c->json, properties, name, n_bytes);
                if (other != WHIT_JSON_NONE && whit_json_schema_disjoint(c, k + 1, other, 1)) return true;
            }
        }
    }
    return false;
}

/* Returns whether no value can satisfy the items, as far as types, the schema `false` and negations of the same schema
 * show. */
static bool is_hopeless(whit_json_schema_compiler *c, const whit_json_schema_item *items, uint32_t n)
{
    uint32_t types = ANY;
    for (uint32_t i = 0; i < n; i++) {
        if (items[i].kind == WHIT_JSON_SCHEMA_OF_TYPE) types &= items[i].value;
        if (items[i].kind != WHIT_JSON_SCHEMA_HOLDS) continue;
        if (whit_json_type_of(&c->json, items[i].node) == WHIT_JSON_BOOL) return true; /* the schema `false` */
        types &= whit_json_schema_types(c, items[i].node);
        for (uint32_t k = 0; k < n; k++) /* a schema and its negation are both required */
            if (items[k].kind == WHIT_JSON_SCHEMA_FAILS && items[k].node == items[i].node) return true;
    }
    return types == 0;
}

static void end_way(choice *w)
{
    whit_json_schema_compiler *c = w->c;
    const whit_json_schema_item *items = WHIT_ITEMS(const whit_json_schema_item, &w->with);
    uint32_t n = (uint32_t)(w->with.size_bytes / sizeof *items);
    if (w->never || c->graph->failed || c->status != WHIT_OK || is_hopeless(c, items, n)) return;
    if (!w->is_plain && is_contradictory(c, items, n, w->n_before)) return;
    if (!w->is_plain && ++c->n_cases > CASES_MAX) {
        whit_json_schema_refuse(c, w->set.items[w->at].node,
                                "anyOf, oneOf, if and not make more than %u cases together: remove some of them",
                                CASES_MAX);
        return;
    }
    uint32_t way = whit_automaton_call(c->graph, whit_json_schema_rule(c, items, n), WHIT_AUTOMATON_RET);
    if (!whit_buf_append(&w->ways, &way, sizeof way)) c->graph->failed = true;
}

/* Adds an alternative with the set's other items and one further condition, for values of these types. */
static void one_way(choice *w, uint32_t types, uint32_t kind, uint32_t node, uint32_t value)
{
    begin_way(w, 0, 0);
    add_item(w, WHIT_JSON_SCHEMA_OF_TYPE, 0, types);
    add_item(w, kind, node, value);
    end_way(w);
}

/* ---- anyOf, oneOf ------------------------------------------------------------------------------ */

/* Appends a node to a list. A node that a reference has led to (`named`) is appended only once, so that the list is
 * finite. */
static void meet(whit_json_schema_compiler *c, uint32_t node, bool named, whit_buf *list)
{
    const uint32_t *known = WHIT_ITEMS(const uint32_t, list);
    size_t n = named ? list->size_bytes / sizeof node : 0;
    if (!whit_json_schema_work(c, node, (uint32_t)n + 1)) return;
    for (size_t i = 0; i < n; i++)
        if (known[i] == node) return;
    if (!whit_buf_append(list, &node, sizeof node)) c->graph->failed = true;
}

/* Returns whether schema `to` applies to the same value as `from`: through references and allOf, and with `choices`
 * also through anyOf and oneOf. */
static bool leads_to(whit_json_schema_compiler *c, uint32_t from, uint32_t to, bool choices)
{
    static const char *const lists[] = {"allOf", "anyOf", "oneOf"};
    whit_buf met = {.allocator = c->graph->allocator};
    bool found = false;
    meet(c, from, false, &met);
    for (size_t i = 0; i < met.size_bytes / sizeof from && !found && c->status == WHIT_OK; i++) {
        uint32_t node = (WHIT_ITEMS(const uint32_t, &met))[i];
        found = node == to;
        for (uint32_t r = 0; r < 2; r++) {
            uint32_t named = whit_json_schema_reference(c, node, r);
            if (named != WHIT_JSON_NONE) meet(c, named, true, &met);
        }
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

static void choose_branch(choice *w, uint32_t which)
{
    whit_json_schema_compiler *c = w->c;
    uint32_t owner = w->set.items[w->at].node;
    uint32_t list = whit_json_schema_get(c, owner, which == WHIT_JSON_SCHEMA_ANY_OF ? "anyOf" : "oneOf");
    size_t n = whit_json_count(&c->json, list);
    if (whit_json_type_of(&c->json, list) != WHIT_JSON_ARRAY || n == 0)
        whit_json_schema_refuse(c, list, "expected a list of schemas");
    bool one = which == WHIT_JSON_SCHEMA_ONE_OF;
    if (one && n * (n - 1) / 2 > BRANCH_PAIRS_MAX)
        whit_json_schema_refuse(
            c, list,
            "oneOf with %zu branches has too many pairs to exclude (about 300 branches are possible): use anyOf", n);
    for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE && c->status == WHIT_OK;
         k = whit_json_next(&c->json, list, k)) {
        /* A branch that leads to the same choice again adds nothing. */
        if (leads_to(c, k, owner, false)) continue;
        if (leads_to(c, k, owner, true))
            whit_json_schema_refuse(
                c, k, "the schema refers to itself with no property or element between: remove that reference");
        if (c->status != WHIT_OK) break;
        begin_way(w, which, w->set.items[w->at].value);
        add_holds(w, k);
        w->is_plain = true;
        for (uint32_t j = one ? whit_json_first(&c->json, list) : WHIT_JSON_NONE;
             j != WHIT_JSON_NONE && c->status == WHIT_OK; j = whit_json_next(&c->json, list, j))
            if (j != k && !whit_json_schema_disjoint(c, j, k, 0)) add_fails(w, j), w->is_plain = false;
        end_way(w);
    }
}

/* ---- if, dependencies -------------------------------------------------------------------------- */

static void choose_condition(choice *w)
{
    whit_json_schema_compiler *c = w->c;
    whit_json_schema_item item = w->set.items[w->at];
    uint32_t condition = whit_json_schema_get(c, item.node, "if");
    for (int k = 0; k < 2; k++) {
        uint32_t then = whit_json_schema_get(c, item.node, k ? "else" : "then");
        begin_way(w, WHIT_JSON_SCHEMA_IF, item.value);
        if (k)
            add_fails(w, condition);
        else
            add_holds(w, condition);
        if (then != WHIT_JSON_NONE) add_holds(w, then);
        end_way(w);
    }
}

uint32_t whit_json_schema_dependency(whit_json_schema_compiler *c, uint32_t schema, uint32_t i)
{
    static const char *const keys[] = {"dependentRequired", "dependentSchemas", "dependencies"};
    for (int l = 0; l < 3; l++) {
        uint32_t list = whit_json_schema_get(c, schema, keys[l]);
        if (list != WHIT_JSON_NONE && whit_json_type_of(&c->json, list) != WHIT_JSON_OBJECT) {
            whit_json_schema_refuse(c, list, "expected an object");
            return WHIT_JSON_NONE;
        }
        for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, list, k))
            if (i-- == 0) return k;
    }
    return WHIT_JSON_NONE;
}

/* Adds the alternatives of a dependency: its property is absent, or it is present and the dependency's condition holds.
 * `key` is the property's name in the dependency. */
static void choose_dependency(choice *w, uint32_t key)
{
    whit_json_schema_compiler *c = w->c;
    uint32_t next = w->set.items[w->at].value + 1, what = key + 1;
    begin_way(w, WHIT_JSON_SCHEMA_DEPENDENT, next);
    add_item(w, WHIT_JSON_SCHEMA_LACKS, key, 0);
    end_way(w);
    begin_way(w, WHIT_JSON_SCHEMA_DEPENDENT, next);
    add_item(w, WHIT_JSON_SCHEMA_OF_TYPE, 0, OBJECT);
    add_item(w, WHIT_JSON_SCHEMA_HAS, key, 0);
    if (whit_json_type_of(&c->json, what) == WHIT_JSON_ARRAY)
        for (uint32_t k = whit_json_first(&c->json, what); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, what, k))
            add_item(w, WHIT_JSON_SCHEMA_HAS, k, 0);
    else
        add_holds(w, what);
    end_way(w);
}

/* ---- reasons for which a schema may fail ------------------------------------------------------- */

static int by_decimal(const void *a, const void *b)
{
    return whit_decimal_compare(a, b);
}

/* Adds alternatives for the numbers less than, between and greater than the listed numbers. `single`: `list` is one
 * value instead of an array. */
static void other_numbers(choice *w, uint32_t list, bool single)
{
    whit_json_schema_compiler *c = w->c;
    typedef struct listed {
        whit_decimal value;
        uint32_t node;
    } listed;
    whit_buf all = {.allocator = c->graph->allocator};
    for (uint32_t k = single ? list : whit_json_first(&c->json, list); k != WHIT_JSON_NONE;
         k = single ? WHIT_JSON_NONE : whit_json_next(&c->json, list, k)) {
        listed own = {.node = k};
        if (whit_decimal_of_node(&c->json, k, &own.value) && !whit_buf_append(&all, &own, sizeof own))
            c->graph->failed = true;
    }
    listed *values = WHIT_ITEMS(listed, &all);
    size_t n = all.size_bytes / sizeof *values;
    if (n > 1) qsort(values, n, sizeof *values, by_decimal);
    for (size_t i = 0; i <= n && n && !c->graph->failed; i++) {
        begin_way(w, 0, 0);
        add_item(w, WHIT_JSON_SCHEMA_OF_TYPE, 0, NUMBER);
        if (i) add_item(w, WHIT_JSON_SCHEMA_ABOVE, values[i - 1].node, 0);
        if (i < n) add_item(w, WHIT_JSON_SCHEMA_BELOW, values[i].node, 0);
        end_way(w);
    }
    whit_buf_free(&all);
}

/* Adds alternatives for values that are not listed: values of other types, other numbers, strings and booleans, arrays
 * and objects smaller or larger than all listed ones. `single`: `list` is one value instead of an array. */
static void other_values(choice *w, uint32_t list, bool single)
{
    static const uint32_t types[] = {WHIT_JSON_SCHEMA_STRING, WHIT_JSON_SCHEMA_BOOL, ARRAY, OBJECT};
    whit_json_schema_compiler *c = w->c;
    uint32_t listed = 0;
    for (uint32_t k = single ? list : whit_json_first(&c->json, list); k != WHIT_JSON_NONE;
         k = single ? WHIT_JSON_NONE : whit_json_next(&c->json, list, k))
        listed |= whit_json_schema_type_of(&c->json, k);
    if (listed & NUMBER) listed |= NUMBER, other_numbers(w, list, single);
    begin_way(w, 0, 0);
    add_item(w, WHIT_JSON_SCHEMA_OF_TYPE, 0, ANY & ~listed);
    end_way(w);
    for (int t = 0; t < 4; t++) {
        if (!(listed & types[t])) continue;
        uint32_t least = UINT32_MAX, most = 0;
        bool sized = types[t] == ARRAY || types[t] == OBJECT;
        begin_way(w, 0, 0);
        add_item(w, WHIT_JSON_SCHEMA_OF_TYPE, 0, types[t]);
        for (uint32_t k = single ? list : whit_json_first(&c->json, list); k != WHIT_JSON_NONE;
             k = single ? WHIT_JSON_NONE : whit_json_next(&c->json, list, k)) {
            if (whit_json_schema_type_of(&c->json, k) != types[t]) continue;
            uint32_t n = sized ? (uint32_t)whit_json_count(&c->json, k) : 0;
            if (n < least) least = n;
            if (n > most) most = n;
            if (!sized && (single || types[t] == WHIT_JSON_SCHEMA_BOOL)) add_item(w, WHIT_JSON_SCHEMA_UNLIKE, k, 0);
        }
        if (!single && types[t] == WHIT_JSON_SCHEMA_STRING)
            add_item(w, WHIT_JSON_SCHEMA_KEY_FAILS, list, w->set.items[w->at].node);
        if (!sized) {
            end_way(w);
            continue;
        }
        if (least) one_way(w, types[t], WHIT_JSON_SCHEMA_FEWER, 0, least);
        one_way(w, types[t], WHIT_JSON_SCHEMA_MORE, 0, most);
    }
}

static void fail_one_of(choice *w, uint32_t list)
{
    whit_json_schema_compiler *c = w->c;
    begin_way(w, 0, 0); /* alternative: no branch holds */
    for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, list, k))
        add_fails(w, k);
    end_way(w);
    for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, list, k))
        for (uint32_t j = whit_json_first(&c->json, list); j != k && c->status == WHIT_OK;
             j = whit_json_next(&c->json, list, j)) {
            if (!whit_json_schema_work(c, k, 100) || whit_json_schema_disjoint(c, j, k, 0)) continue;
            begin_way(w, 0, 0); /* alternative: two branches hold */
            add_holds(w, j);
            add_holds(w, k);
            end_way(w);
        }
}

static void fail_condition(choice *w, uint32_t schema, uint32_t condition)
{
    for (int k = 0; k < 2; k++) {
        uint32_t what = whit_json_schema_get(w->c, schema, k ? "else" : "then");
        if (what == WHIT_JSON_NONE) continue;
        begin_way(w, 0, 0);
        if (k)
            add_fails(w, condition);
        else
            add_holds(w, condition);
        add_fails(w, what);
        end_way(w);
    }
}

static void fail_dependencies(choice *w, uint32_t list)
{
    whit_json_schema_compiler *c = w->c;
    for (uint32_t k = whit_json_first(&c->json, list); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, list, k)) {
        bool names = whit_json_type_of(&c->json, k + 1) == WHIT_JSON_ARRAY;
        for (uint32_t i = names ? whit_json_first(&c->json, k + 1) : k + 1; i != WHIT_JSON_NONE;
             i = names ? whit_json_next(&c->json, k + 1, i) : WHIT_JSON_NONE) {
            begin_way(w, 0, 0);
            add_item(w, WHIT_JSON_SCHEMA_OF_TYPE, 0, OBJECT);
            add_item(w, WHIT_JSON_SCHEMA_HAS, k, 0);
            if (names)
                add_item(w, WHIT_JSON_SCHEMA_LACKS, i, 0);
            else
                add_fails(w, i);
            end_way(w);
        }
    }
}

/* Adds alternatives in which an element fails its schema. */
static void fail_elements(choice *w, uint32_t schema)
{
    whit_json_schema_compiler *c = w->c;
    uint32_t rest, prefix = whit_json_schema_prefix(c, schema, &rest), i = 0;
    for (uint32_t k = whit_json_first(&c->json, prefix); k != WHIT_JSON_NONE; k = whit_json_next(&c->json, prefix, k))
        one_way(w, ARRAY, WHIT_JSON_SCHEMA_PREFIX_FAILS, k, i++);
    if (rest != WHIT_JSON_NONE && !whit_json_bool(&c->json, rest, false))
        one_way(w, ARRAY, WHIT_JSON_SCHEMA_ELEMENT_FAILS, rest, i);
}

typedef enum reason {
    TYPE,
    VALUE,
    VALUES,
    BOUND,
    LENGTH,
    ITEMS,
    COUNT,
    REQUIRED,
    MEMBERS,
    ELEMENTS,
    PREFIX,
    CONTAINS,
    ALL,
    SOME,
    ONE,
    NOT,
    CONDITION,
    DEPENDENT,
    UNTOLD,
    FORMAT,
    REFERENCE
} reason;

static const struct {
    const char *key;
    reason why;
} reasons[] = {{"type", TYPE},
               {"const", VALUE},
               {"enum", VALUES},
               {"minimum", BOUND},
               {"maximum", BOUND},
               {"exclusiveMinimum", BOUND},
               {"exclusiveMaximum", BOUND},
               {"multipleOf", BOUND},
               {"minLength", LENGTH},
               {"maxLength", LENGTH},
               {"pattern", LENGTH},
               {"minItems", ITEMS},
               {"maxItems", ITEMS},
               {"minProperties", COUNT},
               {"maxProperties", COUNT},
               {"required", REQUIRED},
               {"properties", MEMBERS},
               {"items", ELEMENTS},
               {"prefixItems", PREFIX},
               {"contains", CONTAINS},
               {"allOf", ALL},
               {"anyOf", SOME},
               {"oneOf", ONE},
               {"not", NOT},
               {"if", CONDITION},
               {"dependentRequired", DEPENDENT},
               {"dependentSchemas", DEPENDENT},
               {"dependencies", DEPENDENT},
               {"$ref", REFERENCE},
               {"$dynamicRef", REFERENCE},
               {"format", FORMAT},
               {"additionalProperties", UNTOLD},
               {"patternProperties", UNTOLD},
               {"propertyNames", UNTOLD},
               {"uniqueItems", UNTOLD},
               {"unevaluatedItems", UNTOLD},
               {"unevaluatedProperties", UNTOLD},
               {"$recursiveRef", UNTOLD}};

/* Adds the alternatives in which one keyword fails. Alternatives that cannot be enforced are left out, so that the
 * generated texts are a subset of the valid ones. */
static void fail_keyword(choice *w, uint32_t schema, uint32_t key)
{
    whit_json_schema_compiler *c = w->c;
    const whit_json *json = &c->json;
    size_t i = 0, n = sizeof reasons / sizeof reasons[0];
    uint32_t what = key + 1, to;
    while (i < n && !whit_json_is(json, key, reasons[i].key)) i++;
    if (i == n) return;
    switch (reasons[i].why) {
    case TYPE:
        begin_way(w, 0, 0);
        add_item(w, WHIT_JSON_SCHEMA_OF_TYPE, 0, ANY & ~whit_json_schema_types(c, schema));
        end_way(w);
        break;
    case VALUE: other_values(w, what, true); break;
    case VALUES: other_values(w, what, false); break;
    case BOUND:
        if (whit_json_type_of(json, what) == WHIT_JSON_BOOL) /* in draft 4 the boolean only changes another keyword */
            w->left_out = true;
        else
            one_way(w, NUMBER, WHIT_JSON_SCHEMA_KEY_FAILS, what, schema);
        break;
    case LENGTH: one_way(w, WHIT_JSON_SCHEMA_STRING, WHIT_JSON_SCHEMA_KEY_FAILS, what, schema); break;
    case ITEMS: one_way(w, ARRAY, WHIT_JSON_SCHEMA_KEY_FAILS, what, schema); break;
    case COUNT: one_way(w, OBJECT, WHIT_JSON_SCHEMA_KEY_FAILS, what, schema); break;
    case REQUIRED:
        for (uint32_t k = whit_json_first(json, what); k != WHIT_JSON_NONE; k = whit_json_next(json, what, k))
            one_way(w, OBJECT, WHIT_JSON_SCHEMA_LACKS, k, 0);
        break;
    case MEMBERS:
        for (uint32_t k = whit_json_first(json, what); k != WHIT_JSON_NONE; k = whit_json_next(json, what, k))
            if (!whit_json_bool(json, k + 1, false)) one_way(w, OBJECT, WHIT_JSON_SCHEMA_MEMBER_FAILS, k, 0);
        break;
    case ELEMENTS: fail_elements(w, schema); break;
    case PREFIX:
        if (whit_json_schema_get(c, schema, "items") == WHIT_JSON_NONE) fail_elements(w, schema);
        break;
    case CONTAINS:
        one_way(w, ARRAY, WHIT_JSON_SCHEMA_FEWER_MATCH, schema, 0);
        if (whit_json_schema_get(c, schema, "maxContains") != WHIT_JSON_NONE)
            one_way(w, ARRAY, WHIT_JSON_SCHEMA_MORE_MATCH, schema, 0);
        break;
    case ALL:
        for (uint32_t k = whit_json_first(json, what); k != WHIT_JSON_NONE; k = whit_json_next(json, what, k)) {
            begin_way(w, 0, 0);
            add_fails(w, k);
            end_way(w);
        }
        break;
    case SOME:
        begin_way(w, 0, 0);
        for (uint32_t k = whit_json_first(json, what); k != WHIT_JSON_NONE; k = whit_json_next(json, what, k))
            add_fails(w, k);
        end_way(w);
        break;
    case ONE: fail_one_of(w, what); break;
    case NOT:
        begin_way(w, 0, 0);
        add_holds(w, what);
        end_way(w);
        break;
    case CONDITION: fail_condition(w, schema, what); break;
    case DEPENDENT: fail_dependencies(w, what); break;
    case REFERENCE:
        to = whit_json_schema_reference(c, schema, whit_json_is(json, key, "$dynamicRef"));
        if (to == WHIT_JSON_NONE) break;
        begin_way(w, 0, 0);
        add_fails(w, to);
        end_way(w);
        break;
    case FORMAT: w->left_out |= whit_json_schema_format(c, what, WHIT_JSON_SCHEMA_STRICT) != NULL; break;
    case UNTOLD: w->left_out = true; break;
    }
}

static void choose_reason(choice *w)
{
    whit_json_schema_compiler *c = w->c;
    uint32_t schema = w->set.items[w->at].node;
    /* If another schema of the set excludes this one, this one always fails, and there is nothing to choose. */
    for (uint32_t i = 0; i < w->set.n; i++)
        if (w->set.items[i].kind == WHIT_JSON_SCHEMA_HOLDS &&
            whit_json_schema_disjoint(c, w->set.items[i].node, schema, 0)) {
            begin_way(w, 0, 0);
            end_way(w);
            return;
        }
    for (uint32_t k = whit_json_first(&c->json, schema); k != WHIT_JSON_NONE && c->status == WHIT_OK;
         k = whit_json_next(&c->json, schema, k))
        fail_keyword(w, schema, k);
    if (w->left_out && w->ways.size_bytes == 0)
        whit_json_schema_refuse(c, schema,
                                "not, or a failed if or oneOf, has no form that can be enforced for this schema: say "
                                "instead what is allowed");
}

/* ---- the next choice --------------------------------------------------------------------------- */

/* Returns which choice of an item is to be made next (UINT32_MAX: the reason for which it fails; 0: no choice is
 * left). */
static uint32_t choice_of(whit_json_schema_compiler *c, whit_json_schema_item item)
{
    if (item.kind == WHIT_JSON_SCHEMA_FAILS) return UINT32_MAX;
    if (item.kind != WHIT_JSON_SCHEMA_HOLDS) return 0;
    bool condition = whit_json_schema_get(c, item.node, "then") != WHIT_JSON_NONE ||
        whit_json_schema_get(c, item.node, "else") != WHIT_JSON_NONE;
    if (!(item.done & WHIT_JSON_SCHEMA_NOT) && whit_json_schema_get(c, item.node, "not") != WHIT_JSON_NONE)
        return WHIT_JSON_SCHEMA_NOT;
    if (!(item.done & WHIT_JSON_SCHEMA_ANY_OF) && whit_json_schema_get(c, item.node, "anyOf") != WHIT_JSON_NONE)
        return WHIT_JSON_SCHEMA_ANY_OF;
    if (!(item.done & WHIT_JSON_SCHEMA_ONE_OF) && whit_json_schema_get(c, item.node, "oneOf") != WHIT_JSON_NONE)
        return WHIT_JSON_SCHEMA_ONE_OF;
    if (!(item.done & WHIT_JSON_SCHEMA_IF) && condition && whit_json_schema_get(c, item.node, "if") != WHIT_JSON_NONE)
        return WHIT_JSON_SCHEMA_IF;
    return whit_json_schema_dependency(c, item.node, item.value) == WHIT_JSON_NONE ? 0 : WHIT_JSON_SCHEMA_DEPENDENT;
}

bool whit_json_schema_choose(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t *begin)
{
    choice w = {.c = c, .set = set, .ways.allocator = c->graph->allocator, .with.allocator = c->graph->allocator};
    uint32_t which = 0;
    for (; w.at < set.n && (which = choice_of(c, set.items[w.at])) == 0; w.at++) {
    }
    if (which == 0) return false;
    whit_json_schema_item item = set.items[w.at];
    switch (which) {
    case WHIT_JSON_SCHEMA_NOT:
        begin_way(&w, WHIT_JSON_SCHEMA_NOT, item.value);
        add_fails(&w, whit_json_schema_get(c, item.node, "not"));
        end_way(&w);
        break;
    case WHIT_JSON_SCHEMA_IF: choose_condition(&w); break;
    case WHIT_JSON_SCHEMA_DEPENDENT:
        choose_dependency(&w, whit_json_schema_dependency(c, item.node, item.value));
        break;
    case WHIT_JSON_SCHEMA_ANY_OF:
    case WHIT_JSON_SCHEMA_ONE_OF: choose_branch(&w, which); break;
    default: choose_reason(&w);
    }
    *begin = whit_automaton_split(c->graph, WHIT_ITEMS(const uint32_t, &w.ways), w.ways.size_bytes / sizeof *begin);
    whit_buf_free(&w.ways);
    whit_buf_free(&w.with);
    return true;
}
