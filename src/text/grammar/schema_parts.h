/* SPDX-License-Identifier: MIT
 * Declares the parts of the JSON Schema compiler. A value is compiled for a *set* of conditions that must all hold: a
 * schema, the schemas that it refers to or lists in allOf, the chosen branch of anyOf, and so on. Each set has one
 * rule. */
#ifndef WHIT_GRAMMAR_SCHEMA_PARTS_H
#define WHIT_GRAMMAR_SCHEMA_PARTS_H

#include "base/json.h"
#include "grammar/automaton.h"
#include "grammar/language.h"

/* Kinds of conditions on a value. Schemas and their choices are decomposed into such conditions. */
typedef enum whit_json_schema_kind {
    WHIT_JSON_SCHEMA_HOLDS = 0,     /* the schema at `node` holds; `done` has the choices that were made already */
    WHIT_JSON_SCHEMA_FAILS,         /* the schema at `node` does not hold */
    WHIT_JSON_SCHEMA_OF_TYPE,       /* the JSON value has one of the types whose bits are set in the item's `value` */
    WHIT_JSON_SCHEMA_KEY_FAILS,     /* a keyword fails: its value is at `node`, in the schema `value` */
    WHIT_JSON_SCHEMA_HAS,           /* an object, if it is one, has the property whose name is at `node` */
    WHIT_JSON_SCHEMA_LACKS,         /* an object, if it is one, lacks the property whose name is at `node` */
    WHIT_JSON_SCHEMA_MEMBER_FAILS,  /* an object has the property whose name is at `node`, and the schema after the name
                                     * fails for it */
    WHIT_JSON_SCHEMA_ELEMENT_FAILS, /* an array has an element, with index `value` or above, for which the schema at
                                     * `node` fails */
    WHIT_JSON_SCHEMA_PREFIX_FAILS,  /* an array has an element with index `value`, for which the schema at `node`
                                     * fails */
    WHIT_JSON_SCHEMA_FEWER_MATCH,   /* fewer elements match `contains` of the schema at `node` than its minContains */
    WHIT_JSON_SCHEMA_MORE_MATCH,    /* more elements match `contains` of the schema at `node` than its maxContains */
    WHIT_JSON_SCHEMA_BELOW,         /* a number less than the number at `node` */
    WHIT_JSON_SCHEMA_ABOVE,         /* a number greater than the number at `node` */
    WHIT_JSON_SCHEMA_UNLIKE,        /* a value that differs from the string or boolean at `node` */
    WHIT_JSON_SCHEMA_FEWER,         /* a value that, if it is an array or object, has fewer than `value` elements or
                                     * properties */
    WHIT_JSON_SCHEMA_MORE,          /* a value that, if it is an array or object, has more than `value` elements or
                                     * properties */
} whit_json_schema_kind;

typedef struct whit_json_schema_item {
    uint32_t node, done, kind, value;
} whit_json_schema_item;
enum {
    WHIT_JSON_SCHEMA_ANY_OF = 1,
    WHIT_JSON_SCHEMA_ONE_OF = 2,
    WHIT_JSON_SCHEMA_NOT = 4,
    WHIT_JSON_SCHEMA_IF = 8,
    WHIT_JSON_SCHEMA_DEPENDENT = 16, /* `value` is the number of dependencies that were chosen */
};

typedef struct whit_json_schema_set {
    const whit_json_schema_item *items;
    uint32_t n;
} whit_json_schema_set;

/* The rule of a language that several schemas may share. Its name is the n_bytes bytes from `key` on in rule_names. */
typedef struct whit_json_schema_known {
    size_t key, n_bytes;
    uint32_t rule;
} whit_json_schema_known;

typedef struct whit_json_schema_compiler {
    whit_automaton *graph;
    whit_json json;
    const char *name;
    whit_error *error;
    whit_status status;
    whit_buf items, sets; /* items: the items of all sets that have a rule; sets: these sets, each compiled once, in
                           * this order */
    uint32_t *slots, n_slots;
    whit_buf resources, anchors, uris, references; /* arrays of the schemas with $id and of the anchors in the document;
                                                    * text of the URIs; cache of resolved references */
    whit_buf known_rules, rule_names;
    uint64_t work, language_work;
    uint32_t listed;                                           /* node of the enum whose values are being checked */
    uint32_t n_cases;                                          /* number of sets that come from choices other than plain
                                                                * branches */
    uint32_t any_rule, string_rule, number_rule, integer_rule; /* rule, plus 1; 0: not built yet */
} whit_json_schema_compiler;

enum {
    WHIT_JSON_SCHEMA_NULL = 1,
    WHIT_JSON_SCHEMA_BOOL = 2,
    WHIT_JSON_SCHEMA_INTEGER = 4,
    WHIT_JSON_SCHEMA_REAL = 8, /* numbers that are not integers */
    WHIT_JSON_SCHEMA_STRING = 16,
    WHIT_JSON_SCHEMA_ARRAY = 32,
    WHIT_JSON_SCHEMA_OBJECT = 64,
    WHIT_JSON_SCHEMA_ALL_TYPES = 127,
};

/* Sets the error of the compilation, at a node: "NAME: #/PATH: REASON". Returns WHIT_AUTOMATON_NONE. Functions below
 * that return false after an error have called this. */
uint32_t whit_json_schema_refuse(whit_json_schema_compiler *c, uint32_t node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns the rule of a set. A new rule is compiled later. */
uint32_t whit_json_schema_rule(whit_json_schema_compiler *c, const whit_json_schema_item *items, uint32_t n);
/* Appends to `set` (array of whit_json_schema_item) a schema and, recursively, all schemas that it refers to or lists
 * in allOf, except the schema `true`. Returns false after an error. */
bool whit_json_schema_collect(whit_json_schema_compiler *c, uint32_t node, whit_buf *set);
bool whit_json_schema_open_references(whit_json_schema_compiler *c);
void whit_json_schema_close_references(whit_json_schema_compiler *c);
/* Returns the schema that a schema refers to by $ref (i = 0) or $dynamicRef (i = 1). WHIT_JSON_NONE if it has no such
 * reference, or after an error. */
uint32_t whit_json_schema_reference(whit_json_schema_compiler *c, uint32_t schema, uint32_t i);
uint32_t whit_json_schema_types(whit_json_schema_compiler *c, uint32_t schema);
bool whit_json_schema_disjoint(whit_json_schema_compiler *c, uint32_t a, uint32_t b, uint32_t depth);

/* Finds a language's rule by name among the recently added ones. If it is not found, adds the name with a new rule and
 * returns true: the caller must then define the rule. */
bool whit_json_schema_new_rule(whit_json_schema_compiler *c, const whit_buf *name, uint32_t *rule);

/* Add nodes that accept the values of one type that satisfy the set, followed by `next`. `any` accepts all JSON
 * values. */
uint32_t whit_json_schema_any(whit_json_schema_compiler *c, uint32_t next);
uint32_t whit_json_schema_enum(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t types, uint32_t next);
uint32_t whit_json_schema_number(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t types, uint32_t next);
uint32_t whit_json_schema_string(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t next);
uint32_t whit_json_schema_array(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t next);
uint32_t whit_json_schema_object(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t next);
/* Iterates over the schemas that a schema applies to the same value and that certainly hold for the values of a set:
 * through references, allOf, chosen branches, and conditions. whit_json_schema_next_applied returns WHIT_JSON_NONE
 * after the last. */
typedef struct whit_json_schema_applied {
    uint32_t schema, key, at; /* the caller sets `schema` and zeroes the others */
    bool started;
} whit_json_schema_applied;
uint32_t whit_json_schema_next_applied(whit_json_schema_compiler *c, whit_json_schema_set set,
                                       whit_json_schema_applied *at);
/* Appends a value of the document as JSON. */
void whit_json_schema_write(const whit_json_schema_compiler *c, uint32_t value, whit_buf *out);
/* Returns an expression of `language` for the strings that a schema accepts. */
uint32_t whit_json_schema_strings(whit_json_schema_compiler *c, whit_language *language, uint32_t schema);
/* Returns an expression of `language` for the strings that match the pattern at `node`. */
uint32_t whit_json_schema_pattern(whit_json_schema_compiler *c, whit_language *language, uint32_t node);
/* Opens a language whose work counts for the schema's limit. whit_json_schema_close_language reports at `node` if the
 * language has failed. */
bool whit_json_schema_open_language(whit_json_schema_compiler *c, whit_language *language);
void whit_json_schema_close_language(whit_json_schema_compiler *c, whit_language *language, uint32_t node);
/* Purposes of a format's pattern. whit_json_schema_format returns the pattern of a known format for a purpose, and NULL
 * for other formats, which are annotations. */
typedef enum whit_json_schema_use {
    WHIT_JSON_SCHEMA_WRITTEN, /* to generate strings without other constraints */
    WHIT_JSON_SCHEMA_STRICT,  /* to check a given string */
    WHIT_JSON_SCHEMA_BESIDE,  /* to be combined with a pattern of the schema */
} whit_json_schema_use;
const char *whit_json_schema_format(whit_json_schema_compiler *c, uint32_t node, whit_json_schema_use use);
/* Accepts "," or ":" and at most one space, followed by `next`. */
uint32_t whit_json_schema_sign(whit_json_schema_compiler *c, const char *sign, uint32_t next);
/* Returns whether two values are equal. The order of members and the spelling of numbers do not matter. */
bool whit_json_schema_same(whit_json_schema_compiler *c, uint32_t a, uint32_t b);
/* Appends a key or another string as JSON. */
void whit_json_schema_quote(whit_buf *out, const char *text, size_t n_bytes);
/* Computes the bounds of a length or count over all items of a set: the largest minimum and the smallest maximum.
 * Returns false after an error. */
bool whit_json_schema_bounds(whit_json_schema_compiler *c, whit_json_schema_set set, const char *min_key,
                             const char *max_key, uint32_t *min, uint32_t *max);
/* Reads minContains and maxContains of a schema, with their defaults. Returns false after an error. */
bool whit_json_schema_match_bounds(whit_json_schema_compiler *c, uint32_t schema, uint32_t *least, uint32_t *most);
/* Returns whether a value of the document satisfies a condition. */
bool whit_json_schema_is_valid(whit_json_schema_compiler *c, uint32_t value, whit_json_schema_item item);
/* Returns the value of an object's member with this name, which may contain any bytes; WHIT_JSON_NONE if absent. */
uint32_t whit_json_schema_member(const whit_json *json, uint32_t object, const char *name, size_t n_bytes);
/* Returns the array of schemas for an array's first elements, and sets *rest to the schema of the others;
 * WHIT_JSON_NONE if absent. */
uint32_t whit_json_schema_prefix(const whit_json_schema_compiler *c, uint32_t schema, uint32_t *rest);
/* Returns the schema of element i; WHIT_JSON_NONE if absent. */
uint32_t whit_json_schema_element(whit_json_schema_compiler *c, uint32_t schema, uint32_t i);
uint32_t whit_json_schema_type_of(const whit_json *json, uint32_t value);
/* Returns the key of a schema's i-th dependency (from 0); WHIT_JSON_NONE after the last. */
uint32_t whit_json_schema_dependency(whit_json_schema_compiler *c, uint32_t schema, uint32_t i);
/* Makes the next choice of a set: *begin accepts all its alternatives. Returns false if no choice remains. */
bool whit_json_schema_choose(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t *begin);
/* Returns an expression of `language` for the strings of the known format at `format`, in its strict form. */
uint32_t whit_json_schema_format_strings(whit_json_schema_compiler *c, whit_language *language, uint32_t format);

/* Counts the steps of quadratic algorithms. Returns false after an error, also if there were too many steps. */
static inline bool whit_json_schema_work(whit_json_schema_compiler *c, uint32_t node, uint32_t work)
{
    c->work += work;
    if (c->work > 40000000)
        whit_json_schema_refuse(
            c, node,
            "checking the schema takes too long (limit: 40 million steps): make its lists and references shorter");
    return c->status == WHIT_OK;
}
static inline uint32_t whit_json_schema_get(const whit_json_schema_compiler *c, uint32_t schema, const char *key)
{
    return whit_json_get(&c->json, schema, key);
}

/* Appends the schema without keywords whose value is null, except "const" (schema_nulls.c). *dropped: at least one was
 * left out. Returns false if memory is exhausted. */
bool whit_json_schema_drop_nulls(const whit_json *json, whit_buf *out, bool *dropped);

#endif
