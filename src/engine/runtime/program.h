/* SPDX-License-Identifier: MIT
 * Programs that run for every token (whit/program.h), with a choice of the tier (tree walk, closures or machine code)
 * that runs them. */
#ifndef WHIT_RUNTIME_PROGRAM_H
#define WHIT_RUNTIME_PROGRAM_H

#include "lang/core/lang.h"
#include "whit/program.h"

/* Way of executing a program: the tier of the language, and kernels. All tiers and kernels give the same bits. */
typedef struct whit_program_tier {
    int tier;                      /* WHIT_LANG_WALK, WHIT_LANG_CLOSURES or WHIT_LANG_NATIVE */
    const whit_lang_jit *jit;      /* compiler to machine code for WHIT_LANG_NATIVE; NULL: not available */
    const whit_quat_kernels *quat; /* kernels of quaternary vectors; must outlive the program; NULL: chosen for the
                                    * processor */
} whit_program_tier;

/* Does the same as whit_program_open, with the given tier. */
whit_status whit_program_open_tier(const char *name, const char *text, size_t text_bytes,
                                   const whit_program_options *options, const whit_program_tier *tier,
                                   whit_program **program, whit_error *error);

#endif
