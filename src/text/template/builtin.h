/* SPDX-License-Identifier: MIT
 * Declares filters, tests, functions and methods: tables of names, parameters and the C functions that implement
 * them. */
#ifndef WHIT_TEMPLATE_BUILTIN_H
#define WHIT_TEMPLATE_BUILTIN_H

#include "template/machine.h"

enum { WHIT_MAX_PARAMETERS = 6 };

/* A call that is being executed. `self` is the value that is filtered or tested, or the method's object. */
typedef struct whit_builtin_frame {
    const struct whit_builtin *builtin;
    whit_datum self;
    const whit_arguments *arguments;        /* the arguments as the template passes them */
    whit_datum values[WHIT_MAX_PARAMETERS]; /* value of each parameter; undefined if not given */
    bool given[WHIT_MAX_PARAMETERS];
} whit_builtin_frame;

typedef whit_status whit_builtin_fn(whit_machine *m, whit_builtin_frame *call, whit_datum *result);

typedef struct whit_builtin {
    const char *name;
    /* Names of the parameters in order, separated by spaces, such as "old new count?". '?' follows optional ones. A
     * leading "/" means that arguments may only be positional. "*" means that any arguments are accepted, and `run`
     * reads `arguments`. */
    const char *parameters;
    whit_builtin_fn *run;
    uint8_t detail; /* distinguishes functions that share `run` */
} whit_builtin;

typedef struct whit_method {
    const whit_builtin *builtin;
    whit_datum self;
} whit_method;

const whit_builtin *whit_builtin_filter(const whit_text *name);
const whit_builtin *whit_builtin_test(const whit_text *name);
const whit_builtin *whit_builtin_function(const whit_text *name); /* returns a global function; NULL if no function has
                                                                   * this name */
const whit_builtin *whit_builtin_method(whit_datum self, const whit_text *name);

/* Assigns the arguments to the parameters and calls the function. */
whit_status whit_builtin_call(whit_machine *m, const whit_builtin *builtin, whit_datum self,
                              const whit_arguments *arguments, whit_datum *result);

/* Tables. The last row of each has the name NULL. */
extern const whit_builtin whit_text_filters[], whit_list_filters[], whit_datum_filters[];
extern const whit_builtin whit_tests[], whit_functions[];
extern const whit_builtin whit_str_methods[], whit_bytes_methods[], whit_dict_methods[];
extern const whit_builtin whit_sequence_methods[], whit_float_methods[];
extern const whit_builtin whit_loop_methods[];

/* ---- reading arguments ----------------------------------------------------------------------- */

whit_status whit_builtin_want_text(whit_machine *m, const whit_builtin_frame *call, size_t i, const whit_text **text);
/* Reads parameter i, an int or bool; *integer is `fallback` if it is not given. */
whit_status whit_builtin_want_int(whit_machine *m, const whit_builtin_frame *call, size_t i, int64_t fallback,
                                  int64_t *integer);
static inline bool whit_builtin_is_given(const whit_builtin_frame *call, size_t i) /* the parameter is given and not
                                                                                    * None */
{
    return call->given[i] && call->values[i].kind != WHIT_DATUM_NONE;
}
static inline bool whit_builtin_is_true(const whit_builtin_frame *call, size_t i)
{
    return call->given[i] && whit_datum_is_true(call->values[i]);
}

/* ---- shared by several filters --------------------------------------------------------------- */

/* Selects a part of `item` as the parameter `attribute` says: "a.b.0" (attributes and items), or an integer index.
 * `attribute` None selects the item itself. If a part is undefined, it is replaced by `fallback`, unless that is
 * NULL. */
whit_status whit_machine_select_attribute(whit_machine *m, whit_datum item, whit_datum attribute,
                                          const whit_datum *fallback, whit_datum *result);

#endif
