/* SPDX-License-Identifier: MIT
 * Declares the functions of the language, whose names and signatures are rows of a table. */
#ifndef WHIT_LANG_CORE_BUILTINS_H
#define WHIT_LANG_CORE_BUILTINS_H

#include "lang/core/ast.h"

/* Chooses the signature that fits the checked arguments of a NODE_CALL, and converts integers to floats if it needs
 * that. Turns the node into a NODE_BUILTIN or, for an operation on elements, into a NODE_UNARY or NODE_BINARY; float()
 * of a float and int() of an integer become their argument. */
whit_status lang_check_builtin(lang_source *source, lang_arena *arena, lang_node *call);
/* Checks the arguments of a NODE_CALL of function number `slot` of the host, and turns the node into a NODE_HOST. */
whit_status lang_check_host(lang_source *source, lang_arena *arena, const whit_lang_host *host, lang_node *call);
/* Sets *function to the number of a function of the host; returns false if the host has no function of this name. */
bool lang_find_host(const whit_lang_host *host, const char *name, uint32_t *function);
/* Wraps an integer node in a conversion to float; returns false if memory is exhausted. */
bool lang_to_float(lang_arena *arena, lang_node **node);
const char *lang_builtin_name(lang_builtin builtin);

#endif
