/* SPDX-License-Identifier: MIT
 * A program of the array language as a stage of a generation: it runs once for every token, sees the
 * logits, what was generated and a state of its own, and changes the logits (docs/arrays.md). */
#ifndef WHIT_LANG_MODEL_TOKEN_PROGRAM_H
#define WHIT_LANG_MODEL_TOKEN_PROGRAM_H

#include "lang/core/lang.h"
#include "lang/jit/jit.h"

typedef struct whit_token_program whit_token_program;

typedef struct whit_token_program_options {
    uint32_t max_ms;    /* of processor time for one token; 0: 1,000 */
    size_t max_bytes;   /* of the program's vectors; 0: 64 MiB */
    uint32_t n_history; /* most tokens it can look back on; 0: 4,096 */
    int tier;           /* as in whit_lang_options */
    const whit_quat_kernels *quat;
    const int32_t *prompt; /* copied */
    size_t n_prompt;
} whit_token_program_options;

/* Compiles a text; a mistake has its place in the line. */
whit_status whit_token_program_open(const char *name, const char *text, size_t n_bytes,
                                    const whit_token_program_options *options, whit_token_program **program,
                                    whit_error *error);
void whit_token_program_close(whit_token_program *program);
/* The stage; lives as long as the program, which serves one generation. */
const whit_stage *whit_token_program_stage(const whit_token_program *program);

#endif
