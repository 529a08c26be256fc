/* SPDX-License-Identifier: MIT
 * Makes pages of machine code: they are writable while they are filled, then executable, never both. */
#ifndef WHIT_LANG_JIT_PAGES_H
#define WHIT_LANG_JIT_PAGES_H

#include "lang/core/vm.h"
#include "lang/jit/encode.h"

enum { JIT_PAGES_MAX = 1000 };

/* Copies code to an executable page of the session; listings name it by `what` ("loop" or "elements") and the node's
 * line and column. Returns NULL if the system does not allow executable pages, memory is exhausted or there are too
 * many pages. */
void *jit_seal(whit_lang *vm, const lang_node *node, const char *what, const jit_code *code);
void jit_close_pages(whit_lang *vm);
void jit_list_pages(const whit_lang *vm, uint32_t n_before, whit_buf *out);

#endif
