/* SPDX-License-Identifier: MIT
 * Declares tier 2: loops over integers and chains of operations on vectors become x86-64 code, for
 * whit_lang_options.jit. Pages are writable or executable, never both; if the system gives no executable pages,
 * everything stays on tier 1. */
#ifndef WHIT_LANG_JIT_JIT_H
#define WHIT_LANG_JIT_JIT_H

#include "lang/core/lang.h"

/* Returns the functions of tier 2; NULL unless the library was built for x86-64 and not for Windows. */
const whit_lang_jit *whit_lang_jit_native(void);

#endif
