/* SPDX-License-Identifier: MIT
 * whit exec: runs a program of the array language. */
#include <stdlib.h>

#include "cli/flags.h"
#include "cli/program.h"
#include "cli/verbs.h"

struct exec_values {
    bool plan;
    cli_program_flags program;
};
static const struct exec_values defaults = {.program = CLI_PROGRAM_DEFAULTS};
static const cli_option options[] = {
    {"--plan", CLI_FLAG, offsetof(struct exec_values, plan), NULL, "Print what would be run after compilation instead.",
     0, 0},
    {0},
};

static int run(cli_call *call)
{
    const struct exec_values *values = call->values;
    const char *path = call->operands[0];
    cli_program program;
    cli_text text;
    whit_error error;
    int status = cli_read_text(call, path, &text);
    if (status != CLI_OK) return status;
    status = cli_program_open(call, &values->program, false, &program);
    if (status == CLI_OK &&
        (whit_lang_load(program.lang, path, text.data, text.size_bytes, &error) != WHIT_OK ||
         (!values->plan && whit_lang_run(program.lang, &error) != WHIT_OK)))
        status = call->output_failed ? CLI_IO : cli_program_fail(call, &program, text.data, text.size_bytes, &error);
    else if (status == CLI_OK && values->plan) {
        whit_buf plan = {0};
        if (!whit_lang_plan(program.lang, &plan))
            status = cli_fail(call, CLI_LIMIT, "out of memory");
        else if (plan.size_bytes)
            cli_write(call, (const char *)plan.data, plan.size_bytes);
        whit_buf_free(&plan);
    }
    cli_program_close(&program);
    free(text.data);
    return status;
}

const cli_verb cli_exec_verb = {
    "exec",
    "FILE",
    1,
    1,
    "run a program of the array language",
    "Runs a program over integers, floats, vectors and quaternary vectors; docs/arrays.md is the language's "
    "reference. FILE may be - for stdin. A program reaches no file and no network, and its memory and, with "
    "--limit-ms, its time are bounded. WHIT_TIER=0 walks the tree instead of compiling it, with the same bits.\n"
    "  whit exec program.ndl --limit-ms 1000",
    {{"OPTIONS", options, 0}, {"LIMITS", cli_program_options, offsetof(struct exec_values, program)}},
    sizeof(struct exec_values),
    &defaults,
    run,
};
