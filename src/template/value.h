/* SPDX-License-Identifier: MIT
 * Values of templates: Python's types as far as templates see them.
 *
 * A value is 16 bytes, passed by value; what it points to lives in a whit_value_pool and never
 * changes once built (namespaces, loops, cyclers and generators excepted). Integers have 64 bits;
 * longer ones can be printed but not calculated with. */
#ifndef WHIT_TEMPLATE_VALUE_H
#define WHIT_TEMPLATE_VALUE_H

#include "template/text.h"

typedef enum whit_value_kind {
    WHIT_VALUE_UNDEFINED = 0, /* `text`: what is said when it is used, or NULL */
    WHIT_VALUE_NONE,
    WHIT_VALUE_BOOL,
    WHIT_VALUE_INT,
    WHIT_VALUE_BIGINT, /* `text`: decimal digits of an integer over 64 bits */
    WHIT_VALUE_FLOAT,
    WHIT_VALUE_TEXT, /* str, Markup or bytes */
    WHIT_VALUE_LIST,
    WHIT_VALUE_TUPLE,
    WHIT_VALUE_DICT,
    WHIT_VALUE_VIEW, /* dict.keys(), .values(), .items(): `detail` is a whit_view */
    WHIT_VALUE_RANGE,
    WHIT_VALUE_GENERATOR, /* what map, select and the like give: can be walked once */
    WHIT_VALUE_NAMESPACE,
    WHIT_VALUE_FUNCTION, /* a global function */
    WHIT_VALUE_METHOD,   /* bound to its object */
    WHIT_VALUE_MACRO,
    WHIT_VALUE_LOOP,
    WHIT_VALUE_CYCLER,
    WHIT_VALUE_JOINER,
    WHIT_VALUE_BLOCKS, /* `self` */
    WHIT_VALUE_BLOCK,  /* `self.name` */
} whit_value_kind;

typedef enum whit_view { WHIT_VIEW_KEYS, WHIT_VIEW_VALUES, WHIT_VIEW_ITEMS } whit_view;

typedef struct whit_value {
    uint8_t kind;   /* whit_value_kind */
    uint8_t detail; /* of a view, or 1 for a tuple of groupby */
    union {
        bool boolean;
        int64_t integer;
        double real;
        const whit_text *text;
        const struct whit_list *list; /* lists and tuples */
        struct whit_dict *dict;       /* dicts, views, namespaces */
        struct whit_range *range;
        struct whit_generator *generator;
        struct whit_method *method;
        const struct whit_builtin *function;
        struct whit_macro *macro;
        struct whit_loop *loop;
        struct whit_cycler *cycler;
        const struct whit_block *block;
    };
} whit_value;

typedef struct whit_list {
    whit_value *items;
    size_t n;
} whit_list;

/* Insertion order; an index of hashes once it is large. */
typedef struct whit_dict {
    struct whit_pair {
        whit_value key, value;
        uint64_t hash;
    } * pairs;
    size_t n, capacity;
    uint32_t *index; /* open addressing, entry + 1; NULL while small */
    size_t index_size;
} whit_dict;

typedef struct whit_range {
    int64_t start, stop, step; /* as they were given */
    size_t n;
} whit_range;

typedef struct whit_generator {
    const char *name;
    whit_list list;
    size_t next;
} whit_generator;

/* ---- making values; false: no memory (or a string that is not UTF-8) ------------------------ */

static inline whit_value whit_value_undefined(const whit_text *text)
{
    return (whit_value){.kind = WHIT_VALUE_UNDEFINED, .text = text};
}
static inline whit_value whit_value_none(void)
{
    return (whit_value){.kind = WHIT_VALUE_NONE};
}
static inline whit_value whit_value_bool(bool boolean)
{
    return (whit_value){.kind = WHIT_VALUE_BOOL, .boolean = boolean};
}
static inline whit_value whit_value_int(int64_t integer)
{
    return (whit_value){.kind = WHIT_VALUE_INT, .integer = integer};
}
static inline whit_value whit_value_float(double real)
{
    return (whit_value){.kind = WHIT_VALUE_FLOAT, .real = real};
}
static inline whit_value whit_value_text(const whit_text *text)
{
    return (whit_value){.kind = WHIT_VALUE_TEXT, .text = text};
}
/* A copy; `user` marks it as coming from the user. */
bool whit_value_string(whit_value_pool *pool, const char *bytes, size_t n_bytes, bool user,
                       whit_value *value);
/* A list (or tuple) of copied items; with NULL items they are zeroed, for the caller to fill. */
bool whit_value_list(whit_value_pool *pool, const whit_value *items, size_t n, whit_value *value);
bool whit_value_tuple(whit_value_pool *pool, const whit_value *items, size_t n, whit_value *value);
bool whit_value_dict(whit_value_pool *pool, whit_value *value);
/* Adds or replaces; the key must be hashable. */
bool whit_dict_set(whit_value_pool *pool, whit_dict *dict, whit_value key, whit_value value);
/* The same with a key that is not the user's: ASCII. */
bool whit_dict_set_str(whit_value_pool *pool, whit_dict *dict, const char *key, whit_value value);
/* JSON text; objects keep their order, strings count as the user's where `user`. */
whit_status whit_value_from_json(whit_value_pool *pool, const char *json, size_t n_bytes, bool user,
                                 whit_value *value, whit_error *error);

/* ---- looking at values ---------------------------------------------------------------------- */

static inline bool whit_value_is(whit_value v, whit_value_kind kind)
{
    return v.kind == kind;
}
static inline bool whit_value_is_str(whit_value v)
{
    return v.kind == WHIT_VALUE_TEXT && !v.text->is_bytes;
}
/* bool, int: what Python's operators take for an integer of 64 bits. */
bool whit_value_as_int(whit_value v, int64_t *integer);
bool whit_value_as_real(whit_value v, double *real); /* bool, int, float */
bool whit_value_is_number(whit_value v);
bool whit_value_is_true(whit_value v);
bool whit_value_is_callable(whit_value v);
const char *whit_value_type(whit_value v);       /* Python's name of the type */
bool whit_value_length(whit_value v, size_t *n); /* false: it has none */

/* False for lists, dicts and tuples that hold them (to a depth of 64). */
bool whit_value_is_hashable(whit_value v);
const whit_value *whit_dict_get(const whit_dict *dict, whit_value key); /* key: hashable */
const whit_value *whit_dict_get_str(const whit_dict *dict, const char *key);

/* Python's ==. `budget` is lowered by the work done, and depth is bounded: false where either runs
 * out, with *budget 0. */
bool whit_value_equal(whit_value a, whit_value b, uint64_t *budget);
/* Numbers only: -1, 0, 1, or 2 where one is not a number (NaN). */
int whit_number_compare(whit_value a, whit_value b);
whit_value whit_range_at(const whit_range *range, size_t i);

#endif
