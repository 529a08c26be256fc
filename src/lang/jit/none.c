/* SPDX-License-Identifier: MIT
 * Replaces the compiler to machine code (tier 2) on processors that it does not support. */
#include "lang/jit/jit.h"

const whit_lang_jit *whit_lang_jit_native(void)
{
    return NULL;
}
