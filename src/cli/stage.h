/* SPDX-License-Identifier: MIT
 * Implements the option --program FILE: a program of the array language that runs for every token
 * (docs/use/arrays.md). */
#ifndef WHIT_CLI_STAGE_H
#define WHIT_CLI_STAGE_H

#include "cli/flags.h"
#include "kernels/quat/quat.h"
#include "runtime/program.h"

/* Holds a program as a stage; if zero-initialised, there is no program. */
typedef struct cli_stage {
    const char *path;
    cli_text text;
    int tier;
    whit_quat_kernels kernels;
    whit_program *program; /* the program, opened anew for each generation */
    whit_stage stage;
    const whit_stage *stages[1];
    size_t n_stages;
} cli_stage;

/* Reads the program file (NULL: no program) and reports its errors. The result is CLI_OK, or a status already
 * reported. */
int cli_stage_open(cli_call *call, const char *path, cli_stage *stage);
/* Begins a generation with a new program state; fills stages and n_stages. The prompt's ids may be NULL if the caller
 * does not have them. */
int cli_stage_begin(cli_call *call, cli_stage *stage, const int32_t *ids, size_t n_ids);
void cli_stage_close(cli_stage *stage);

#endif
