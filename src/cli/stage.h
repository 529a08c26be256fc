/* SPDX-License-Identifier: MIT
 * Implements the option --program FILE: a program of the array language that runs for every token
 * (docs/use/arrays.md). */
#ifndef WHIT_CLI_STAGE_H
#define WHIT_CLI_STAGE_H

#include "cli/flags.h"
#include "kernels/quat/quat.h"
#include "runtime/program.h"

/* A program that runs as a stage of sampling. If all members are zero, there is no program. */
typedef struct cli_stage {
    const char *path;
    cli_text text;
    int tier;
    whit_quat_kernels kernels;
    whit_program *program; /* opened again for each generation, so that it begins with a new state */
    whit_stage stage;
    const whit_stage *stages[1];
    size_t n_stages;
} cli_stage;

/* Reads and compiles the program file; path NULL: without a program. Returns CLI_OK, or an exit status after a
 * message. */
int cli_stage_open(cli_call *call, const char *path, cli_stage *stage);
/* Begins a generation with a new state of the program and sets `stages` and `n_stages`. Does nothing without a program.
 * ids: the prompt, or NULL if the caller does not have its ids. Returns CLI_OK, or an exit status after a message. */
int cli_stage_begin(cli_call *call, cli_stage *stage, const int32_t *ids, size_t n_ids);
void cli_stage_close(cli_stage *stage);

#endif
