/* SPDX-License-Identifier: MIT
 * Declares the programs of the built-in families as C, which families/compile.c generates from their sources when whit
 * is built: they make the same calls in the same order, without parsing or checks at run time. */
#ifndef WHIT_MODEL_FAMILIES_COMPILED_H
#define WHIT_MODEL_FAMILIES_COMPILED_H

#include "lang/core/lang.h"

/* Holds the inputs of a family's program: the fields of a configuration, indexed as by whit_config_number_at, and the
 * function that executes the program's calls, as in whit_lang_host. */
typedef struct whit_family_run {
    const whit_lang_argument *config;
    whit_status (*call)(void *user, uint32_t function, const whit_lang_argument *arguments, whit_lang_argument *result,
                        whit_error *error);
    void *user;
    whit_error *error;
} whit_family_run;

whit_status whit_family_decoder(const whit_family_run *run); /* translated from families/decoder.ndl */
whit_status whit_family_gemma(const whit_family_run *run);   /* translated from families/gemma.ndl */
whit_status whit_family_hybrid(const whit_family_run *run);  /* translated from families/hybrid.ndl */
whit_status whit_family_olmo(const whit_family_run *run);    /* translated from families/olmo.ndl */
whit_status whit_family_bert(const whit_family_run *run);    /* translated from families/bert.ndl */

/* Table of the functions that programs call; families/compile.c uses it. */
extern const whit_lang_host_function whit_family_functions[];
extern const uint32_t whit_family_n_functions;

#endif
