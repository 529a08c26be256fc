/* SPDX-License-Identifier: MIT
 * Declares the functions of the language, whose names and signatures are rows of a table. */
#ifndef WHIT_LANG_CORE_BUILTINS_H
#define WHIT_LANG_CORE_BUILTINS_H

#include "lang/core/ast.h"

/* Chooses the signature that fits the checked arguments of a NODE_CALL, converts integers to floats if needed, and
 * makes the node a builtin, or an operation on elements. */
whit_status lang_check_builtin(lang_source *source, lang_arena *arena, lang_node *call);
/* Checks the arguments of a NODE_CALL of the host's function `slot` and makes it a NODE_HOST. */
whit_status lang_check_host(lang_source *source, lang_arena *arena, const whit_lang_host *host, lang_node *call);
/* Finds a function of the host; false if the host has no function of this name. */
bool lang_find_host(const whit_lang_host *host, const char *name, uint32_t *function);
/* Wraps an integer node in a conversion to float; false if memory is short. */
bool lang_to_float(lang_arena *arena, lang_node **node);
const char *lang_builtin_name(lang_builtin builtin);

#endif
