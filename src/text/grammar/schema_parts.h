/* SPDX-License-Identifier: MIT
 * Declares the parts of the compiler of JSON Schema. A value is compiled for a *set* of schemas that must all hold: a
 * schema, what it refers to, what allOf lists, a branch of anyOf. Every set has one rule. */
#ifndef WHIT_GRAMMAR_SCHEMA_PARTS_H
#define WHIT_GRAMMAR_SCHEMA_PARTS_H

#include "base/json.h"
#include "grammar/automaton.h"
#include "grammar/language.h"

/* Lists the kinds of conditions on a value. Schemas and their choices are decomposed into parts, which describe the
 * texts of one type. */
typedef enum whit_json_schema_kind {
    WHIT_JSON_SCHEMA_HOLDS = 0,     /* the schema at `node`; `done` marks its choices that were already made */
    WHIT_JSON_SCHEMA_FAILS,         /* not the schema at `node` */
    WHIT_JSON_SCHEMA_OF_TYPE,       /* one of the types `value` */
    WHIT_JSON_SCHEMA_KEY_FAILS,     /* a keyword does not hold: its value is at `node`, in the schema `value` */
    WHIT_JSON_SCHEMA_HAS,           /* the property whose name is at `node` */
    WHIT_JSON_SCHEMA_LACKS,         /* an object without the property whose name is at `node` */
    WHIT_JSON_SCHEMA_MEMBER_FAILS,  /* the property whose name is at `node`, and not the schema after the name */
    WHIT_JSON_SCHEMA_ELEMENT_FAILS, /* an element from `value` on for which the schema at `node` does not hold */
    WHIT_JSON_SCHEMA_PREFIX_FAILS,  /* the element at `value`, and not the schema at `node` */
    WHIT_JSON_SCHEMA_FEWER_MATCH,   /* fewer elements than its minContains for the `contains` of the schema at `node` */
    WHIT_JSON_SCHEMA_MORE_MATCH,    /* more elements than its maxContains */
    WHIT_JSON_SCHEMA_BELOW,         /* a number below the number at `node` */
    WHIT_JSON_SCHEMA_ABOVE,         /* a number above the number at `node` */
    WHIT_JSON_SCHEMA_UNLIKE,        /* not the string or boolean at `node` */
    WHIT_JSON_SCHEMA_FEWER,         /* fewer than `value` elements or properties */
    WHIT_JSON_SCHEMA_MORE,          /* more than `value` elements or properties */
} whit_json_schema_kind;

typedef struct whit_json_schema_item {
    uint32_t node, done, kind, value;
} whit_json_schema_item;
enum {
    WHIT_JSON_SCHEMA_ANY_OF = 1,
    WHIT_JSON_SCHEMA_ONE_OF = 2,
    WHIT_JSON_SCHEMA_NOT = 4,
    WHIT_JSON_SCHEMA_IF = 8,
    WHIT_JSON_SCHEMA_DEPENDENT = 16, /* `value` counts the dependencies that were chosen */
};

typedef struct whit_json_schema_set {
    const whit_json_schema_item *items;
    uint32_t n;
} whit_json_schema_set;

/* Holds the rule of a language that several schemas may need; its name is n_bytes from `key` on in rule_names. */
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
    whit_buf items, sets; /* items of all sets that have a rule; sets[i] is compiled once, in order */
    uint32_t *slots, n_slots;
    whit_buf resources, anchors, uris, references; /* see schema_reference.c */
    whit_buf known_rules, rule_names;
    uint64_t work, language_work;
    uint32_t listed;                                           /* the enum whose values are tested */
    uint32_t n_cases;                                          /* number of sets from choices other than anyOf */
    uint32_t any_rule, string_rule, number_rule, integer_rule; /* plus 1; 0: not made yet */
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

/* Fails at a node: "name: #/path: what". Returns WHIT_AUTOMATON_NONE. */
uint32_t whit_json_schema_refuse(whit_json_schema_compiler *c, uint32_t node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns the rule of a set; a new rule is compiled later. */
uint32_t whit_json_schema_rule(whit_json_schema_compiler *c, const whit_json_schema_item *items, uint32_t n);
/* Appends a schema and all schemas that it refers to to `set` (whit_json_schema_item[]); false: refused. */
bool whit_json_schema_collect(whit_json_schema_compiler *c, uint32_t node, whit_buf *set);
bool whit_json_schema_open_references(whit_json_schema_compiler *c);
void whit_json_schema_close_references(whit_json_schema_compiler *c);
/* Returns the schema to which another one refers by $ref (i: 0) or $dynamicRef (1); WHIT_JSON_NONE if there is no
 * reference, or if it is refused. */
uint32_t whit_json_schema_reference(whit_json_schema_compiler *c, uint32_t schema, uint32_t i);
uint32_t whit_json_schema_types(whit_json_schema_compiler *c, uint32_t schema);
bool whit_json_schema_disjoint(whit_json_schema_compiler *c, uint32_t a, uint32_t b, uint32_t depth);

/* Finds the rule of a language by its name among the recent ones. If it is new, keeps the name and returns true: the
 * caller must define the rule. */
bool whit_json_schema_new_rule(whit_json_schema_compiler *c, const whit_buf *name, uint32_t *rule);

/* Adds the texts of each type before `next`. */
uint32_t whit_json_schema_any(whit_json_schema_compiler *c, uint32_t next);
uint32_t whit_json_schema_enum(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t types, uint32_t next);
uint32_t whit_json_schema_number(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t types, uint32_t next);
uint32_t whit_json_schema_string(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t next);
uint32_t whit_json_schema_array(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t next);
uint32_t whit_json_schema_object(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t next);
/* Iterates over the schemas that a schema applies to the same value and that surely hold for the values of a set: by
 * references, allOf, the branches that were chosen, and conditions. It returns WHIT_JSON_NONE past the last. */
typedef struct whit_json_schema_applied {
    uint32_t schema, key, at; /* schema: set by the caller; the others begin as 0 */
    bool started;
} whit_json_schema_applied;
uint32_t whit_json_schema_next_applied(whit_json_schema_compiler *c, whit_json_schema_set set,
                                       whit_json_schema_applied *at);
/* Writes a value of the document as JSON. */
void whit_json_schema_write(const whit_json_schema_compiler *c, uint32_t value, whit_buf *out);
/* Builds an expression of `language` for the strings for which a schema holds. */
uint32_t whit_json_schema_strings(whit_json_schema_compiler *c, whit_language *language, uint32_t schema);
/* Builds an expression of `language` for the strings that match a pattern. */
uint32_t whit_json_schema_pattern(whit_json_schema_compiler *c, whit_language *language, uint32_t node);
/* Opens a language whose work counts for the schema; whit_json_schema_close_language reports at `node` why it
 * failed. */
bool whit_json_schema_open_language(whit_json_schema_compiler *c, whit_language *language);
void whit_json_schema_close_language(whit_json_schema_compiler *c, whit_language *language, uint32_t node);
/* Lists the purposes for which whit_json_schema_format returns the pattern of a known format; it returns NULL for other
 * formats, which are annotations. */
typedef enum whit_json_schema_use {
    WHIT_JSON_SCHEMA_WRITTEN, /* write strings with no other constraint */
    WHIT_JSON_SCHEMA_STRICT,  /* check a given string */
    WHIT_JSON_SCHEMA_BESIDE,  /* combine with a pattern */
} whit_json_schema_use;
const char *whit_json_schema_format(whit_json_schema_compiler *c, uint32_t node, whit_json_schema_use use);
/* Builds "," or ":" and at most one space. */
uint32_t whit_json_schema_sign(whit_json_schema_compiler *c, const char *sign, uint32_t next);
/* Returns whether two values are equal, whatever the order of members and the form of numbers. */
bool whit_json_schema_same(whit_json_schema_compiler *c, uint32_t a, uint32_t b);
/* Writes a key or another string as JSON. */
void whit_json_schema_quote(whit_buf *out, const char *text, size_t n_bytes);
/* Computes the bounds of a length or count: the greatest of minima, the least of maxima; false: refused. */
bool whit_json_schema_bounds(whit_json_schema_compiler *c, whit_json_schema_set set, const char *min_key,
                             const char *max_key, uint32_t *min, uint32_t *max);
/* Reads minContains and maxContains of a schema; false: refused. */
bool whit_json_schema_match_bounds(whit_json_schema_compiler *c, uint32_t schema, uint32_t *least, uint32_t *most);
/* Returns whether a value of the document satisfies a condition. */
bool whit_json_schema_is_valid(whit_json_schema_compiler *c, uint32_t value, whit_json_schema_item item);
/* Returns the value of a member of an object, by a name that may hold any bytes; WHIT_JSON_NONE: there is no such
 * member. */
uint32_t whit_json_schema_member(const whit_json *json, uint32_t object, const char *name, size_t n_bytes);
/* Returns the list of schemas of the first elements, and the schema of the rest; WHIT_JSON_NONE: not given. */
uint32_t whit_json_schema_prefix(const whit_json_schema_compiler *c, uint32_t schema, uint32_t *rest);
/* Returns the schema of the i-th element; WHIT_JSON_NONE: not given. */
uint32_t whit_json_schema_element(whit_json_schema_compiler *c, uint32_t schema, uint32_t i);
uint32_t whit_json_schema_type_of(const whit_json *json, uint32_t value);
/* Returns the key of the i-th dependency of a schema; WHIT_JSON_NONE past the last. */
uint32_t whit_json_schema_dependency(whit_json_schema_compiler *c, uint32_t schema, uint32_t i);
/* Makes the next choice of a set: *begin accepts all its alternatives. The result is false if no choice is left. */
bool whit_json_schema_choose(whit_json_schema_compiler *c, whit_json_schema_set set, uint32_t *begin);
/* Builds an expression of `language` for the strings of a known format in its strict form. */
uint32_t whit_json_schema_format_strings(whit_json_schema_compiler *c, whit_language *language, uint32_t format);

/* Bounds the time of quadratic work; false if refused. */
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

/* Writes the schema without keywords whose value is null (schema_nulls.c); *dropped: at least one was left out. The
 * result is false if memory runs out. */
bool whit_json_schema_drop_nulls(const whit_json *json, whit_buf *out, bool *dropped);

#endif
