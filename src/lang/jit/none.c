/* SPDX-License-Identifier: MIT
 * Where there is no tier 2. */
#include "lang/jit/jit.h"

const whit_lang_jit *whit_lang_jit_native(void)
{
    return NULL;
}
