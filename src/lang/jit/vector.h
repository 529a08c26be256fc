/* SPDX-License-Identifier: MIT
 * Compiles chains of operations on f32 vectors to machine code (code.h: lang_elements). */
#ifndef WHIT_LANG_JIT_VECTOR_H
#define WHIT_LANG_JIT_VECTOR_H

#include "lang/core/code.h"

void jit_compile_elements(lang_compiler *c, const lang_node *node, lang_elements *elements, const lang_element_op *ops);

#endif
