/* SPDX-License-Identifier: MIT
 * The command line that a written model keeps of itself (whit.command): every option that changes the result. */
#ifndef WHIT_CLI_RECORDED_H
#define WHIT_CLI_RECORDED_H

#include "base/mem.h"
#include "cli/cli.h"

/* Holds the value that an option has in effect, which the verb computed. NULL: the option is left out. */
typedef struct cli_effective {
    const char *name, *value;
} cli_effective;

/* Writes "whit VERB" and the options of the verb's table that change its result, terminated: the given options with
 * their values, and the defaults if `with_defaults` is set. A path is shortened to its last name. Options for outputs,
 * measuring, threads and messages are left out. False: out of memory. */
bool cli_record_command(const cli_call *call, bool with_defaults, const cli_effective *effective, size_t n_effective,
                        whit_buf *text);

#endif
