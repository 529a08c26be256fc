/* SPDX-License-Identifier: MIT
 * Processors without tier 2. */
#include "lang/jit/jit.h"

const whit_lang_jit *whit_lang_jit_native(void)
{
    return NULL;
}
