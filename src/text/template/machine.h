/* SPDX-License-Identifier: MIT
 * State of one rendering: memory, limits, scopes, output, and the operations on values that can fail.
 *
 * Every function with a machine and a status stores the reason of a failure in the machine. The position of an error is
 * that of the innermost node that has failed. */
#ifndef WHIT_TEMPLATE_MACHINE_H
#define WHIT_TEMPLATE_MACHINE_H

#include "base/rng.h"
#include "template/ast.h"
#include "template/number.h"

typedef struct whit_arguments {
    const whit_datum *positional;
    size_t n_positional;
    const struct whit_named_value {
        const whit_text *name;
        whit_datum value;
    } * named;
    size_t n_named;
} whit_arguments;

typedef struct whit_scope {
    struct whit_scope *parent;
    struct whit_binding {
        struct whit_binding *next;
        const whit_text *name;
        whit_datum value;
    } * bindings;
} whit_scope;

typedef enum whit_flow { WHIT_FLOW_ON, WHIT_FLOW_BREAK, WHIT_FLOW_CONTINUE } whit_flow;

typedef struct whit_machine {
    const whit_template *template;
    whit_datum_pool *pool;
    whit_template_limits limits;
    whit_template_time now;
    whit_datum context;
    whit_scope *scope, *root;
    whit_builder *out;
    uint64_t n_steps_left;
    uint32_t depth;
    whit_flow flow;
    bool autoescape;
    whit_datum captured; /* value of WHIT_NODE_CAPTURED: the rendered text of the block that is being filtered */
    whit_rng rng;        /* random numbers for the filter `random` */
    whit_error error;
    const whit_text *raised; /* message of raise_exception; NULL: it was not called */
    bool has_place;
    uint32_t offset; /* position of the failure in the source, if has_place */
} whit_machine;

typedef struct whit_macro {
    const whit_signature *signature;
    const whit_node *body;
    whit_scope *scope; /* the scope in which the macro was defined */
} whit_macro;

typedef struct whit_loop {
    const whit_node *node; /* node of kind FOR */
    whit_scope *scope;     /* the scope that contains the loop */
    const whit_datum *items;
    size_t n_items, next; /* next: index of the next item that was not examined yet */
    bool is_filtered;     /* all remaining items have passed the loop's filter */
    whit_datum previous, current, following;
    bool has_previous, has_following;
    size_t index; /* number of the current pass, from 0 */
    uint32_t depth;
    whit_datum changed; /* arguments of the last call of loop.changed */
} whit_loop;

typedef struct whit_joiner {
    const whit_text *separator;
    bool is_used; /* the joiner was called before: from then on it returns the separator */
} whit_joiner;

/* ---- failure and limits ---------------------------------------------------------------------- */

whit_status whit_machine_raise(whit_machine *m, whit_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
whit_status whit_machine_raise_type(whit_machine *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
whit_status whit_machine_raise_memory(whit_machine *m);
whit_status whit_machine_raise_undefined(whit_machine *m, whit_datum undefined);
whit_status whit_machine_spend(whit_machine *m, uint64_t n_steps);
whit_status whit_machine_enter(whit_machine *m); /* increases the depth by one; the caller decrements m->depth when it
                                                  * leaves the level */

/* ---- text ------------------------------------------------------------------------------------ */

whit_builder whit_machine_build(whit_machine *m); /* begins a text whose size is limited by the machine's limits */
/* Ends a text and spends steps for its size. If the builder has failed, raises an error about the limit that was
 * exceeded. */
whit_status whit_machine_build_end(whit_machine *m, whit_builder *b, whit_datum *value);
whit_status whit_machine_str(whit_machine *m, whit_datum value, const whit_text **text);
whit_status whit_machine_repr(whit_machine *m, whit_builder *b, whit_datum value);
whit_status whit_machine_slice_text(whit_machine *m, const whit_text *text, size_t begin, size_t end,
                                    whit_datum *value);
/* Replaces &, <, > and quotes by HTML entities. */
whit_status whit_machine_escape_html(whit_machine *m, whit_datum value, whit_datum *result);

/* ---- operators ------------------------------------------------------------------------------- */

whit_status whit_machine_arithmetic(whit_machine *m, whit_arithmetic operation, whit_datum a, whit_datum b,
                                    whit_datum *result);
whit_status whit_machine_equals(whit_machine *m, whit_datum a, whit_datum b, bool *result);
whit_status whit_machine_compare(whit_machine *m, whit_comparison operation, whit_datum a, whit_datum b, bool *result);
/* Computes Python's a < b, for sorting. Fails if the values have no order. */
whit_status whit_machine_less(whit_machine *m, whit_datum a, whit_datum b, bool *result);
whit_status whit_machine_attribute(whit_machine *m, whit_datum object, const whit_text *name, whit_datum *result);
whit_status whit_machine_item(whit_machine *m, whit_datum object, whit_datum key, whit_datum *result);
whit_status whit_machine_slice(whit_machine *m, whit_datum object, const whit_datum bounds[3], whit_datum *result);
/* Collects all elements of an iterable; a generator is exhausted by this. A loop is an error. The list may be shared
 * and must not be changed. */
whit_status whit_machine_items(whit_machine *m, whit_datum value, whit_list *list);
bool whit_datum_is_iterable(whit_datum value);
whit_status whit_machine_new_list(whit_machine *m, const whit_datum *items, size_t n, whit_datum *value);
whit_status whit_machine_new_tuple(whit_machine *m, const whit_datum *items, size_t n, whit_datum *value);
whit_status whit_machine_new_generator(whit_machine *m, const char *name, whit_list list, whit_datum *value);
/* Sorts by keys with a stable merge sort. `keys` and `items` are rearranged in the same way. */
whit_status whit_machine_sort(whit_machine *m, whit_datum *keys, whit_datum *items, size_t n, bool reverse);

/* ---- evaluation ------------------------------------------------------------------------------ */

whit_status whit_machine_evaluate(whit_machine *m, const whit_node *node, whit_datum *result);
/* Evaluates a node of kind CALL. `caller`, if not NULL, is added as an argument. */
whit_status whit_machine_evaluate_call(whit_machine *m, const whit_node *node, const whit_datum *caller,
                                       whit_datum *result);
whit_status whit_machine_execute(whit_machine *m, const whit_node *node);
whit_status whit_machine_call_function(whit_machine *m, whit_datum callee, const whit_arguments *arguments,
                                       whit_datum *result);
whit_status whit_machine_call_macro(whit_machine *m, const whit_macro *macro, const whit_arguments *arguments,
                                    whit_datum *result);
whit_status whit_machine_call_loop(whit_machine *m, const whit_loop *loop, const whit_arguments *arguments,
                                   whit_datum *result);
whit_status whit_machine_loop_attribute(whit_machine *m, whit_loop *loop, const whit_text *name, bool *found,
                                        whit_datum *result);
whit_status whit_machine_render_block(whit_machine *m, const whit_node *body, whit_scope *scope, whit_datum *result);
whit_scope *whit_machine_new_scope(whit_machine *m, whit_scope *parent); /* NULL if memory is exhausted */
/* Raises an error if a value cannot be a key of a dict. Otherwise spends the steps that hashing it takes. */
whit_status whit_machine_want_key(whit_machine *m, whit_datum key);
whit_status whit_machine_bind(whit_machine *m, whit_scope *scope, const whit_text *name, whit_datum value);
whit_status whit_machine_lookup(whit_machine *m, const whit_text *name, bool *found, whit_datum *value);

#endif
