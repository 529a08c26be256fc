/* SPDX-License-Identifier: MIT
 * The programs of our own families as C, which families/compile.c makes of their texts when whit is built: the same
 * calls in the same order, with nothing left to read or check. */
#ifndef WHIT_MODEL_FAMILIES_COMPILED_H
#define WHIT_MODEL_FAMILIES_COMPILED_H

#include "lang/core/lang.h"

/* What a family's program runs on: the fields of a configuration as whit_config_number_at numbers them, and the
 * functions that it calls, as whit_lang_host has them. */
typedef struct whit_family_run {
    const whit_lang_argument *config;
    whit_status (*call)(void *user, uint32_t function, const whit_lang_argument *arguments, whit_lang_argument *result,
                        whit_error *error);
    void *user;
    whit_error *error;
} whit_family_run;

whit_status whit_family_decoder(const whit_family_run *run); /* families/decoder.ndl */
whit_status whit_family_gemma(const whit_family_run *run);   /* families/gemma.ndl */
whit_status whit_family_hybrid(const whit_family_run *run);  /* families/hybrid.ndl */
whit_status whit_family_olmo(const whit_family_run *run);    /* families/olmo.ndl */

/* The functions, for the compiler. */
extern const whit_lang_host_function whit_family_functions[];
extern const uint32_t whit_family_n_functions;

#endif
