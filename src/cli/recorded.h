/* SPDX-License-Identifier: MIT
 * Writes the command line that is stored in a model which a verb makes (whit.command): every option that changes the
 * result. */
#ifndef WHIT_CLI_RECORDED_H
#define WHIT_CLI_RECORDED_H

#include "base/mem.h"
#include "cli/cli.h"

/* The value of an option that was in effect, if it differs from the given one. value NULL: the option is left out. */
typedef struct cli_effective {
    const char *name, *value;
} cli_effective;

/* Writes "whit VERB" and the options that change the result, with a zero byte at the end: the given options, the
 * defaults of others that are texts, lists or set flags and, with `with_defaults`, other defaults except the number 0
 * and negative real numbers. For a path only the last name is written; a value is cut to 80 bytes. Options for outputs,
 * measurements, threads and messages are left out. Returns false if memory runs out. */
bool cli_record_command(const cli_call *call, bool with_defaults, const cli_effective *effective, size_t n_effective,
                        whit_buf *text);

#endif
