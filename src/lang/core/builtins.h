/* SPDX-License-Identifier: MIT
 * The functions of the language: their names and signatures, one row each. */
#ifndef WHIT_LANG_CORE_BUILTINS_H
#define WHIT_LANG_CORE_BUILTINS_H

#include "lang/core/ast.h"

/* Chooses the signature that fits the checked arguments of a NODE_CALL, converts integers to floats
 * where it asks for them, and makes the node a builtin, or an operation on elements. */
whit_status lang_check_builtin(lang_source *source, lang_arena *arena, lang_node *call);
const char *lang_builtin_name(lang_builtin builtin);

#endif
