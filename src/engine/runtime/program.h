/* SPDX-License-Identifier: MIT
 * Programs that run for every token (whit/program.h), with a choice of what runs them. */
#ifndef WHIT_RUNTIME_PROGRAM_H
#define WHIT_RUNTIME_PROGRAM_H

#include "lang/core/lang.h"
#include "whit/program.h"

/* Every tier and all kernels give the same bits. */
typedef struct whit_program_tier {
    int tier;                      /* WHIT_LANG_ */
    const whit_lang_jit *jit;      /* compiler for WHIT_LANG_NATIVE; NULL: not available */
    const whit_quat_kernels *quat; /* outlive the program */
} whit_program_tier;

/* As whit_program_open. */
whit_status whit_program_open_tier(const char *name, const char *text, size_t text_bytes,
                                   const whit_program_options *options, const whit_program_tier *tier,
                                   whit_program **program, whit_error *error);

#endif
