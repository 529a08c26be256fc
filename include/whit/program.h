/* SPDX-License-Identifier: MIT
 * Uses programs of the array language (docs/use/arrays.md) as stages of generations: a program runs before every token
 * is picked, reads the logits, the tokens so far and a state of its own, and changes the logits. It has access to
 * nothing else, and its time and memory are limited. */
#ifndef WHIT_PROGRAM_H
#define WHIT_PROGRAM_H

#include "generation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A program serves one generation, and is used by one thread at a time. */
typedef struct whit_program whit_program;
typedef struct whit_program_options {
    size_t struct_bytes;
    uint32_t max_ms;       /* processor time limit for one token; 0: no limit; default 1,000 */
    uint32_t n_history;    /* maximum number of preceding tokens that the program can read; default 4,096 */
    size_t max_bytes;      /* memory limit of the program's arrays; default 64 MiB */
    const int32_t *prompt; /* tokens that precede the first generated one, readable like generated tokens; copied */
    size_t n_prompt;
} whit_program_options;
static inline whit_program_options whit_program_options_default(void)
{
    whit_program_options options;
    memset(&options, 0, sizeof options);
    options.struct_bytes = sizeof options;
    options.max_ms = 1000;
    options.n_history = 4096;
    options.max_bytes = (size_t)64 << 20;
    return options;
}

/* Compiles a program of at most 1 MiB; `text` is not used after the call. An error in the program is reported as
 * "NAME:LINE:COLUMN: " and the reason. `options` may be NULL. */
WHIT_API WHIT_CHECKED whit_status whit_program_open(const char *name, const char *text, size_t text_bytes,
                                                    const whit_program_options *options, whit_program **program,
                                                    whit_error *error);
WHIT_API void whit_program_close(whit_program *program);

/* Returns the stage for whit_generate_options.stages of one generation; the program must outlive it. A run-time error,
 * an exceeded limit, logits that forbid every token, or logits that are NaN or +infinity end that generation with an
 * error. */
WHIT_API whit_stage whit_program_stage(whit_program *program);

#ifdef __cplusplus
}
#endif
#endif
