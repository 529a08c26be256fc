/* SPDX-License-Identifier: MIT
 * Declares the values of templates: Python's types as far as templates use them.
 *
 * A value has 16 bytes and is passed by value. The memory that it points to is in a whit_datum_pool, and never changes
 * once built, except for namespaces, loops, joiners and generators. Integers have 64 bits; larger ones can be printed
 * but not calculated with. */
#ifndef WHIT_TEMPLATE_VALUE_H
#define WHIT_TEMPLATE_VALUE_H

#include "template/text.h"

typedef enum whit_datum_kind {
    WHIT_DATUM_UNDEFINED = 0, /* `text`: message of the error that using it raises; NULL: a general message */
    WHIT_DATUM_NONE,
    WHIT_DATUM_BOOL,
    WHIT_DATUM_INT,
    WHIT_DATUM_BIGINT, /* `text`: decimal digits of an integer of more than 64 bits, after '-' if negative */
    WHIT_DATUM_FLOAT,
    WHIT_DATUM_TEXT, /* str, Markup or bytes */
    WHIT_DATUM_LIST,
    WHIT_DATUM_TUPLE,
    WHIT_DATUM_DICT,
    WHIT_DATUM_VIEW, /* dict.keys(), .values() or .items(); `detail` is a whit_view */
    WHIT_DATUM_RANGE,
    WHIT_DATUM_GENERATOR, /* result of map, select and similar filters: can be iterated only once */
    WHIT_DATUM_NAMESPACE,
    WHIT_DATUM_FUNCTION, /* a global function */
    WHIT_DATUM_METHOD,   /* a method together with its object */
    WHIT_DATUM_MACRO,
    WHIT_DATUM_LOOP,
    WHIT_DATUM_JOINER,
    WHIT_DATUM_BLOCKS, /* the variable `self` */
    WHIT_DATUM_BLOCK,  /* an attribute of `self`, such as self.name */
} whit_datum_kind;

typedef enum whit_view { WHIT_VIEW_KEYS, WHIT_VIEW_VALUES, WHIT_VIEW_ITEMS } whit_view;

typedef struct whit_datum {
    uint8_t kind;   /* whit_datum_kind */
    uint8_t detail; /* kind of a view; 1 for a tuple that groupby has created */
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
        struct whit_joiner *joiner;
        const struct whit_block *block;
    };
} whit_datum;

typedef struct whit_list {
    whit_datum *items;
    size_t n;
} whit_list;

/* A dict keeps the order of insertion. A large one has a hash index. */
typedef struct whit_dict {
    struct whit_pair {
        whit_datum key, value;
        uint64_t hash;
    } * pairs;
    size_t n, capacity;
    uint32_t *index; /* hash table with open addressing: index of a pair, plus 1; NULL for a small dict */
    size_t index_size;
} whit_dict;

typedef struct whit_range {
    int64_t start, stop, step; /* the arguments of range() */
    size_t n;
} whit_range;

typedef struct whit_generator {
    const char *name;
    whit_list list;
    size_t next;
} whit_generator;

/* ---- creating values; false if memory is exhausted (or a string is not UTF-8) ---------------- */

static inline whit_datum whit_datum_undefined(const whit_text *text)
{
    return (whit_datum){.kind = WHIT_DATUM_UNDEFINED, .text = text};
}
static inline whit_datum whit_datum_none(void)
{
    return (whit_datum){.kind = WHIT_DATUM_NONE};
}
static inline whit_datum whit_datum_bool(bool boolean)
{
    return (whit_datum){.kind = WHIT_DATUM_BOOL, .boolean = boolean};
}
static inline whit_datum whit_datum_int(int64_t integer)
{
    return (whit_datum){.kind = WHIT_DATUM_INT, .integer = integer};
}
static inline whit_datum whit_datum_float(double real)
{
    return (whit_datum){.kind = WHIT_DATUM_FLOAT, .real = real};
}
static inline whit_datum whit_datum_text(const whit_text *text)
{
    return (whit_datum){.kind = WHIT_DATUM_TEXT, .text = text};
}
/* Copies a string; `user` marks it as the user's. */
bool whit_datum_string(whit_datum_pool *pool, const char *bytes, size_t n_bytes, bool user, whit_datum *value);
/* Creates a list with copies of the items. `items` NULL: the items are zeroed, and the caller fills them. Tuples are
 * created in the same way. */
bool whit_datum_list(whit_datum_pool *pool, const whit_datum *items, size_t n, whit_datum *value);
bool whit_datum_dict(whit_datum_pool *pool, whit_datum *value);
/* Adds a pair, or replaces the value of an equal key. The key must be hashable. */
bool whit_dict_set(whit_datum_pool *pool, whit_dict *dict, whit_datum key, whit_datum value);
/* Like whit_dict_set, with an ASCII key that is not the user's. */
bool whit_dict_set_str(whit_datum_pool *pool, whit_dict *dict, const char *key, whit_datum value);
/* Parses JSON. Objects keep their order. Strings are marked as the user's if `user`. */
whit_status whit_datum_from_json(whit_datum_pool *pool, const char *json, size_t n_bytes, bool user, whit_datum *value,
                                 whit_error *error);

/* ---- examining values ----------------------------------------------------------------------- */

static inline bool whit_datum_is_str(whit_datum v)
{
    return v.kind == WHIT_DATUM_TEXT && !v.text->is_bytes;
}
/* Converts an int or bool to an integer; Python's operators treat bools like that. Returns false for other values. */
bool whit_datum_as_int(whit_datum v, int64_t *integer);
bool whit_datum_as_real(whit_datum v, double *real); /* converts a bool, int or float; false for others */
bool whit_datum_is_number(whit_datum v);
bool whit_datum_is_true(whit_datum v);
bool whit_datum_is_callable(whit_datum v);
const char *whit_datum_type(whit_datum v);       /* name of the type in Python */
bool whit_datum_length(whit_datum v, size_t *n); /* false if the value has no length */

/* Returns whether the value can be hashed. It cannot if it is a list, dict or view, or a tuple that contains one, is
 * nested more than 64 deep or has more than 1,000 elements in total. *n_steps is the number of steps that hashing takes
 * (template.h). */
bool whit_datum_is_hashable(whit_datum v, uint64_t *n_steps);
const whit_datum *whit_dict_get(const whit_dict *dict, whit_datum key); /* `key` must be hashable; NULL if absent */
const whit_datum *whit_dict_get_str(const whit_dict *dict, const char *key);

/* Computes Python's a == b. *budget is reduced by the work done. If it or the depth limit is exhausted, *budget is 0
 * and the result has no meaning. */
bool whit_datum_equal(whit_datum a, whit_datum b, uint64_t *budget);
/* Compares two numbers: -1, 0 or 1, or 2 if one of them is NaN. */
int whit_number_compare(whit_datum a, whit_datum b);
whit_datum whit_range_at(const whit_range *range, size_t i);

#endif
